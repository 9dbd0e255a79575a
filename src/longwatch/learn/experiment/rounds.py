"""The story of one experiment, from top to bottom. It nominates at most one adapter and accepts nothing.

Each stage leaves a file, and training has its own checkpoints: whatever ends the program, it goes on where it was.
"""

from msgspec.structs import replace

from longwatch.kernel import files, lease
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn import adapters
from longwatch.learn.evidence import succeeded
from longwatch.learn.experiment import replay
from longwatch.learn.experiment.batches import Ended, Standing, batch, ending
from longwatch.learn.experiment.collecting import Collected, collect
from longwatch.learn.experiment.course import Course, open_course
from longwatch.learn.experiment.evaluating import Marks, evaluate, mark
from longwatch.learn.experiment.examples import chosen
from longwatch.learn.experiment.fitting import adapter_of, fit
from longwatch.learn.experiment.meter import Meter
from longwatch.learn.experiment.nominating import Tried, nominate, to_beat
from longwatch.learn.experiment.telling import numbers, sentence
from longwatch.learn.place import Place
from longwatch.learn.stages import StoppedError
from longwatch.learn.steps import Challenger, LearnStep, Train, Trained
from longwatch.learn.tasks import Task
from longwatch.learn.training.results import GaveUp


def perform(work: Work[LearnStep], step: Train, place: Place) -> Outcome:
    """Run the rounds under the experiment's own lock: a second worker on it is impossible."""
    folder = files.make_folder(place.experiment(step.number))
    held = lease.acquire(folder / "lock")
    try:
        with Meter(folder, 3600 * place.settings.experiment.hours, lambda: work.phase) as meter:
            work.over = lambda: meter.over
            work.progress("load", "what was bound")
            return succeeded(_experiment(open_course(work, step, place, meter)))
    except StoppedError:
        return Stopped("Saved; it goes on where it stopped.")
    finally:
        held.close()


def _experiment(course: Course) -> Trained:
    """Mark the champion, make rounds until they are over, nominate."""
    marks, standing = Marks(), Standing()
    try:
        marks = mark(course)
        while (ended := _ended(course, standing)) is None:
            standing = _round(course, marks, standing)
    except StoppedError:
        if course.work.stop_requested:
            raise
        ended = Ended.HOURS
    spent_s = course.meter.active.total_s
    text = f"After {standing.rounds} rounds and {spent_s / 3600:.2f} active hours: {ended.sentence}."
    course.work.note("rounds.ended", text, why=ended.value, active_s=spent_s)
    return _trained(course, marks, standing, ended)


def _round(course: Course, marks: Marks, standing: Standing) -> Standing:
    """Collect answers to new tasks, train on what is best of everything so far, evaluate on dev."""
    number, meter = standing.rounds + 1, course.meter
    found = collect(course, _following(course, standing), number)
    meter.save()
    collected = (*standing.collected, *found.examples)
    taught = chosen(collected, course.recipe.max_examples)
    moved = replace(standing, rounds=number, collected=collected)
    if set(taught) <= set(standing.taught):
        return _dry(course, moved, found)
    fitted = fit(course, taught, number)
    meter.save()
    moved = replace(moved, dry=0, taught=taught)
    if isinstance(fitted, GaveUp):
        course.work.note("training.gave_up", f"Round {number}: {fitted.why}")
        return moved
    adapter = adapter_of(course, number)
    beat = to_beat(standing.tried, marks.base - marks.champion, course.place.settings.acceptance)
    pairs = evaluate(course, marks, fitted.adapter, adapter, beat)
    meter.save()
    result = numbers(number, found, taught, len(course.replayed), fitted, pairs, marks)
    course.work.note("round.finished", sentence(result, marks))
    tried = Tried(result=result, examples=taught, pairs=pairs)
    return replace(moved, tried=(*standing.tried, tried))


def _following(course: Course, standing: Standing) -> tuple[Task, ...]:
    return batch(course.train, course.recipe.tasks_per_round, standing.rounds + 1)


def _ended(course: Course, standing: Standing) -> Ended | None:
    rounds = course.place.settings.experiment.rounds
    return ending(standing, rounds=rounds, following=_following(course, standing))


def _dry(course: Course, standing: Standing, found: Collected) -> Standing:
    text = f"Round {standing.rounds}: {found.passed} of {found.asked} answers verified, none of them gives a new example."
    course.work.note("round.dry", text)
    return replace(standing, dry=standing.dry + 1)


def _trained(course: Course, marks: Marks, standing: Standing, ended: Ended) -> Trained:
    """Pack what the rounds found, with the nomination."""
    found = nominate(standing.tried, marks.base, course.place.settings.acceptance)
    active = course.meter.active
    return Trained(
        rounds=tuple(tried.result for tried in standing.tried),
        dev_before=marks.champion,
        dev_base=marks.base,
        dev_total=marks.total,
        flips=marks.flips,
        active_s=active.total_s,
        active_by_phase=active.by_phase,
        challenger=None if found.tried is None else _challenger(course, marks, found.tried),
        reason="" if found.tried else f"{found.reason}; {ended.sentence}",
    )


def _challenger(course: Course, marks: Marks, tried: Tried) -> Challenger:
    """Put the nominated adapter, and what taught it, where later steps look for them by their digests."""
    result, folder = tried.result, course.folder / "nominated"
    target = files.make_folder(folder / result.adapter)
    for name, data in adapters.read(adapter_of(course, result.round)).items():
        files.replace(target / name, data)
    return Challenger(
        adapter=result.adapter,
        round=result.round,
        examples=replay.write(folder, tried.examples),
        dev_before=marks.champion,
        dev_after=result.dev_passed,
        dev_total=marks.total,
    )
