"""Looks at the queue, the branch and the receipts afresh, and clears away what a dead step left."""

from longwatch.kernel import logs
from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.queue import guarding, staleness
from longwatch.migrate.queue.cards import Card, against_settings
from longwatch.migrate.queue.order import read_queue
from longwatch.migrate.repository import checkout, harvest
from longwatch.migrate.repository.git import Git
from longwatch.migrate.steps import CardRef, MigrateStep, Survey, Surveyed


def perform(work: Work[MigrateStep], step: Survey, place: Place) -> Outcome:
    """Return what is the case as evidence; a problem that a person has to solve is evidence too."""
    return succeeded(look(work, step, place))


def look(work: Work[MigrateStep], step: Survey, place: Place) -> Surveyed:
    """Return what is the case."""
    git = Git.open(place.repository)
    with work.span("survey"):
        _clear(work, git, place)
        removed = logs.prune((place.attempts, place.watch.steps), place.settings.host.logs_bytes)
        if removed:
            work.note(
                "logs.pruned", f"{len(removed)} old logs were removed: host.logs_bytes bounds them all."
            )
        try:
            cards = read(place)
        except ConfigError as error:
            return Surveyed(problem=str(error))
        head = git.head() or ""
        problem = _branch_problem(git, place, head)
        refs = tuple(CardRef(id=c.id, title=c.title, digest=c.digest, after=c.after) for c in cards)
        found = () if problem else staleness.stale(git, place.watch, head, step.done, refs)
        return Surveyed(head=head, cards=refs, stale=found, problem=problem)


def read(place: Place) -> tuple[Card, ...]:
    """Return the queue's cards in their order, fit for the configured checks."""
    cards = read_queue(place.cards).cards
    fit = against_settings(cards, place.settings.checks, place.settings.policy.required_kinds)
    problems = (*fit, *guarding.card_problems(cards, place))
    if problems:
        raise ConfigError("\n".join(f"{problem.where} {problem.mend}" for problem in problems))
    return cards


def _branch_problem(git: Git, place: Place, head: str) -> str:
    wanted, there = place.settings.repository.branch, git.branch()
    if there != wanted:
        return (
            f"{place.repository} has {there or 'no branch'} checked out, repository.branch is {wanted}: "
            f"`git switch {wanted}`, or change longwatch.toml."
        )
    operation = git.operation()
    if operation:
        return f"A {operation} is in progress in {place.repository}: finish or abort it."
    return "" if head else f"{place.repository} has no commit yet: make one."


def _clear(work: Work[MigrateStep], git: Git, place: Place) -> None:
    """No step runs beside a survey, so whatever lies in the work folder was left by one that died."""
    if not place.work.is_dir():
        return
    for left in sorted(place.work.iterdir()):
        if (left / "repo").is_dir():
            _salvage(work, git, place, left.name)
        checkout.remove(left, place.work)


def _salvage(work: Work[MigrateStep], git: Git, place: Place, name: str) -> None:
    folder = place.attempt(name)
    baseline = folder / "baseline"
    if not baseline.is_file():
        return
    try:
        kept = harvest.salvage(
            git,
            baseline.read_text(encoding="ascii").strip(),
            place.work / name / "repo",
            folder,
            patch=folder / "salvage.patch",
        )
    except LongwatchError as error:
        work.note("attempt.unsalvaged", f"{name}: what the cut attempt left could not be kept: {error}")
        return
    if kept.patch is not None:
        work.note("attempt.salvaged", f"{name}: the cut attempt's partial work is kept in {kept.patch}.")
