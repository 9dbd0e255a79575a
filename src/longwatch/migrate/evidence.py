"""Packing evidence into outcomes, at the edge of a step's program."""

import msgspec

from longwatch.kernel.line import Failed, Failure, Succeeded
from longwatch.migrate.steps import Evidence, Refused, Spent, Surveyed, Usage

_MOST_REASONS = 50
_REASON_CHARACTERS = 4000


def succeeded(evidence: Evidence | Surveyed) -> Succeeded:
    """Return the outcome of a step that ended as it should; what it found may still be a refusal."""
    if isinstance(evidence, Refused):
        evidence = msgspec.structs.replace(evidence, reasons=_readable(evidence.reasons))
    return Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))


def failed(failure: Failure, usage: Usage) -> Failed:
    """Return the outcome of a step that could not do its work, with what it cost."""
    return Failed(failure, msgspec.Raw(msgspec.json.encode(Spent(usage=usage))))


def _readable(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """A worker decides how many faults it makes and how long their names are; state, log and prompt take only so many."""
    kept = tuple(bounded(reason, _REASON_CHARACTERS) for reason in reasons[:_MOST_REASONS])
    more = len(reasons) - len(kept)
    return (*kept, f"and {more} more") if more else kept


def bounded(text: str, characters: int) -> str:
    """Return the text, or its head and tail with a note of what was left out, in at most so many characters."""
    if len(text) <= characters:
        return text
    note = f"\n[... {len(text) - characters} characters and more were left out here ...]\n"
    room = max(characters - len(note), 0)
    return text[: room // 2] + note + text[len(text) - (room - room // 2) :]
