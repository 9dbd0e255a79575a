"""Our own look at a candidate: the checks in clean checkouts that no worker touched, judged, and signed.

Up to four trees are looked at, each in a fresh checkout: the candidate; the baseline (its runs are kept and used
again); the candidate with the old tests; and the baseline with the new tests.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.migrate import patterns
from longwatch.migrate.bench import Bench, bench_of
from longwatch.migrate.checks import acceptance, cases, weakening
from longwatch.migrate.checks.judgement import Evidence, rule
from longwatch.migrate.checks.running import Checking, CheckRun, run_all
from longwatch.migrate.checks.signing import Witnessed, sign
from longwatch.migrate.declared import Bound
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.cards import Card, checks_of
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.repository import checkout
from longwatch.migrate.repository.git import Change, Entry, Git
from longwatch.migrate.repository.overlay import overlay
from longwatch.migrate.settings import Check
from longwatch.migrate.steps import Candidate, MigrateStep, Refusal, Refused, Verified, Verify

_TESTS_INSIDE = (".rs",)
"""Languages whose unit tests stand in the file that they test."""
OVERLAYS = "refs/longwatch/overlays/"


class StoppedError(Exception):
    """A pause or stop cut the verification; nothing was decided."""


class Court(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one verification works with."""

    work: Work[MigrateStep]
    place: Place
    git: Git
    card: Card
    candidate: Candidate
    checks: tuple[Check, ...]
    bench: Bench
    folder: Path
    """Of the checkouts."""
    kept: Path
    """Of logs and reports; no worker ever wrote there."""


Runs = Mapping[str, CheckRun]


def perform(work: Work[MigrateStep], step: Verify, place: Place) -> Outcome:
    """Verify a candidate, and leave receipts if nothing speaks against it."""
    queue = survey.read(place)
    card = queue.card(step.job, step.card)
    if card is None:
        reason = "its card changed while it was worked on"
        return succeeded(Refused(kind=Refusal.CHECKS, reasons=(reason,), counts=False))
    court = _court(work, step, place, card)
    try:
        if card.finishes:
            return succeeded(_accept(court, queue))
        return succeeded(_verify(court))
    except StoppedError:
        return Stopped("The verification begins again at the next run.")
    finally:
        checkout.remove(court.folder, place.work)


def _verify(court: Court) -> Refused | Verified:
    before = _references(court)
    candidate = _run(court, court.candidate.commit, "candidate", court.checks)
    evidence = _observe(court, candidate.runs)
    undelivered = (*_undelivered(court, candidate), *_changed_sources(before, _references(court)))
    ruling = rule(msgspec.structs.replace(evidence, undelivered=undelivered), court.card)
    if ruling.reasons:
        return Refused(kind=Refusal.CHECKS, reasons=ruling.reasons, failing=ruling.failing)
    seen = Witnessed(runs=tuple(candidate.runs.values()), references=before, products=candidate.products)
    with court.work.span("sign", court.card.title):
        receipt = sign(court.place, court.git, court.candidate, court.card, seen)
    return Verified(receipt=receipt, checks=tuple(candidate.runs), references=before)


def _accept(court: Court, queue: survey.Read) -> Refused | Verified:
    """Verify a handoff: the checks pass in a clean checkout, and there the queue and the manifest prove it (M32)."""
    folder = court.folder / "candidate" / "repo"
    ran = _run(court, court.candidate.commit, "candidate", court.checks, keep=True)
    failed = tuple(
        f"check {name} failed: {run.reason}. Log: {run.log}"
        for name, run in ran.runs.items()
        if not run.passed
    )
    with court.work.span("check:handoff", court.card.title):
        found = acceptance.prove(court.place, court.card, court.candidate, queue, Folder(folder))
    if failed or found.reasons:
        failing = tuple(name for name, run in ran.runs.items() if not run.passed)
        return Refused(
            kind=Refusal.CHECKS, reasons=(*failed, *found.reasons), failing=failing or ("handoff",)
        )
    seen = Witnessed(runs=tuple(ran.runs.values()), products=found.artifacts)
    with court.work.span("sign", court.card.title):
        receipt = sign(court.place, court.git, court.candidate, court.card, seen)
    return Verified(receipt=receipt, checks=tuple(ran.runs), handed_to=found.successor)


