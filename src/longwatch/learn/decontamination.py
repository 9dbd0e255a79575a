"""Near duplicates of a benchmark's prompts and solutions are found, whatever their names are (L4). Pure.

A prompt is near when it shares 13 words in a row, or half of the benchmark prompt's runs of 8 words. A solution is
near when it is the same code but for names, comments and annotations, or shares 60 % of its runs of 13 tokens.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.learn.normalised import code_key, tokens, words
from longwatch.learn.tasks import Language, Task

_LONG, _SHORT = 13, 8
_SHORT_SHARE = 0.5
_TOKENS = 13
_TOKEN_SHARE = 0.6
_LEAST_TOKENS = 12
"""Shorter code, such as `return len(a)`, is in every program and says nothing."""

Gram = tuple[str, ...]


class Near(msgspec.Struct, frozen=True):
    """A benchmark task that another one is near to."""

    audit: str
    how: str


class Index:
    """What is known of the benchmarks, by its parts."""

    def __init__(self, audits: Sequence[Task]) -> None:
        self.digest: Digest = digest.of_bytes(
            msgspec.json.encode(sorted((task.id, task.prompt, task.reference) for task in audits))
        )
        """Of every prompt and solution."""
        self._texts = {tuple(words(task.prompt)): task.id for task in reversed(audits)}
        self._long = _by_gram(audits, _LONG)
        self._short = _Shares(((task.id, words(task.prompt)) for task in audits), _SHORT)
        self._codes = {
            (task.language, code_key(task.language, task.reference)): task.id
            for task in reversed(audits)
            if _tells(task)
        }
        self._tokens = {language: _Shares(_coded(audits, language), _TOKENS) for language in Language}

    def near(self, task: Task) -> Near | None:
        """The first benchmark task that this one is a near duplicate of."""
        return self._near_prompt(words(task.prompt)) or self._near_code(task)

    def _near_prompt(self, said: Sequence[str]) -> Near | None:
        same = self._texts.get(tuple(said)) or next(
            (self._long[gram] for gram in _grams(said, _LONG) if gram in self._long), None
        )
        if same is not None:
            return Near(same, "prompt")
        part = self._short.nearest(said, _SHORT_SHARE)
        return None if part is None else Near(part, "prompt in part")

    def _near_code(self, task: Task) -> Near | None:
        if not task.reference or not _tells(task):
            return None
        same = self._codes.get((task.language, code_key(task.language, task.reference)))
        if same is not None:
            return Near(same, "solution")
        part = self._tokens[task.language].nearest(tokens(task.language, task.reference), _TOKEN_SHARE)
        return None if part is None else Near(part, "solution in part")


class _Shares:
    """Which texts share how many of their runs with another."""

    def __init__(self, texts: Iterable[tuple[str, Sequence[str]]], length: int) -> None:
        self._length = length
        self._sizes: dict[str, int] = {}
        self._owners: dict[Gram, list[str]] = {}
        for name, parts in texts:
            grams = set(_grams(parts, length))
            self._sizes[name] = len(grams)
            for gram in grams:
                self._owners.setdefault(gram, []).append(name)

    def nearest(self, parts: Sequence[str], share: float) -> str | None:
        """The text of which at least this share is in `parts`."""
        shared = Counter(
            name for gram in set(_grams(parts, self._length)) for name in self._owners.get(gram, ())
        )
        enough = [name for name, count in shared.items() if count >= share * self._sizes[name]]
        return min(enough, default=None)


def _by_gram(audits: Sequence[Task], length: int) -> dict[Gram, str]:
    return {gram: task.id for task in reversed(audits) for gram in _grams(words(task.prompt), length)}


def _coded(audits: Sequence[Task], language: Language) -> Iterable[tuple[str, Sequence[str]]]:
    return (
        (task.id, tokens(language, task.reference))
        for task in audits
        if task.language is language and _tells(task)
    )


def _tells(task: Task) -> bool:
    return len(tokens(task.language, task.reference)) >= _LEAST_TOKENS


def _grams(parts: Sequence[str], length: int) -> Iterable[Gram]:
    """Runs of parts; those of nothing but numbers are anybody's."""
    runs = zip(*(parts[start:] for start in range(length)), strict=False)
    return (run for run in runs if not all(part.isdigit() for part in run))
