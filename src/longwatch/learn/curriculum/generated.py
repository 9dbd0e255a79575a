"""The generated curriculum as a source of tasks: endless, deterministic by seed, split by template (L1, L4)."""

from collections.abc import Iterator
from functools import cached_property
from random import Random

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError
from longwatch.learn.curriculum.catalogue import FAMILIES, all_templates
from longwatch.learn.curriculum.dialects import DIALECTS
from longwatch.learn.curriculum.order import Walk
from longwatch.learn.curriculum.putting import UnsayableError
from longwatch.learn.curriculum.render import build, task
from longwatch.learn.curriculum.template import Template
from longwatch.learn.sources.source import LeftOut, Row
from longwatch.learn.tasks import Language

LANGUAGES = (Language.PYTHON, Language.JAVASCRIPT, *DIALECTS)
"""What problems are put in: all of them in the first two, those with a reference in the others."""


class Generated:
    """Problems by seed. Row `i` is the same for ever, whatever was drawn before."""

    name = "generated"
    revision = "2"
    length = None
    provenance = (
        "made by this program from its own templates; no person's prompts, files or conversations are read"
    )

    def __init__(
        self,
        seed: int,
        languages: tuple[Language, ...] = (Language.PYTHON,),
        levels: tuple[int, ...] = (1, 2, 3),
        families: tuple[str, ...] = (),
    ) -> None:
        """No `families` means: all.

        Raises:
            ConfigError: a family or level does not exist, or nothing is left to choose from.
        """
        _check(languages, levels, families)
        self._seed, self._languages = seed, languages
        self._levels, self._families = levels, families or tuple(FAMILIES)

    @cached_property
    def digest(self) -> Digest:
        """Of the seed, the choice and every template that can be drawn."""
        listed = [(t.family, t.name, t.level, t.split, sorted(t.space.items())) for t in self._templates]
        return digest.of_bytes(msgspec.json.encode((self.revision, self._seed, self._languages, listed)))

    @cached_property
    def _templates(self) -> tuple[Template, ...]:
        return tuple(t for t in all_templates() if t.level in self._levels and t.family in self._families)

    @cached_property
    def walk(self) -> Walk:
        """The order of its problems."""
        return Walk(self._seed, self._templates)

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """The rows from `start` up to, not including, `end`."""
        return map(self._row, range(start, end))

    def _row(self, row: int) -> Row:
        template, number = self.walk.at(row)
        name = f"{template.family}.{template.name}.{number}"
        random = Random(f"{self._seed}/{row}")  # noqa: S311 - repeatable, not secret
        built = build(template, number, random)
        if built is None:
            return Row(
                number=row, left_out=(LeftOut(name, "its tests would not tell right from constant answers"),)
            )
        place = f"s{self._seed}.{row}"
        tasks, left_out = [], []
        for language in self._languages:
            try:
                tasks.append(task(template, built, language, name=name, row=place))
            except UnsayableError as error:
                left_out.append(LeftOut(f"{name}.{place}.{language}", str(error)))
        # The benchmarks' solutions are in Python: so that one is looked at whatever is asked in.
        unasked = {Language.PYTHON} - {*self._languages}
        kin = tuple(task(template, built, language, name=name, row=place) for language in unasked)
        return Row(number=row, tasks=tuple(tasks), left_out=tuple(left_out), kin=kin)


def _check(languages: tuple[Language, ...], levels: tuple[int, ...], families: tuple[str, ...]) -> None:
    known = {template.level for template in all_templates()}
    if not languages or not levels:
        raise ConfigError("[curriculum] needs at least one language and one level: name them")
    for language in languages:
        if language not in LANGUAGES:
            raise ConfigError(
                f"[curriculum] languages: problems are generated in {', '.join(LANGUAGES)}, not in {language}"
            )
    for level in levels:
        if level not in known:
            raise ConfigError(f"[curriculum] levels: {level} does not exist; choose from {sorted(known)}")
    for family in families:
        if family not in FAMILIES:
            raise ConfigError(
                f"[curriculum] families: {family!r} does not exist; choose from {list(FAMILIES)}"
            )
