"""What one student said to one benchmark, task by task, and whether that counts (L24). Pure."""

from collections.abc import Sequence
from statistics import median

import msgspec

from longwatch.kernel.digest import Digest, of_bytes
from longwatch.learn.auditing.benchmarks import Benchmark
from longwatch.learn.examining import Exam, Graded
from longwatch.learn.grading import extract
from longwatch.learn.student.binding import ScoreBinding, comparable
from longwatch.learn.tasks import Language, Verdict


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Whose record it is, and of what."""

    benchmark: str
    language: Language
    source: Digest
    tasks: Digest
    """Of the benchmark's tasks as we ask and grade them."""
    grader: Digest
    student: str
    """Digest of the adapter, or `base`."""

    def key(self, binding: ScoreBinding) -> Digest:
        """One digest of everything that the record depends on: the name of its file (L22)."""
        return of_bytes(msgspec.json.encode((self, binding)))


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What is reported of a record, and what it was computed from."""

    passed: int
    failed: int
    infra: int
    """Answers that our own trouble hid: neither passed nor failed."""
    answer_s: float
    """The median of the seconds that an answer took."""
    answers: Digest
    """Of the records of all tasks."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One student's answers to one benchmark, with their grades and the score."""

    subject: Subject
    exam: Exam
    score: Score


def subject_of(benchmark: Benchmark, student: str, grader: Digest) -> Subject:
    """Return whose record is wanted, and of what."""
    return Subject(
        benchmark=benchmark.name,
        language=benchmark.language,
        source=benchmark.source,
        tasks=of_bytes(msgspec.json.encode(benchmark.tasks)),
        grader=grader,
        student=student,
    )


def record_of(subject: Subject, exam: Exam) -> Record:
    """Return the record of a finished exam."""
    return Record(subject=subject, exam=exam, score=score_of(exam.graded))


def score_of(graded: Sequence[Graded]) -> Score:
    """Return the score of these answers."""
    verdicts = [one.grade.verdict for one in graded]
    return Score(
        passed=verdicts.count(Verdict.PASS),
        failed=verdicts.count(Verdict.FAIL),
        infra=verdicts.count(Verdict.INFRA),
        answer_s=median([one.seconds for one in graded]) if graded else 0.0,
        answers=of_bytes(msgspec.json.encode(graded)),
    )


def faults(record: Record, wanted: Subject, binding: ScoreBinding, benchmark: Benchmark) -> tuple[str, ...]:
    """Return why a record does not count, for a person; empty: it counts, and its answers need not be asked again."""
    found = [
        f"its {name} is another one"
        for name in Subject.__struct_fields__
        if getattr(record.subject, name) != getattr(wanted, name)
    ]
    found += [f"measured differently: {one}" for one in comparable(record.exam.binding, binding)]
    found += _incomplete(record.exam.graded, benchmark)
    if record.score != score_of(record.exam.graded):
        found.append("its score is not that of its answers")
    if record.score.infra:
        found.append(f"{record.score.infra} of its answers were not judged")
    return tuple(found)


def _incomplete(graded: Sequence[Graded], benchmark: Benchmark) -> list[str]:
    """Every task once, in the benchmark's order, and each graded for what was answered."""
    wanted = [(task.id, 0, task.id) for task in benchmark.tasks]
    asked = [(one.answer.task, one.answer.sample, one.grade.task) for one in graded]
    found = [] if wanted else ["the benchmark is empty"]
    if asked != wanted:
        found.append(
            f"it is not the {len(wanted)} tasks of the benchmark, each once, but {len(asked)} answers"
        )
    wrong = [one.answer.task for one in graded if extract(one.answer.text, benchmark.language) != one.code]
    return [*found, *(f"the code of {task} is not in its answer" for task in wrong)]
