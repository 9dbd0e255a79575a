"""Champion and challenger on the same tasks under one binding: blocks of fresh problems, and the sealed set."""

from collections.abc import Sequence

from longwatch.kernel.errors import TransientError
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn.acceptance import (
    CONFIRMATION_TASKS,
    Confirmation,
    FlipRate,
    Pair,
    Ruling,
    StrictConfirmation,
    StrictRuling,
    anchor,
    confirm,
    guards,
    infra_share,
    is_void,
    lost,
    outcomes,
    rule,
    veto,
)
from longwatch.learn.evidence import succeeded
from longwatch.learn.examining import Exam, Examinee, examine, flip_rate
from longwatch.learn.place import Place
from longwatch.learn.sides import tasks_of
from longwatch.learn.stages import StoppedError, read, staged
from longwatch.learn.steps import Anchor, Anchored, Confirm, Confirmed, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import require_comparable
from longwatch.learn.tasks import Split, Task, Verdict


def confirmation(work: Work[LearnStep], step: Confirm, place: Place) -> Outcome:
    """Grade one block of fresh problems, fold it into the evidence, and rule.

    Raises:
        TransientError: the block is void; what our own trouble hid is graded again after a while.
    """
    try:
        return succeeded(_block(work, step, place))
    except StoppedError:
        return Stopped("The evidence so far is kept.")


def _block(work: Work[LearnStep], step: Confirm, place: Place) -> Confirmed:
    name = f"{step.window.number:06d}-{step.block:04d}.json"
    earlier = pairs_before(place, step.number, name)
    fresh = tasks_of(place.windows, step.window, Split.CONFIRM)
    block, last = _asked(fresh, step, place.settings.acceptance.block)
    seen = {pair.problem for pair in earlier}
    # An endless source repeats itself some day, and a problem counts once.
    tasks = tuple(task for task in block if task.problem not in seen)
    label = f"block {step.block}"
    champion = _exam(work, place, step, step.champion, tasks, f"champion, {label}")
    challenger = _exam(work, place, step, step.challenger.adapter, tasks, f"challenger, {label}")
    pairs = pairs_of(tasks, champion, challenger)
    _refuse_void(work, step, pairs)
    pairs = staged(place.experiment(step.number) / "pairs" / name, tuple[Pair, ...], lambda: pairs)
    flips = _flips(work, place, step, fresh)
    if isinstance(step.confirmation, StrictConfirmation):
        ruling: Ruling | StrictRuling = veto(pairs, step.confirmation)
    else:
        ruling = _rule(place, step.confirmation, earlier, pairs, flips)
    return Confirmed(
        ruling=ruling,
        champion_passed=champion.passed,
        challenger_passed=challenger.passed,
        problems=len(outcomes(pairs)),
        flips=flips,
        last_block=last,
    )


def _refuse_void(work: Work[LearnStep], step: Confirm, pairs: Sequence[Pair]) -> None:
    """Count nothing of a block in which too much is our own trouble (L10): leaving that out might choose."""
    if is_void(pairs):
        text = f"Block {step.block} is void: {infra_share(pairs):.0%} of its pairs are our own trouble, not an answer's."
        work.note("block.void", text)
        raise TransientError(f"{text} It is graded again; `longwatch doctor` looks for the cause.")


def _asked(fresh: tuple[Task, ...], step: Confirm, size: int) -> tuple[tuple[Task, ...], bool]:
    """Return the tasks of this step, in the pre-committed order, and whether the window has no more."""
    if isinstance(step.confirmation, StrictConfirmation):
        return fresh[:CONFIRMATION_TASKS], True
    return _of_block(fresh, step.block, size)


def _rule(
    place: Place,
    begun: Confirmation,
    earlier: tuple[Pair, ...],
    block: tuple[Pair, ...],
    flips: FlipRate,
) -> Ruling:
    settings = place.settings.acceptance
    seen = frozenset(pair.problem for pair in earlier)
    state = confirm(begun, outcomes(block), seen)
    every = (*earlier, *block)
    found = guards(every, margin_pooled=settings.margin_pooled, margin_slice=settings.margin_slice)
    return rule(state, found, lost(every, flips))


