"""What a migrate watch does next. Pure: the state, the steps that run, the settings and the moment decide.

Several jobs may be worked at at once, each on the branch as it was when its attempt began. They land one by one: the
first that passed is committed; one whose baseline is not the branch any more is merged onto it and verified again before
its turn is over (specification M37).
"""

from collections.abc import Mapping

import msgspec

from longwatch.kernel.instant import Instant, remaining_s
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.line import Decision, Finish, Start, Wait
from longwatch.migrate import budget
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import (
    Attempt,
    Candidate,
    CardRef,
    Commit,
    Handoff,
    Merge,
    MigrateStep,
    Push,
    Survey,
    Surveyed,
    Verify,
)

IN_HAND = frozenset({Status.CANDIDATE, Status.VERIFIED, Status.COMMITTED})
FRESH_S = 5.0
"""A survey older than this is taken again before anything is decided from it."""
FRESH_BESIDE_S = 60.0
"""The same while a job is in work: what begins then is merged and verified on the branch as it is."""
_MOST_NAMED = 20


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """All that a decision is made from."""

    settings: MigrateSettings
    state: MigrateState
    running: Mapping[str, MigrateStep]
    now: Instant

    def busy(self) -> frozenset[str]:
        """Return the jobs that an attempt works at, or that are on their way to the branch."""
        in_hand = (name for name, job in self.state.jobs.items() if job.status in IN_HAND)
        running = (step.job for step in self.running.values() if not isinstance(step, Survey))
        return frozenset((*in_hand, *running))

    def runs(self, *kinds: type[MigrateStep]) -> int:
        """Return how many steps of these kinds run."""
        return sum(isinstance(step, kinds) for step in self.running.values())


def decide(scene: Scene) -> Decision[MigrateStep]:
    """Return what to do next; one step at a time, so that whoever counts pieces of work can stop in between."""
    if scene.state.unsettled:
        return Finish(Verdict.NEEDS_RECONCILE, scene.state.unsettled)
    if scene.runs(Survey):
        return Wait("queue and repository are looked at")
    step = _landing(scene) or _verification(scene)
    if step is not None:
        return Start((step,))
    jobs = scene.state.jobs.values()
    held = next((job.held for job in jobs if job.status is Status.VERIFIED and job.held), "")
    if held:
        return Finish(Verdict.BLOCKED, held)
    busy = scene.busy()
    # While a step writes into the person's repository, what is seen there will not last.
    if len(busy) >= scene.settings.worker.max_parallel or scene.runs(Commit, Push):
        return Wait("as many jobs as may be are in work")
    return _look(scene, busy)


# -- what is in hand


def _landing(scene: Scene) -> MigrateStep | None:
    """Return the next step of the one job whose turn it is to land, if there is one and its turn begins or goes on now."""
    state = scene.state
    gate = [
        (name, job, job.candidate)
        for name, job in state.jobs.items()
        if job.candidate is not None and job.status in {Status.VERIFIED, Status.COMMITTED} and not job.held
    ]
    if not gate or _turn_taken(scene):
        return None
    name, job, candidate = min(gate, key=lambda one: _rank(one[1], one[2], state.head))
    ident = f"{name}.{job.number}.{{}}.{state.serial}"
    if job.status is Status.COMMITTED:
        return Push(id=ident.format("push"), job=name, commit=job.commit)
    if candidate.baseline != state.head:
        return Merge(id=ident.format("merge"), job=name, candidate=candidate, onto=state.head)
    return Commit(
        id=ident.format("commit"),
        job=name,
        title_text=_title(state, name),
        candidate=candidate,
        receipt=job.receipt,
        ask_only=not scene.settings.publish.commit,
    )


def _turn_taken(scene: Scene) -> bool:
    """Return whether a job is being brought onto the branch, or is verified on it: nothing else may land before it."""
    merged = any(
        job.status is Status.CANDIDATE and job.candidate is not None and job.candidate.merged
        for job in scene.state.jobs.values()
    )
    return merged or scene.runs(Merge, Commit, Push) > 0


def _rank(job: Job, candidate: Candidate, head: str) -> tuple[bool, bool, bool]:
    """First what is on the branch and waits for its push, then what was merged onto it, then what needs no merge."""
    return job.status is not Status.COMMITTED, not candidate.merged, candidate.baseline != head


def _title(state: MigrateState, name: str) -> str:
    cards = state.survey.cards if state.survey else ()
    return next((card.title for card in cards if card.id == name), name)


def _verification(scene: Scene) -> Verify | None:
    verified = {step.job for step in scene.running.values() if isinstance(step, Verify)}
    for name, job in scene.state.jobs.items():
        if job.status is Status.CANDIDATE and job.candidate is not None and name not in verified:
            ident = f"{name}.{job.number}.verify.{scene.state.serial}"
            return Verify(id=ident, job=name, candidate=job.candidate, card=job.card)
    return None


# -- what to begin


def _look(scene: Scene, busy: frozenset[str]) -> Decision[MigrateStep]:
    state, survey = scene.state, scene.state.survey
    if survey is None or not _fresh(state, scene.now, FRESH_BESIDE_S if busy else FRESH_S):
        return Start((_survey(scene),))
    if survey.problem:
        return Finish(Verdict.BLOCKED, survey.problem)
    if state.head and state.head != survey.head:
        branch = scene.settings.repository.branch
        return Finish(Verdict.BLOCKED, _moved(state.head, survey.head, branch))
    return _next(scene, survey, busy)