def _court(work: Work[MigrateStep], step: Verify, place: Place, card: Card) -> Court:
    checks = checks_of(card, place.settings.checks)
    checkout.remove(place.work / step.folder, place.work)
    return Court(
        work=work,
        place=place,
        git=Git.open(place.repository),
        card=card,
        candidate=step.candidate,
        checks=checks,
        bench=bench_of(place, tuple(check.argv[0] for check in checks)),
        folder=place.work / step.folder,
        kept=files.make_folder(place.attempt(step.candidate.attempt) / "verify"),
    )


def _references(court: Court) -> tuple[Bound, ...]:
    """Digest the sources that the worker declared, as they are now."""
    declared, source = court.candidate.declared, survey.source(court.place)
    if declared is None or source is None:
        return ()
    with court.work.span("digest", "sources"):
        found = ((path, source.sha256(path)) for path in declared.references)
        return tuple(Bound(path=path, sha256=sha256 or "") for path, sha256 in found)


def _changed_sources(before: tuple[Bound, ...], after: tuple[Bound, ...]) -> Iterable[str]:
    for old, new in zip(before, after, strict=True):
        if old != new or not new.sha256:
            yield f"source {old.path} changed or vanished while the checks ran"


def _undelivered(court: Court, ran: "Ran") -> Iterable[str]:
    """Yield what was declared about the source system and is not what the checks showed."""
    declared = court.candidate.declared
    if declared is None:
        return
    yield from cases.unshown(declared.cases, {name: run.seen for name, run in ran.runs.items()})
    there = {one.path for one in ran.products}
    for product in declared.artifacts:
        if product.path not in there:
            yield f"artifact {product.path} ({product.kind}) is not there after the checks ran in a clean checkout"