def _of_block(fresh: tuple[Task, ...], block: int, size: int) -> tuple[tuple[Task, ...], bool]:
    """Return the tasks of one block of problems, in the pre-committed order, and whether it is the last."""
    problems = list(dict.fromkeys(task.problem for task in fresh))
    wanted = set(problems[block * size : (block + 1) * size])
    return tuple(task for task in fresh if task.problem in wanted), (block + 1) * size >= len(problems)


def pairs_before(place: Place, number: int, name: str = "~") -> tuple[Pair, ...]:
    """Return the pairs of an experiment's blocks before the one called `name`, also of earlier windows."""
    folder = place.experiment(number) / "pairs"
    names = sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []
    blocks = (read(folder / one, tuple[Pair, ...]) or () for one in names if one < name)
    return tuple(pair for block in blocks for pair in block)


def _flips(work: Work[LearnStep], place: Place, step: Confirm, fresh: tuple[Task, ...]) -> FlipRate:
    """How often the champion's own passing answers fail again, which explains some lost tasks (L15, L18)."""
    tasks, _ = _of_block(fresh, 0, place.settings.acceptance.block)
    return flip_rate(work, place, _examinee(place, step, step.champion), tasks, "champion")


def comparison(work: Work[LearnStep], step: Anchor, place: Place) -> Outcome:
    """Compare the champion, or who would be, with base and with the best ever on the sealed set."""
    tasks = tasks_of(place.windows, step.window, Split.SEALED)
    margin = place.settings.acceptance.margin_pooled
    try:
        mine = _exam(work, place, step, step.candidate, tasks, "challenger, sealed")
        theirs = [
            (rival, _exam(work, place, step, rival, tasks, f"{rival[:12]}, sealed")) for rival in step.rivals
        ]
        flips = flip_rate(work, place, _examinee(place, step, step.candidate), tasks, "challenger")
    except StoppedError:
        return Stopped("It begins again at the next run.")
    found = tuple(anchor(rival[:12], pairs_of(tasks, exam, mine), margin=margin) for rival, exam in theirs)
    passed = tuple(exam.passed for _, exam in theirs)
    return succeeded(
        Anchored(
            comparisons=found,
            passed=mine.passed,
            rivals_passed=passed,
            total=len(mine.graded),
            flips=flips,
        )
    )


def pairs_of(tasks: Sequence[Task], champion: Exam, challenger: Exam) -> tuple[Pair, ...]:
    """Put the two verdicts on each task side by side, in the order of the tasks.

    Raises:
        IntegrityError: the two were measured differently (L15).
    """
    require_comparable(champion.binding, challenger.binding)
    return side_by_side(tasks, champion, challenger)


def side_by_side(tasks: Sequence[Task], champion: Exam, challenger: Exam) -> tuple[Pair, ...]:
    """Return the same of exams that the caller knows to be comparable."""
    before = {one.answer.task: one.grade.verdict for one in champion.graded}
    after = {one.answer.task: one.grade.verdict for one in challenger.graded}
    return tuple(
        Pair(
            task=task.id,
            problem=task.problem,
            language=task.language.value,
            family=task.family,
            champion=before.get(task.id, Verdict.INFRA),
            challenger=after.get(task.id, Verdict.INFRA),
        )
        for task in tasks
    )


def _exam(  # noqa: PLR0917 - who, what and where
    work: Work[LearnStep],
    place: Place,
    step: Confirm | Anchor,
    name: str,
    tasks: Sequence[Task],
    label: str,
) -> Exam:
    return examine(work, place, _examinee(place, step, name), tasks, label)


def _examinee(place: Place, step: Confirm | Anchor, name: str) -> Examinee:
    student = place.settings.student
    return Examinee(
        name=name,
        adapter=place.adapter(name, step.number),
        sampling=Sampling(max_new_tokens=student.max_new_tokens, max_prompt_tokens=student.max_prompt_tokens),
        batch=student.batch,
    )