def _survey(scene: Scene) -> Survey:
    running = scene.running.values()
    folders = (step.folder for step in running if isinstance(step, Attempt | Handoff | Verify))
    state = scene.state
    return Survey(id=f"survey.{state.serial}", done=state.finished, task=state.task, busy=tuple(folders))


def _next(scene: Scene, survey: Surveyed, busy: frozenset[str]) -> Decision[MigrateStep]:
    jobs, stale = scene.state.jobs, dict(survey.stale)
    done = frozenset(n for n, j in jobs.items() if j.status is Status.DONE and n not in stale)
    blocked = [n for n, j in jobs.items() if j.status is Status.BLOCKED]
    open_cards = [c for c in survey.cards if c.id not in done and c.id not in blocked]
    ready = [c for c in open_cards if c.id not in busy and done.issuperset(c.after)]
    waits = {card.id: _due_s(jobs.get(card.id), scene.now) for card in ready}
    due = _apart(survey, busy, [card for card in ready if waits[card.id] <= 0])
    if due:
        return _begin(scene, survey, next((c for c in due if c.id not in stale), due[0]), done)
    if busy:
        return Wait("nothing more can begin before a job in work ends")
    if not ready:
        return _end(survey, scene.state, blocked, open_cards)
    return Wait(f"the next attempt at {ready[0].id} begins after its retry delay", min(waits.values()))


def _apart(survey: Surveyed, busy: frozenset[str], cards: list[CardRef]) -> list[CardRef]:
    """Leave out what owns a file of a job in work, and what hands off while one is: it would not land."""
    taken = {path for card in survey.cards if card.id in busy for path in card.files}
    return [card for card in cards if taken.isdisjoint(card.files) and not (busy and card.finishes)]


def _begin(scene: Scene, survey: Surveyed, card: CardRef, done: frozenset[str]) -> Decision[MigrateStep]:
    if card.finishes:
        return Start((_handoff(scene.state, survey, card),))
    reserved = scene.runs(Attempt)
    spent = budget.spent(scene.settings.budget, scene.state, running=reserved)
    if spent:
        return Wait(spent) if scene.busy() else Finish(Verdict.EXHAUSTED, spent)
    return Start((_attempt(scene.state, survey, card, done),))


def _attempt(state: MigrateState, survey: Surveyed, card: CardRef, done: frozenset[str]) -> Attempt:
    job = state.jobs.get(card.id, Job())
    number = job.number + 1
    return Attempt(
        id=f"{card.id}.{number}.attempt.{state.serial}",
        job=card.id,
        number=number,
        baseline=survey.head,
        card=card.digest,
        failure=job.failure,
        done=tuple(sorted(done)),
    )


def _handoff(state: MigrateState, survey: Surveyed, card: CardRef) -> Handoff:
    number = state.jobs.get(card.id, Job()).number + 1
    return Handoff(
        id=f"{card.id}.{number}.attempt.{state.serial}",
        job=card.id,
        task=card.finishes,
        number=number,
        baseline=survey.head,
        card=card.digest,
        done=tuple(one for one in state.finished if one.job in card.after),
    )


def _fresh(state: MigrateState, now: Instant, fresh_s: float) -> bool:
    at = state.surveyed_at
    return at is not None and at.boot_id == now.boot_id and now.boottime_s - at.boottime_s < fresh_s


def _due_s(job: Job | None, now: Instant) -> float:
    if job is None or job.not_before is None:
        return 0.0
    return remaining_s(job.not_before, now)


# -- why nothing begins


def _moved(old: str, new: str, branch: str) -> str:
    return (
        f"The branch {branch} moved from {old[:12]} to {new[:12]} outside the watch. Review it with "
        f"`git log {old[:12]}..{new[:12]}`; `longwatch resume --accept --refresh-baseline` goes on from there."
    )


def _end(
    survey: Surveyed, state: MigrateState, blocked: list[str], open_cards: list[CardRef]
) -> Decision[MigrateStep]:
    if survey.planning:
        return Finish(Verdict.BLOCKED, f"planning_required: {survey.planning}")
    if survey.ended:
        return Finish(
            Verdict.COMPLETE, "The queue is at its end, and every unit of the inventory is verified."
        )
    if not survey.cards:
        return Finish(Verdict.COMPLETE, "There is nothing to do: the folder of task cards holds no card yet.")
    known = {card.id for card in survey.cards}
    held = [name for name in blocked if name in known]
    if not held:
        return Finish(Verdict.COMPLETE, f"All {len(survey.cards)} jobs are done and verified.")
    waiting = f" Waiting for them: {_named(open_cards)}." if open_cards else ""
    reasons = "; ".join(f"{name}: {state.jobs[name].failure}" for name in held)
    return Finish(Verdict.BLOCKED, f"{len(held)} of {len(survey.cards)} jobs are blocked.{waiting} {reasons}")


def _named(cards: list[CardRef]) -> str:
    more = f" and {len(cards) - _MOST_NAMED} more" if len(cards) > _MOST_NAMED else ""
    return ", ".join(card.id for card in cards[:_MOST_NAMED]) + more
