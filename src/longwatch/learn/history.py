"""What the log keeps of experiments and looks, so that the state stays small however long the watch lives. Pure."""

from collections.abc import Iterable

import msgspec

from longwatch.kernel.journal import Event, Note
from longwatch.learn.looks import Audited, LanguageAudit
from longwatch.learn.state import Decided

NEWEST = 16
"""So many records stay in the state whole."""
KINDS = ("experiment.decided", "audit.looked")
"""The events with a record."""
_RECORD = "record"


def kept(history: tuple[Decided, ...]) -> tuple[Decided, ...]:
    """Return what the state keeps: the newest records, and of older ones those whose adapter and receipt stay for ever."""
    old, newest = history[:-NEWEST], history[-NEWEST:]
    return (*(msgspec.structs.replace(one, rounds=()) for one in old if one.adapter), *newest)


def past(events: Iterable[Event], history: Iterable[Decided] = ()) -> tuple[Decided, ...]:
    """Return the record of every finished experiment, oldest first: those of the log, and those that only a state has."""
    told = (msgspec.json.decode(text, type=Decided) for text in _records(events, "experiment.decided"))
    found = {one.number: one for one in (*history, *told)}
    return tuple(one for _, one in sorted(found.items()))


def looks(events: Iterable[Event]) -> tuple[Audited, ...]:
    """Return every look that showed a score, oldest first."""
    return tuple(msgspec.json.decode(text, type=Audited) for text in _records(events, "audit.looked"))


def _records(events: Iterable[Event], kind: str) -> list[str]:
    return [str(event.data[_RECORD]) for event in events if event.kind == kind and _RECORD in event.data]


# -- what is said


def note(decided: Decided) -> Note:
    """Return the event of a decision, with its whole record."""
    text = f"Experiment {decided.number}: {decided.decision}. {'; '.join(decided.sentences)}"
    return Note("experiment.decided", text, {_RECORD: _encoded(decided)})


def notes(found: Audited, look: int) -> tuple[Note, ...]:
    """Return the events of an audit; a score is look number `look`, with its whole record."""
    said = tuple(map(_of_language, found.languages))
    return (*said, _looked(found, look)) if found.scored else said


def _of_language(found: LanguageAudit) -> Note:
    if found.void:
        return Note("audit.void", f"No score: {found.sentence}.", {"language": found.language})
    numbers: dict[str, str | float | bool] = {
        "language": found.language,
        "base_passed": found.base_passed,
        "champion_passed": found.champion_passed,
        "total": found.total,
        "gained": " ".join(found.gained),
        "lost": " ".join(found.lost),
        "p": found.p,
        "answer_s": found.answer_s,
        "reused": found.reused,
    }
    return Note("audit.reported", f"{found.sentence}. Reporting only.", numbers)


def _looked(found: Audited, look: int) -> Note:
    text = (
        f"Look {look} at {found.benchmark}: macro pass@1 {100 * found.base_macro:.1f} % -> "
        f"{100 * found.champion_macro:.1f} % over {len(found.scored)} of {len(found.languages)} languages. Reporting only."
    )
    numbers: dict[str, str | float] = {
        "benchmark": found.benchmark,
        "look": look,
        "base_macro": found.base_macro,
        "champion_macro": found.champion_macro,
        _RECORD: _encoded(found),
    }
    return Note("audit.looked", text, numbers)


def _encoded(record: msgspec.Struct) -> str:
    return msgspec.json.encode(record).decode()
