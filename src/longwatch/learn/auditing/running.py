"""The step: for each benchmark the references first, then base and champion, then one report."""

from typing import NamedTuple

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn.acceptance import FlipRate, is_void, mcnemar
from longwatch.learn.auditing.benchmarks import Benchmark, chosen
from longwatch.learn.auditing.records import Record, faults, record_of, subject_of
from longwatch.learn.comparing import pairs_of
from longwatch.learn.evidence import succeeded
from longwatch.learn.examining import Examinee, examine, flip_rate, verify
from longwatch.learn.grading import Proof, identity, proved, scripts
from longwatch.learn.looks import Audited, LanguageAudit
from longwatch.learn.place import Place
from longwatch.learn.stages import StoppedError, read, staged
from longwatch.learn.steps import BASE, Audit, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import bind
from longwatch.learn.tasks import OneFile, Verdict

NEW_TOKENS = 512
"""Room for the longest answer, whatever the curriculum needs."""
PROMPT_TOKENS = 1024
"""Room for every prompt: a task that is not asked would be scored as failed."""


class _Kept(NamedTuple):
    record: Record
    digest: str
    """SHA-256 of its file."""
    reused: bool


def perform(work: Work[LearnStep], step: Audit, place: Place) -> Outcome:
    """Audit. Unchanged weights reuse their record; what was cut goes on after the last whole batch."""
    benchmarks = chosen(place.settings.audit, place.watch.root)
    try:
        found = tuple(audit(work, step, place, one) for one in benchmarks)
    except StoppedError:
        return Stopped("It goes on after the last whole batch.")
    names = dict.fromkeys(one.name for one in benchmarks)
    return succeeded(Audited(benchmark=" and ".join(names), languages=found))


def audit(work: Work[LearnStep], step: Audit, place: Place, benchmark: Benchmark) -> LanguageAudit:
    """Return the report on one language; it is void, and no score, where the references or the grading do not hold.

    Raises:
        StoppedError: a pause or stop came first.
    """
    broken = _broken(work, place, benchmark)
    if broken:
        return LanguageAudit(language=benchmark.language, void=broken)
    kept = {name: _kept(work, step, place, benchmark, name) for name in dict.fromkeys((BASE, step.champion))}
    base = _examinee(place, step, BASE)
    flips = flip_rate(work, place, base, benchmark.tasks, f"{benchmark.name}, base")
    return _report(benchmark, kept[BASE], kept[step.champion], flips)


def _broken(work: Work[LearnStep], place: Place, benchmark: Benchmark) -> str:
    """The reference solutions run first: where they do not pass, no answer can be judged (L23)."""
    where = place.settings.where
    grader = identity([benchmark.language], where)

    def prove() -> Proof:
        with work.span("grade", "reference solutions"):
            proof = proved(benchmark.language, benchmark.tasks, should_stop=work.should_stop, where=where)
        if work.should_stop():
            raise StoppedError
        return proof

    key = of_bytes(msgspec.json.encode((grader, benchmark.language, benchmark.tasks)))
    # A toolchain that is mended is tried again; one that holds is not, until it changes.
    proof = staged(place.audits / f"{key}.proof.json", Proof, prove, keep=lambda one: one.holds)
    if proof.holds:
        return ""
    missing = scripts.missing(benchmark.language, where)
    if missing:
        return scripts.advice(benchmark.language, missing, where)
    named = ", ".join(one.task for one in proof.broken[:5])
    return f"{len(proof.broken)} of {proof.tried} known answers are not judged right here ({named}): {proof.broken[0].why}"


def _kept(work: Work[LearnStep], step: Audit, place: Place, benchmark: Benchmark, name: str) -> _Kept:
    """A student's record: the one that is there, if it counts, or a new one."""
    who = _examinee(place, step, name)
    verify(name, who.adapter)
    subject = subject_of(benchmark, name, identity([benchmark.language], place.settings.where))
    binding = bind(place.settings.student, batch=who.batch, sampling=who.sampling)
    path = place.audits / f"{subject.key(binding)}.json"
    try:
        there = read(path, Record)
        wrong = faults(there, subject, binding, benchmark) if there else ()
    except IntegrityError as error:
        there, wrong = None, (str(error),)
    if wrong:
        work.note("audit.discarded", f"The record {path.name} does not count: {'; '.join(wrong)}. Made anew.")
    if there and not wrong:
        return _Kept(there, of_bytes(msgspec.json.encode(there)), reused=True)
    made = record_of(subject, examine(work, place, who, benchmark.tasks, f"{benchmark.name}, {name[:12]}"))
    content = msgspec.json.encode(made)
    files.make_folder(path.parent)
    files.replace(path, content)
    return _Kept(made, of_bytes(content), reused=False)


def _examinee(place: Place, step: Audit, name: str) -> Examinee:
    sampling = Sampling(max_new_tokens=NEW_TOKENS, max_prompt_tokens=PROMPT_TOKENS)
    return Examinee(
        name=name,
        adapter=place.adapter(name, step.number),
        sampling=sampling,
        batch=place.settings.student.batch,
    )


def _report(benchmark: Benchmark, base: _Kept, champion: _Kept, flips: FlipRate) -> LanguageAudit:
    pairs = pairs_of(benchmark.tasks, base.record.exam, champion.record.exam)
    if is_void(pairs):
        hidden = sum(pair.infra for pair in pairs)
        return LanguageAudit(
            language=benchmark.language, void=f"{hidden} of {len(pairs)} answers were not judged here"
        )
    judged = [pair for pair in pairs if not pair.infra]
    gained = tuple(pair.task for pair in judged if pair.difference > 0)
    lost = tuple(pair.task for pair in judged if pair.lost)
    return LanguageAudit(
        language=benchmark.language,
        total=len(judged),
        base_passed=sum(pair.champion is Verdict.PASS for pair in judged),
        champion_passed=sum(pair.challenger is Verdict.PASS for pair in judged),
        gained=gained,
        lost=lost,
        p=mcnemar(len(gained), len(lost)),
        answer_s=champion.record.score.answer_s,
        reused=base.reused and champion.reused,
        flips=flips,
        one_process=any(isinstance(task.tests, OneFile) for task in benchmark.tasks),
        base_record=base.digest,
        champion_record=champion.digest,
    )
