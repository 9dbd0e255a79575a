"""A campaign: many cheats in one watch, one attempt each, and what the person finds afterwards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import arena
from tests.support.arena import Arena, Ran

OWNED = "owned: [shop/**, tests/**]"
DIRTY: Mapping[str, bytes] = {
    "notes.txt": b"first\nand what the person has in hand\n",
    "mine/draft.bin": b"\0\xff draft",
}


@dataclass(frozen=True, slots=True)
class Campaign:
    """A finished campaign."""

    arena: Arena
    ran: Ran
    before: str
    """HEAD before it."""
    events: list[dict[str, str]]

    def refusal(self, job: str) -> str:
        """Why the one attempt at a job was refused; fails if it was not."""
        told = [
            (event["kind"], event["text"]) for event in self.events if event["text"].startswith(f"{job}: ")
        ]
        found = [text for kind, text in told if kind.startswith("attempt.refused.")]
        assert len(found) == 1, f"{job} was not refused once: {told}"
        assert not [kind for kind, _ in told if kind in {"job.verified", "job.committed", "job.done"}], told
        return found[0]


def run(place: Arena, cheats: Iterable[str], *, first: Iterable[str] = (), owned: str = OWNED) -> Campaign:
    """Let the worker do each of these once, those in `first` first, and then one honest job."""
    lines = (owned,) if owned else ()
    early = frozenset(first)
    for name in cheats:
        place.card(name, name, *lines, f"priority: {int(name in early)}")
    place.card("zz_honest", "honest", *lines, "priority: -1")
    before = place.commit()
    for path, content in DIRTY.items():
        (place.root / path).parent.mkdir(exist_ok=True)
        (place.root / path).write_bytes(content)
    ran = place.call("run")
    return Campaign(place, ran, before, place.events())


def unnamed(campaign: Campaign, expected: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[list[str], str]]:
    """What the refusals fail to name: by cheat, the missing words and what was said instead."""
    found = {}
    for cheat, reasons in expected.items():
        said = campaign.refusal(cheat)
        missing = [reason for reason in reasons if reason not in said]
        if missing:
            found[cheat] = (missing, said[:2000])
    return found


def unharmed(campaign: Campaign, honest: Iterable[str]) -> None:
    """Assert that nothing but honest work is on the branch, and that the person's own files are as they were."""
    place = campaign.arena
    assert place.subjects()[2:] == [f"Do {name}" for name in honest]
    assert {path: (place.root / path).read_bytes() for path in DIRTY} == dict(DIRTY)
    assert arena.living(str(place.root.parent)) == []
    verified = place.call("verify")
    assert verified.code == 0, verified.out
    assert not list((place.root / ".longwatch" / "work").iterdir())


def seen_by(campaign: Campaign, job: str) -> str:
    """What the worker printed at its first attempt at a job."""
    return Path(campaign.arena.root, ".longwatch", "attempts", f"{job}.1", "worker.log").read_text(
        errors="replace"
    )
