"""Proves, before a token is spent, that the watch can do its work (specification M14, M15, M23)."""

import shutil
from collections.abc import Iterator

from longwatch.kernel import files
from longwatch.kernel.config import Problem, refuse
from longwatch.kernel.errors import ConfigError, LongwatchError, PathError
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.migrate import patterns
from longwatch.migrate.attempt.prompt import template_problems
from longwatch.migrate.place import Place
from longwatch.migrate.queue import guarding
from longwatch.migrate.queue.cards import Card
from longwatch.migrate.queue.order import read_queue
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.merging import OLDEST_GIT
from longwatch.migrate.settings import MigrateSettings
from longwatch.sandbox import ENGINES, proof, sandbox_of

PROOF = "sandbox-proof.json"


def prove(watch: Watch, settings: MigrateSettings) -> None:
    """Raise everything that keeps the watch from working, at once.

    Raises:
        ConfigError: checks, cards, prompt or worker are not fit.
        NotReadyError: the sandbox does not hold here.
    """
    place = Place(watch, settings)
    refuse(watch.config, problems(place))
    SigningKey.load(watch.keys)
    proof.prove(sandbox_of(settings.where), watch.hidden / PROOF)


def problems(place: Place) -> Iterator[Problem]:
    """Yield what is wrong with checks, cards, prompt and worker."""
    yield from _pattern_problems(place)
    yield from _prompt_problems(place)
    yield from _worker_problems(place)
    yield from _git_problems(place)
    yield from guarding.check_problems("", place.settings.checks, place)
    yield from guarding.card_problems(_cards(place), place)
    yield from guarding.generator_problems(place)
    yield from _source_problems(place)


def _cards(place: Place) -> tuple[Card, ...]:
    """A wrong queue is the survey's to report: it can change while the watch runs."""
    try:
        return () if place.profile.queue.pointer else read_queue(place.cards).cards
    except LongwatchError:
        return ()


def _pattern_problems(place: Place) -> Iterator[Problem]:
    try:
        patterns.protected_patterns(place.settings.repository)
        patterns.patterns_of_tests(place.settings.repository)
    except ConfigError as error:
        yield Problem("repository", str(error))


def _source_problems(place: Place) -> Iterator[Problem]:
    root = place.source_root
    if root is not None and not root.is_dir():
        where = f"queue.source_root = {place.profile.queue.source_root!r}"
        yield Problem(where, "is no folder here: name the folder of the source system's files")


def _prompt_problems(place: Place) -> Iterator[Problem]:
    try:
        template = files.read_bounded(place.prompt, 1024 * 1024).decode("utf-8")
    except (FileNotFoundError, PathError, UnicodeDecodeError) as error:
        yield Problem(f"worker.prompt = {place.settings.worker.prompt!r}", f"cannot be read: {error}")
        return
    for problem in template_problems(template, cases=place.profile.has_cases):
        yield Problem(f"{place.prompt}: {problem.where}", problem.mend)


def _worker_problems(place: Place) -> Iterator[Problem]:
    worker = place.settings.worker
    if worker.adapter == "replay" and not (place.watch.root / worker.argv[0]).is_dir():
        yield Problem(f"worker.argv = {list(worker.argv)}", "must name the folder of recorded attempts")
    own = place.settings.sandbox.kind in ENGINES
    if worker.adapter in {"acp", "command"} and not own and not _found(place, worker.argv[0]):
        yield Problem(
            f"worker.argv[0] = {worker.argv[0]!r}",
            f"is neither on PATH nor a file below {place.watch.root}: give its whole path",
        )


def _git_problems(place: Place) -> Iterator[Problem]:
    if place.settings.worker.max_parallel == 1:
        return
    there = Git(place.watch.root).version()
    if there < OLDEST_GIT:
        told = ".".join(map(str, there))
        needed = ".".join(map(str, OLDEST_GIT))
        yield Problem(
            f"worker.max_parallel = {place.settings.worker.max_parallel}",
            f"needs git {needed} to bring together what was worked at together; here is {told}: install a newer git, or set it to 1",
        )


def _found(place: Place, program: str) -> bool:
    return shutil.which(program) is not None or (place.watch.root / program).is_file()
