"""The lines of `doctor` that only a migrate watch has (specification M36, K38, K8). Changes nothing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.finding import Finding, fine, note, wrong
from longwatch.kernel.watch import Watch
from longwatch.migrate import holding, pointed, preflight
from longwatch.migrate.attempt.greeting import greet
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.cards import Card
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import MigrateState, Status
from longwatch.sandbox.choice import ENGINES

_SHOWN = 10
_OF_IMAGE = frozenset({"acp", "command"})
MIB = 1024 * 1024


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How the watch's folder will grow (specification K8)."""

    each_bytes: float
    """What a done job left behind on average."""
    expected_bytes: float
    """What the open jobs will add, if they are like the done ones and logs stay under their bound."""
    room_bytes: int
    """What is free above the reserve."""


def examine(watch: Watch, settings: MigrateSettings, state: MigrateState | None) -> Iterator[Finding]:
    """Yield one finding after the other; `state` is `None` where none could be read."""
    place = Place(watch, settings)
    yield from _repository(place, state)
    yield from _queue(place, state)
    yield from _preflight(place)
    yield from _programs(place)
    yield from _worker(place)
    if state is not None:
        yield from _growth(place, state)


def forecast(*, used_bytes: int, done: int, waiting: int, log_bytes: int, room_bytes: int) -> Growth | None:
    """Pure: what the open jobs will need; `None` while no job is done, because nothing can be said then."""
    if not done:
        return None
    each = used_bytes / done
    # Logs are bounded in sum, the oldest go first; so are the attempts that they belong to, in practice.
    return Growth(
        each_bytes=each,
        expected_bytes=min(each * waiting, float(max(log_bytes, used_bytes))),
        room_bytes=room_bytes,
    )


def _repository(place: Place, state: MigrateState | None) -> Iterator[Finding]:
    git = Git.open(place.repository)
    wanted, there, head = place.settings.repository.branch, git.branch(), git.head()
    if there != wanted:
        mend = f"git switch {wanted}, or set repository.branch"
        yield wrong("branch", f"{there or 'no branch'} is checked out; repository.branch is {wanted}", mend)
    elif head is None:
        yield wrong("branch", f"{wanted} has no commit yet", "make a first commit")
    elif state is not None and state.head and state.head != head:
        mend = f"review git log {state.head[:12]}..{head[:12]}; then longwatch resume --accept --refresh-baseline"
        yield wrong("branch", f"{wanted} moved from {state.head[:12]} to {head[:12]} outside the watch", mend)
    else:
        yield fine("branch", f"{wanted} at {head[:12]}")
    operation = git.operation()
    if operation:
        yield wrong("repository", f"a {operation} is in progress", "finish or abort it")
    yield from _dirty(git)


def _dirty(git: Git) -> Iterator[Finding]:
    dirty = git.dirty_paths()
    if dirty:
        yield note(
            "your changes", f"{_listed(dirty)}: will not be touched, and no job may change these paths"
        )
    else:
        yield fine("your changes", "none that are not committed")


def _queue(place: Place, state: MigrateState | None) -> Iterator[Finding]:
    try:
        queue = survey.read(place, before=state.task if state else "")
    except ConfigError as error:
        where = place.profile.queue.pointer or place.cards
        yield wrong("queue", str(error), f"mend what is named here; the queue is {where}")
        return
    if place.profile.queue.pointer:
        yield from pointed.examine(place, queue, state)
    else:
        yield _listed_queue(place, queue.cards, state)
    if state is not None:
        yield from holding.examine(place, queue, state)


def _listed_queue(place: Place, cards: tuple[Card, ...], state: MigrateState | None) -> Finding:
    if not cards:
        return note(
            "queue", f"{place.cards} holds no card", "write one: copy the example there to 001-first.md"
        )
    jobs = state.jobs if state else {}
    done = sum(1 for card in cards if card.id in jobs and jobs[card.id].status is Status.DONE)
    following = next(
        (card.id for card in cards if card.id not in jobs or jobs[card.id].status is not Status.DONE), ""
    )
    return fine("queue", f"{len(cards)} cards, {done} done{f'; next is {following}' if following else ''}")


