"""MultiPL-E: HumanEval's problems in other languages, for audits only. Its licence forbids use as training data (L1)."""

from collections.abc import Collection
from pathlib import Path

import msgspec

from longwatch.learn.grading import joining
from longwatch.learn.grading.languages import SCRIPTS
from longwatch.learn.sources import asking, pinned
from longwatch.learn.tasks import Language, OneFile, Program, Split, Task


class _Record(msgspec.Struct, frozen=True):
    name: str
    prompt: str
    tests: str
    stop_tokens: tuple[str, ...]


def chosen(languages: Collection[Language]) -> tuple[Language, ...]:
    """The languages of an audit: those that are named, or all there are."""
    return tuple(language for language in pinned.MULTIPL_E if not languages or language in languages)


def load(language: Language, folder: Path) -> tuple[Task, ...]:
    """The tasks in one language, from a copy below a folder of public files.

    Raises:
        NotReadyError: there is no copy.
        IntegrityError: it is another file than the published one.
    """
    data = pinned.read(pinned.MULTIPL_E[language], folder)
    return tuple(_task(language, record) for record in msgspec.json.Decoder(_Record).decode_lines(data))


def _task(language: Language, record: _Record) -> Task:
    number = record.name.split("_")[1]
    return Task(
        id=f"{record.name}.{language}",
        # HumanEval's own names, so that a problem is one in all languages.
        problem=f"HumanEval.{number}",
        repository="multipl-e",
        family="multipl-e",
        language=language,
        split=Split.AUDIT,
        prompt=asking.complete(language, record.prompt),
        entry_point=joining.asked_for(record.prompt, SCRIPTS.get(language, SCRIPTS[Language.TYPESCRIPT])),
        tests=_tests(language, record),
    )


def _tests(language: Language, record: _Record) -> Program | OneFile:
    # The one language of these whose tests can ask another process for each result.
    if language is Language.JAVASCRIPT:
        return Program(code=record.tests)
    return OneFile(given=record.prompt, code=record.tests, stops=record.stop_tokens)
