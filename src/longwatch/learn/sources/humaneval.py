"""HumanEval, the benchmark for audits: it never decides and never trains (L22, L25)."""

from pathlib import Path

import msgspec

from longwatch.learn.sources import asking, pinned
from longwatch.learn.tasks import Language, Program, Split, Task


class _Record(msgspec.Struct, frozen=True):
    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str


def load(path: Path) -> tuple[Task, ...]:
    """The 164 tasks from a copy of the published file, or from a folder of public files.

    Raises:
        NotReadyError: there is no copy.
        IntegrityError: it is another file than the published one.
    """
    read = pinned.read if path.is_dir() else pinned.read_at
    data = read(pinned.HUMANEVAL, path)
    return tuple(_task(record) for record in msgspec.json.Decoder(_Record).decode_lines(data))


def _task(record: _Record) -> Task:
    name = record.task_id.replace("/", ".")
    given = preamble(record.prompt, record.entry_point)
    return Task(
        id=name,
        problem=name,
        repository="humaneval",
        family="humaneval",
        language=Language.PYTHON,
        split=Split.AUDIT,
        prompt=asking.complete(Language.PYTHON, record.prompt),
        entry_point=record.entry_point,
        preamble=given,
        # Some tests call the helpers that the prompt gives: they are there as in the benchmark's own program.
        tests=Program(code=given + record.test),
        reference=record.prompt + record.canonical_solution,
    )


def preamble(prompt: str, entry_point: str) -> str:
    """Pure: the imports and helpers that the prompt gives before the function that it asks for.

    The benchmark runs prompt and completion as one program, so these are there whatever a completion says. A chat model
    answers with the whole function and often without them: they are put before it.
    """
    given = prompt[: prompt.rindex(f"def {entry_point}(")].strip("\n")
    return f"{given}\n" if given else ""
