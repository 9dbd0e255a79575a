"""Holds the commands of checks against the repository as it is now: configured ones, and those in cards (M14)."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.config import Problem
from longwatch.kernel.errors import PathError
from longwatch.migrate.commands.refusals import refusals
from longwatch.migrate.place import Place
from longwatch.migrate.queue.cards import Card, checks_of
from longwatch.migrate.settings import Check

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


def check_problems(where: str, checks: Iterable[Check], place: Place) -> Iterator[Problem]:
    """Yield what is wrong with the commands of checks; `where` names what they stand in."""
    for check in checks:
        found = _objections(check.argv, check.cwd, place)
        yield from (Problem(f"{where}checks.{check.name}", reason) for reason in found)


def generator_problems(place: Place) -> Iterator[Problem]:
    """Yield what is wrong with the generators of a handoff: they are held to the same rules as checks."""
    for number, argv in enumerate(place.profile.queue.handoff):
        found = _objections(argv, ".", place)
        yield from (Problem(f"queue.handoff[{number}]", reason) for reason in found)


def _objections(argv: tuple[str, ...], cwd: str, place: Place) -> tuple[str, ...]:
    return refusals(
        argv,
        cwd,
        allowed_extra=place.settings.policy.executables,
        forbidden_words=place.profile.forbidden_words,
        repository=Tree(place.repository),
    )


def card_problems(cards: Iterable[Card], place: Place) -> Iterator[Problem]:
    """Yield what is wrong with the commands that cards bring."""
    for card in cards:
        yield from check_problems(f"{card.path}: ", checks_of(card, ()), place)
