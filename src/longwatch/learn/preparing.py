"""Prepares a window of the curriculum: generated or read, validated in the sandbox, decontaminated, split, bound."""

import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from longwatch.kernel import files
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn import windows
from longwatch.learn.decontamination import Index
from longwatch.learn.evidence import succeeded
from longwatch.learn.grading import Screened, screen
from longwatch.learn.place import Place
from longwatch.learn.readiness import turns
from longwatch.learn.sources import humaneval, multipl_e
from longwatch.learn.sources.choice import chosen
from longwatch.learn.sources.source import Source
from longwatch.learn.stages import StoppedError, staged
from longwatch.learn.steps import LearnStep, Prepare, Prepared, Window
from longwatch.learn.tasks import Split, Task
from longwatch.sandbox.choice import Sandboxing

_NICE = 10
"""Beside a training: a tenth of a core at least, with which no right answer comes near its wall limit."""


def perform(work: Work[LearnStep], step: Prepare, place: Place) -> Outcome:
    """Prepare a window, or go on where an earlier preparation was cut."""
    folder = place.windows / str(step.window)
    files.make_folder(place.windows)
    if step.beside:
        os.nice(_NICE)
    try:
        with work.span("prepare", step.title):
            manifest, found = windows.prepare(
                folder,
                windows.Order(number=step.window, start_row=step.start_row, problems=_wanted(step, place)),
                _source(place),
                validate=lambda tasks: _screened(
                    work, tasks, lambda: _at_once(step, place), place.settings.where
                ),
                audits=Index(_audits(place)),
                progress=lambda row, have: work.progress(
                    "prepare",
                    f"row {row}: {sum(have.values())} problems",
                    done=sum(have.values()),
                    total=_total(step, place),
                ),
            )
    except StoppedError:
        return Stopped("The rows so far are kept.")
    nonce = staged(folder / "nonce.json", str, lambda: secrets.token_hex(16))
    have = manifest.problems
    window = Window(
        number=step.window,
        manifest=found,
        nonce=nonce,
        next_row=manifest.end_row,
        train=have.get(Split.TRAIN, 0),
        dev=have.get(Split.DEV, 0),
        confirm=have.get(Split.CONFIRM, 0),
        sealed=have.get(Split.SEALED, 0),
        left_out=sum(_left_out(manifest).values()),
    )
    return succeeded(_judged(step, place, window, manifest))


def _judged(step: Prepare, place: Place, window: Window, manifest: windows.Manifest) -> Prepared:
    least = place.settings.acceptance.least_fresh
    short = "" if step.fresh_only else manifest.shortage
    if not short and window.confirm < least:
        short = f"{window.confirm} fresh problems, {least} are needed"
    if short and (reasons := _left_out(manifest)):
        short += f" (left out: {', '.join(f'{count} {why}' for why, count in reasons.items())})"
    return Prepared(window=window, too_little=short, exhausted=bool(short) and manifest.exhausted)


def _left_out(manifest: windows.Manifest) -> dict[str, int]:
    return {why: count for why, count in manifest.left_out.items() if why != windows.NOT_NEEDED}


def _wanted(step: Prepare, place: Place) -> dict[Split, int]:
    curriculum = place.settings.curriculum
    fresh = {Split.CONFIRM: curriculum.confirm_tasks}
    if step.fresh_only:
        return fresh
    sealed = {Split.SEALED: place.settings.acceptance.sealed_tasks} if step.sealed else {}
    return {Split.TRAIN: curriculum.train_tasks, Split.DEV: curriculum.dev_tasks, **fresh, **sealed}


def _total(step: Prepare, place: Place) -> int:
    return sum(_wanted(step, place).values())


def _source(place: Place) -> Source:
    curriculum = place.settings.curriculum
    return chosen(curriculum, place.watch.root, place.watch.root / curriculum.public)


def _audits(place: Place) -> tuple[Task, ...]:
    audit, root = place.settings.audit, place.watch.root
    python = humaneval.load(root / audit.humaneval) if audit.humaneval else ()
    languages = multipl_e.chosen(audit.languages) if audit.multipl_e else ()
    others = (task for language in languages for task in multipl_e.load(language, root / audit.multipl_e))
    return (*python, *others)


def _at_once(step: Prepare, place: Place) -> int:
    """Return how many tasks are validated at once now: one, while the training that it stands beside goes on."""
    if step.beside:
        readiness = place.settings.readiness
        # Kernels that share the time out by session heed no niceness: then this is what bounds it to one core.
        if not readiness.one_watch or turns.taken(turns.path(place.settings.student.device)) is not None:
            return 1
    return _most()


def _most() -> int:
    # Twice as many as there are cores, because each waits for the kernel half of its time.
    return 2 * len(os.sched_getaffinity(0))


def _screened(
    work: Work[LearnStep], tasks: Sequence[Task], at_once: Callable[[], int], where: Sandboxing
) -> Iterator[Screened]:
    """Validate tasks, so many at once: references pass several times, stubs and empty answers fail (L2)."""
    with ThreadPoolExecutor(_most()) as pool:
        begun: deque[Future[Screened]] = deque()
        for task in tasks:
            while len(begun) >= at_once():
                yield _ended(work, begun.popleft())
            begun.append(pool.submit(screen, task, where=where))
        for one in begun:
            yield _ended(work, one)


def _ended(work: Work[LearnStep], one: Future[Screened]) -> Screened:
    found = one.result()
    if work.should_stop():
        raise StoppedError
    return found
