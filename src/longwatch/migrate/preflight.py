"""Proves, before a token is spent, that the watch can do its work (specification M14, M15, M23)."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.config import Problem, refuse
from longwatch.kernel.errors import ConfigError, LongwatchError, NotReadyError, PathError
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.migrate import patterns, survey
from longwatch.migrate.cards import Card, checks_of
from longwatch.migrate.command_guard import refusals
from longwatch.migrate.place import Place
from longwatch.migrate.prompt import template_problems
from longwatch.migrate.settings import Check, MigrateSettings
from longwatch.sandbox import SANDBOXES
from longwatch.sandbox.selftest import self_test

_PACKAGE_BYTES = 1024 * 1024


class Tree:
    """The person's repository, as the guard of check commands sees it."""

    def __init__(self, root: Path) -> None:
        """`root` is the repository's top folder."""
        self._root = root

    def is_file(self, path: str) -> bool:
        """True for a regular file."""
        return (self._root / path).is_file()

    def exists(self, path: str) -> bool:
        """True for anything of this name."""
        return os.path.lexists(self._root / path)

    def leads_outside(self, path: str) -> bool:
        """True if a link on the way leads out of the repository or into its git folder."""
        try:
            real = files.contained(self._root, path)
        except PathError:
            return True
        return ".git" in real.resolve().relative_to(self._root.resolve()).parts

    def package_scripts(self, folder: str) -> frozenset[str]:
        """Return the names of the scripts in the folder's package.json; empty without one."""
        try:
            value = json.loads(files.read_bounded(self._root / folder / "package.json", _PACKAGE_BYTES))
        except (FileNotFoundError, PathError, ValueError):
            return frozenset()
        scripts = value.get("scripts") if isinstance(value, dict) else None
        return frozenset(scripts) if isinstance(scripts, dict) else frozenset()


def prove(watch: Watch, settings: MigrateSettings) -> None:
    """Raise everything that keeps the watch from working, at once.

    Raises:
        ConfigError: checks, cards, prompt or worker are not fit.
        NotReadyError: the sandbox does not hold here.
    """
    place = Place(watch, settings)
    refuse(watch.config, problems(place))
    SigningKey.load(watch.keys)
    sandbox = SANDBOXES[settings.sandbox.kind]()
    failed = [probe for probe in self_test(sandbox) if not probe.ok] if sandbox.confines else []
    if failed:
        told = "; ".join(f"{probe.name}: {probe.detail}" for probe in failed)
        raise NotReadyError(
            f"The sandbox does not hold on this machine: {told}. `longwatch doctor` says more."
        )


def problems(place: Place) -> Iterator[Problem]:
    """Yield what is wrong with checks, cards, prompt and worker."""
    yield from _pattern_problems(place)
    yield from _prompt_problems(place)
    yield from _worker_problems(place)
    tree = Tree(place.repository)
    for check in place.settings.checks:
        yield from _guarded(f"checks.{check.name}", check, place, tree)
    for card in _cards(place):
        for check in checks_of(card, ()):
            yield from _guarded(f"{card.path}: checks.{check.name}", check, place, tree)


def _guarded(key: str, check: Check, place: Place, tree: Tree) -> Iterator[Problem]:
    policy = place.settings.policy
    for reason in refusals(
        check.argv,
        check.cwd,
        allowed_extra=policy.executables,
        forbidden_words=policy.forbidden_words,
        repository=tree,
    ):
        yield Problem(key, reason)


def _cards(place: Place) -> tuple[Card, ...]:
    """A wrong queue is the survey's to report: it can change while the watch runs."""
    try:
        return survey.read(place)
    except LongwatchError:
        return ()


def _pattern_problems(place: Place) -> Iterator[Problem]:
    try:
        patterns.protected_patterns(place.settings.repository)
        patterns.patterns_of_tests(place.settings.repository)
    except ConfigError as error:
        yield Problem("repository", str(error))


def _prompt_problems(place: Place) -> Iterator[Problem]:
    try:
        template = files.read_bounded(place.prompt, 1024 * 1024).decode("utf-8")
    except (FileNotFoundError, PathError, UnicodeDecodeError) as error:
        yield Problem(f"worker.prompt = {place.settings.worker.prompt!r}", f"cannot be read: {error}")
        return
    for problem in template_problems(template):
        yield Problem(f"{place.prompt}: {problem.where}", problem.mend)


def _worker_problems(place: Place) -> Iterator[Problem]:
    worker = place.settings.worker
    if worker.adapter == "replay" and not (place.watch.root / worker.argv[0]).is_dir():
        yield Problem(f"worker.argv = {list(worker.argv)}", "must name the folder of recorded attempts")
    if worker.adapter == "command" and not _found(place, worker.argv[0]):
        yield Problem(
            f"worker.argv[0] = {worker.argv[0]!r}",
            f"is neither on PATH nor a file below {place.watch.root}: give its whole path",
        )


def _found(place: Place, program: str) -> bool:
    return shutil.which(program) is not None or (place.watch.root / program).is_file()