def _preflight(place: Place) -> Iterator[Finding]:
    found = tuple(preflight.problems(place))
    for problem in found:
        yield wrong("checks", problem.where, problem.mend)
    if not found:
        names = ", ".join(check.name for check in place.settings.checks)
        yield fine("checks", f"{names}: allowed, and the prompt and the worker's settings make sense")


def _programs(place: Place) -> Iterator[Finding]:
    if place.settings.sandbox.kind in ENGINES:
        yield note(
            "check program", "programs of checks come from the image, and are looked for when they run"
        )
        return
    for check in place.settings.checks:
        found = _find(check.argv[0], place.repository / check.cwd)
        yield _program("check program", check.name, check.argv[0], found)
    for argv in place.profile.queue.handoff:
        found = _find(argv[0], place.repository)
        yield _program("generator", " ".join(argv), argv[0], found)


def _program(name: str, what: str, program: str, found: str | None) -> Finding:
    if found is None:
        mend = f"install it, or name its folder in PATH; {what} needs it"
        return wrong(name, f"{program} is not found", mend)
    return fine(name, f"{what}: {found}")


def _worker(place: Place) -> Iterator[Finding]:
    worker = place.settings.worker
    if worker.adapter == "replay":
        yield fine("worker", f"replays {place.watch.root / worker.argv[0]}")
        return
    program = worker.argv[0] if worker.argv else worker.adapter
    of_image = place.settings.sandbox.kind in ENGINES and "/" not in program and worker.adapter in _OF_IMAGE
    found = f"{program}, of the image" if of_image else _find(program, place.watch.root)
    if found is None:
        yield wrong(
            "worker", f"{program} is not found", "install it, or write its whole path into worker.argv"
        )
        return
    yield fine("worker", f"{worker.adapter}: {found}")
    if worker.adapter == "acp":
        yield _greeting(place)
    for name in worker.environment:
        if not os.environ.get(name):
            yield note(
                "worker",
                f"{name} is not set here",
                "set it where the supervisor runs, if the worker needs it",
            )


def _greeting(place: Place) -> Finding:
    try:
        return fine("worker", f"it starts, and calls itself {greet(place)}")
    except ConfigError as error:
        mend = "correct worker.argv, or show the agent what it needs: worker.environment, sandbox.expose"
        return wrong("worker", f"it does not answer: {error}", mend)


def _find(program: str, folder: Path) -> str | None:
    if "/" in program:
        path = folder / program
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(program)


def _growth(place: Place, state: MigrateState) -> Iterator[Finding]:
    if not place.watch.hidden.is_dir():
        return
    folders = (place.attempts, place.watch.steps, place.watch.receipts, place.evidence)
    used = sum(_bytes_below(folder) for folder in folders)
    done = sum(1 for job in state.jobs.values() if job.status is Status.DONE)
    cards = state.survey.cards if state.survey else ()
    host = place.settings.host
    found = forecast(
        used_bytes=used,
        done=done,
        waiting=max(len(cards) - done, 0),
        log_bytes=host.logs_bytes,
        room_bytes=files.free_bytes(place.watch.hidden) - host.free_disk_bytes,
    )
    if found is None:
        yield fine("growth", f"{used // MIB} MiB kept; how much a job leaves is known when the first is done")
        return
    text = (
        f"{used // MIB} MiB kept, {found.each_bytes / MIB:.1f} MiB for each done job; "
        f"the open jobs will need about {found.expected_bytes / MIB:.0f} MiB"
    )
    if found.expected_bytes > found.room_bytes:
        room = max(found.room_bytes, 0) // MIB
        yield note(
            "growth", f"{text}, and {room} MiB are free above the reserve", "free some space before the night"
        )
    else:
        yield fine("growth", text)


def _bytes_below(folder: Path) -> int:
    """Sum up the files; what vanishes while we look does not count."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(base) / name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