def _observe(court: Court, on_candidate: Runs) -> Evidence:
    candidate, git = court.candidate, court.git
    changes = git.diff_names(candidate.baseline, candidate.commit)
    tests = patterns.patterns_of_tests(court.place.settings.repository)
    touched = tuple(change for change in changes if tests.matches(change.path))
    if not all(run.passed for run in on_candidate.values()):
        return Evidence(candidate=on_candidate, baseline={})
    unchanged = candidate.commit == candidate.baseline
    testing = tuple(c for c in court.checks if c.kind == "test" or on_candidate[c.name].tests is not None)
    return Evidence(
        candidate=on_candidate,
        baseline=on_candidate if unchanged else _baseline(court),
        old_tests=_old_tests(court, testing, touched),
        new_tests=_new_tests(court, testing, touched),
        findings=tuple(_findings(court, changes, touched)),
        fails_before=frozenset(check.name for check in court.checks if check.fails_before),
        unchanged=unchanged,
    )


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks showed on one tree, and the declared artifacts that lay there afterwards."""

    runs: Runs
    products: tuple[Bound, ...]


def _run(court: Court, commit: str, name: str, checks: tuple[Check, ...], *, keep: bool = False) -> Ran:
    """Run checks in a fresh checkout of a commit, and prove afterwards that they ran on that commit (M17, M24)."""
    folder = court.folder / name / "repo"
    with court.work.span("checkout", name):
        checkout.clean_checkout(court.git, commit, folder)
    checking = Checking(
        bench=court.bench,
        checkout=folder,
        evidence=files.make_folder(court.kept / name),
        settings=court.place.settings,
        work=court.work,
    )
    runs = run_all(checks, checking)
    if court.work.should_stop():
        raise StoppedError
    with court.work.span("digest", name):
        changed = checkout.unchanged(court.git, commit, folder)
        products = _products(court, Folder(folder))
    if not keep:
        checkout.remove(folder, court.place.work)
    if changed:
        why = f"the checks changed files that they ran on: {', '.join(changed[:20])}"
        runs = {key: msgspec.structs.replace(run, passed=False, reason=why) for key, run in runs.items()}
    return Ran(runs=runs, products=products)


def _products(court: Court, folder: Folder) -> tuple[Bound, ...]:
    declared = court.candidate.declared
    found = ((one.path, folder.sha256(one.path)) for one in (declared.artifacts if declared else ()))
    return tuple(Bound(path=path, sha256=sha256) for path, sha256 in found if sha256 is not None)


def _baseline(court: Court) -> Runs:
    """Run the checks on the tree before the change, or use what was kept of the same checks on the same tree."""
    tree = court.git.tree_of(court.candidate.baseline)
    key = of_bytes(
        msgspec.json.encode(
            (
                tree,
                court.checks,
                court.place.settings.sandbox,
                court.bench.sandbox.toolchain(),
                court.place.profile,
            )
        )
    )
    kept = files.make_folder(court.place.baselines) / f"{key}.json"
    # Jobs that began together ask about the same tree: the first runs the checks, the others wait for what it saw.
    with files.locked(kept.with_suffix(".lock")):
        return _kept_or_run(court, kept)


def _kept_or_run(court: Court, kept: Path) -> Runs:
    try:
        return msgspec.json.decode(files.read_bounded(kept, 512 * 1024**2), type=dict[str, CheckRun])
    except FileNotFoundError:
        runs = _run(court, court.candidate.baseline, "baseline", court.checks).runs
        files.replace(kept, msgspec.json.encode(runs))
        return runs
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"{kept} is damaged ({error}): remove it, and the checks run again.") from error


def _old_tests(court: Court, checks: tuple[Check, ...], touched: tuple[Change, ...]) -> Runs | None:
    """Run the old tests on the new code, if any old test file was changed or removed."""
    old = tuple(change.path for change in touched if change.kind != "A")
    if not old:
        return None
    return _mixed(court, checks, (court.candidate.commit, court.candidate.baseline), old, "old-tests")


def _new_tests(court: Court, checks: tuple[Check, ...], touched: tuple[Change, ...]) -> Runs | None:
    """Run the new tests on the old code, if any test file was changed or added."""
    new = tuple(change.path for change in touched if change.kind != "D")
    if not new:
        return None
    return _mixed(court, checks, (court.candidate.baseline, court.candidate.commit), new, "new-tests")


def _mixed(
    court: Court,
    checks: tuple[Check, ...],
    base_and_donor: tuple[str, str],
    paths: tuple[str, ...],
    name: str,
) -> Runs:
    ref = f"{OVERLAYS}{court.candidate.attempt}.{name}"
    commit = overlay(court.git, *base_and_donor, paths, ref)
    try:
        return _run(court, commit, name, checks).runs
    finally:
        court.git.delete_ref(ref)


def _findings(
    court: Court, changes: tuple[Change, ...], touched: tuple[Change, ...]
) -> Iterable[weakening.Finding]:
    tests, git, candidate = {change.path for change in touched}, court.git, court.candidate
    paths = tuple(change.path for change in changes)
    old, new = (git.files(commit, *paths) for commit in (candidate.baseline, candidate.commit))
    for change in changes:
        before, after = (_text(git, side.get(change.path)) for side in (old, new))
        if change.path in tests or change.path.endswith(_TESTS_INSIDE):
            yield from weakening.findings(change.path, before, after)
        if change.path not in tests and after is not None:
            yield from weakening.suspicious(change.path, before, after)


def _text(git: Git, file: Entry | None) -> str | None:
    return None if file is None else git.blob(file.blob).decode("utf-8", "replace")
