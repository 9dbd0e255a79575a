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
from longwatch.migrate.checks import weakening
from longwatch.migrate.checks.judgement import Evidence, rule
from longwatch.migrate.checks.running import Checking, CheckRun, run_all
from longwatch.migrate.checks.signing import sign
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.cards import Card, checks_of
from longwatch.migrate.repository import checkout
from longwatch.migrate.repository.git import Change, Git
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
    card = next((card for card in survey.read(place) if card.id == step.job), None)
    if card is None or card.digest != step.card:
        reason = "its card changed while it was worked on"
        return succeeded(Refused(kind=Refusal.CHECKS, reasons=(reason,), counts=False))
    court = _court(work, step, place, card)
    try:
        evidence = _observe(court)
    except StoppedError:
        return Stopped("The verification begins again at the next run.")
    finally:
        checkout.remove(court.folder, place.work)
    ruling = rule(evidence, card)
    if ruling.reasons:
        return succeeded(Refused(kind=Refusal.CHECKS, reasons=ruling.reasons, failing=ruling.failing))
    with work.span("sign", step.title):
        receipt = sign(place, court.git, court.candidate, card, tuple(evidence.candidate.values()))
    return succeeded(Verified(receipt=receipt, checks=tuple(evidence.candidate)))


def _court(work: Work[MigrateStep], step: Verify, place: Place, card: Card) -> Court:
    checks = checks_of(card, place.settings.checks)
    name = f"{step.candidate.attempt}.verify"
    checkout.remove(place.work / name, place.work)
    return Court(
        work=work,
        place=place,
        git=Git.open(place.repository),
        card=card,
        candidate=step.candidate,
        checks=checks,
        bench=bench_of(place, tuple(check.argv[0] for check in checks)),
        folder=place.work / name,
        kept=files.make_folder(place.attempt(step.candidate.attempt) / "verify"),
    )


def _observe(court: Court) -> Evidence:
    candidate, git = court.candidate, court.git
    changes = git.diff_names(candidate.baseline, candidate.commit)
    tests = patterns.patterns_of_tests(court.place.settings.repository)
    touched = tuple(change for change in changes if tests.matches(change.path))
    on_candidate = _run(court, candidate.commit, "candidate", court.checks)
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


def _run(court: Court, commit: str, name: str, checks: tuple[Check, ...]) -> Runs:
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
    checkout.remove(folder, court.place.work)
    if changed:
        why = f"the checks changed files that they ran on: {', '.join(changed[:20])}"
        return {key: msgspec.structs.replace(run, passed=False, reason=why) for key, run in runs.items()}
    return runs


def _baseline(court: Court) -> Runs:
    """Run the checks on the tree before the change, or use what was kept of the same checks on the same tree."""
    tree = court.git.tree_of(court.candidate.baseline)
    key = of_bytes(msgspec.json.encode((tree, court.checks, court.place.settings.sandbox)))
    kept = files.make_folder(court.place.baselines) / f"{key}.json"
    try:
        return msgspec.json.decode(files.read_bounded(kept, 512 * 1024**2), type=dict[str, CheckRun])
    except FileNotFoundError:
        runs = _run(court, court.candidate.baseline, "baseline", court.checks)
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
        return _run(court, commit, name, checks)
    finally:
        court.git.delete_ref(ref)


def _findings(
    court: Court, changes: Iterable[Change], touched: tuple[Change, ...]
) -> Iterable[weakening.Finding]:
    tests = {change.path for change in touched}
    for change in changes:
        before = _text(court.git, court.candidate.baseline, change.path)
        after = _text(court.git, court.candidate.commit, change.path)
        if change.path in tests or change.path.endswith(_TESTS_INSIDE):
            yield from weakening.findings(change.path, before, after)
        if change.path not in tests and after is not None:
            yield from weakening.suspicious(change.path, before, after)


def _text(git: Git, commit: str, path: str) -> str | None:
    content = git.show(commit, path)
    return None if content is None else content.decode("utf-8", "replace")
