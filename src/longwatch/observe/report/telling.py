"""From what was read of a watch to what its report says. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from longwatch.kernel.journal import Event
from longwatch.learn.board import LearnBoard, Round, Score
from longwatch.migrate.board import JobRow, MigrateBoard
from longwatch.migrate.steps import Refusal
from longwatch.observe.health import health
from longwatch.observe.render import duration, one_line, stamped
from longwatch.observe.report.story import Bar, Figure, Line, Story, Table
from longwatch.observe.status import Status
from longwatch.observe.timings import WatchTimings
from longwatch.observe.verifying import Verification

MOST_LINES = 10
_REASONS = 3
_REASON_CHARACTERS = 160
_LATEST_REFUSALS = 200
_NEWEST_PATHS = 3
_REFUSED = "attempt.refused."
_CUT = "attempt.lost"
_BLOCK = "block.confirmed"
KINDS = frozenset({*(f"{_REFUSED}{kind}" for kind in Refusal), _CUT, _BLOCK})
"""The events that a story is made of."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a watch."""

    status: Status
    board: MigrateBoard | LearnBoard | None
    """`None` where the settings cannot be read."""
    events: tuple[Event, ...]
    timings: WatchTimings
    verification: Verification | None
    at: str
    """UTC."""


def story(facts: Facts) -> Story:
    """Return what the report of one watch says."""
    match facts.board:
        case MigrateBoard() as board:
            lines, figures, tables, decisions = _of_jobs(facts, board)
        case LearnBoard() as board:
            lines, figures, tables, decisions = _of_experiments(facts, board)
        case _:
            lines, figures, tables = (), (), ()
            decisions = Table(title="Decisions", heads=("decision",), rows=())
    holds, told = tuple(_holds(facts)), (*lines, *_effort(facts))
    # What does not hold comes first: the rest stands on it.
    whole = facts.verification is None or facts.verification.ok
    said = (*told, *holds) if whole else (*holds, *told)
    return Story(
        watch=facts.status.watch,
        kind=facts.status.kind,
        at=stamped(facts.at, facts.status.zone),
        health=health(facts.status),
        lines=said[:MOST_LINES],
        figures=(*figures, *_hours(facts.timings)),
        tables=(*tables, _time(facts.timings)),
        decisions=decisions,
    )


Told = tuple[tuple[str, ...], tuple[Figure, ...], tuple[Table, ...], Table]

# -- jobs


def _of_jobs(facts: Facts, board: MigrateBoard) -> Told:
    lines = (*_progress(board), *_refusals(facts.events), *_cost(board))
    return lines, (), (_waiting(board), _refused(facts)), _accepted(board)


def _progress(board: MigrateBoard) -> Iterator[str]:
    counts = Counter(job.status.value for job in board.jobs)
    told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())
    yield (
        f"{counts['done']} of {len(board.jobs)} jobs are done and verified ({told})."
        if told
        else "The queue is empty."
    )
    blocked = [job for job in board.jobs if job.status == "blocked"]
    for job in blocked[:_REASONS]:
        yield f"Blocked: {job.title}. {_short(job.failure)}"
    if len(blocked) > _REASONS:
        yield f"Blocked besides: {len(blocked) - _REASONS}."


def _refusals(events: Iterable[Event]) -> Iterator[str]:
    refused = [event for event in events if event.kind.startswith(_REFUSED)]
    cut = sum(event.kind == _CUT for event in events)
    if refused:
        kinds = Counter(event.kind.rpartition(".")[2] for event in refused)
        told = ", ".join(f"{count} for its {kind}" for kind, count in kinds.most_common())
        yield f"Refused attempts: {len(refused)} ({told})."
    if cut:
        yield f"Attempts that were cut from outside, and did not count: {cut}."


def _cost(board: MigrateBoard) -> Iterator[str]:
    if board.tokens or board.usd:
        yield f"It cost {board.tokens:,} tokens and {board.usd:.2f} USD."


def _accepted(board: MigrateBoard) -> Table:
    done = [job for job in board.jobs if job.receipt]
    return Table(
        title="Accepted changes",
        heads=("job", "title", "starts", "commit", "receipt"),
        rows=tuple((job.id, job.title, str(job.starts), job.commit[:12], job.receipt) for job in done),
    )


def _waiting(board: MigrateBoard) -> Table:
    rows = tuple(_open(job) for job in board.jobs if job.status != "done")
    return Table(title="Open jobs", heads=("job", "standing", "starts", "why"), rows=rows)


def _open(job: JobRow) -> tuple[str, ...]:
    return job.id, job.status.value.replace("_", " "), str(job.starts), _short(job.failure)


def _refused(facts: Facts) -> Table:
    refused = [event for event in facts.events if event.kind.startswith(_REFUSED)]
    rows = tuple(
        (stamped(event.at, facts.status.zone), event.kind.rpartition(".")[2], _short(event.text))
        for event in refused[-_LATEST_REFUSALS:]
    )
    return Table(title="Refused attempts", heads=("when", "refused for its", "why"), rows=rows)


# -- experiments


def _of_experiments(facts: Facts, board: LearnBoard) -> Told:
    lines = (*_learned(board), *_audited(board))
    figures = (*_rounds(board.rounds), *_evidence(facts.events), *_scores(board))
    return lines, figures, (_of_rounds(board.rounds),), _decided(board)


def _learned(board: LearnBoard) -> Iterator[str]:
    decided = [one for one in board.experiments if not one.running]
    accepted = [one for one in decided if one.receipt]
    yield (
        f"Decided experiments: {len(decided)}. Accepted adapters: {len(accepted)}. "
        f"The champion is {_named(board.champion)}."
    )
    for one in decided[-_REASONS:]:
        yield f"Experiment {one.number}: {one.decision}. {_short('; '.join(one.sentences))}"
    if board.rounds:
        last = board.rounds[-1]
        yield (
            f"The newest round passes {last.passed} of {last.asked} development tasks; its champion {last.champion}, "
            f"base {last.base} of {last.total}."
        )
    yield f"Alpha-wealth left: {board.alpha_wealth:.3g}; the next confirmation has alpha {board.next_alpha:.3g}."


def _named(champion: str) -> str:
    return champion if champion == "base" else f"adapter {champion[:12]}"


def _audited(board: LearnBoard) -> Iterator[str]:
    scored = [one for one in board.scores if not one.void]
    if scored:
        last = [one for one in scored if one.look == scored[-1].look]
        told = "; ".join(f"{one.language} {one.base} -> {one.champion} of {one.total}" for one in last)
        yield f"The last look at a public benchmark, which only reports: {told}."


def _rounds(rounds: Sequence[Round]) -> Iterator[Figure]:
    if not rounds:
        return

    def line(name: str, values: Iterable[float], *, dashed: bool = False) -> Line:
        return Line(name=name, points=tuple((at, value) for at, value in enumerate(values, 1)), dashed=dashed)

    yield Figure(
        title="Development tasks passed, in percent, round by round",
        told="They nominate and decide nothing. Dashed: the champion before the round, and base.",
        lines=(
            line("the round's adapter", (100 * one.passed / max(one.asked, 1) for one in rounds)),
            line("champion", (100 * one.champion / max(one.total, 1) for one in rounds), dashed=True),
            line("base", (100 * one.base / max(one.total, 1) for one in rounds), dashed=True),
        ),
    )
    yield Figure(
        title="Training loss, round by round",
        told="At the beginning (dashed) and at the end of each round.",
        lines=(
            line("end", (one.loss_last for one in rounds)),
            line("beginning", (one.loss_first for one in rounds), dashed=True),
        ),
    )


def _evidence(events: Iterable[Event]) -> Iterator[Figure]:
    paths: dict[int, list[tuple[float, float]]] = {}
    needed: dict[int, float] = {}
    for event in events:
        data = event.data
        if event.kind == _BLOCK and "evidence" in data:
            number = int(data["experiment"] or 0)
            paths.setdefault(number, [(0.0, 1.0)]).append(
                (float(data["judged"] or 0), float(data["evidence"] or 0))
            )
            needed[number] = float(data["needed"] or 0)
    for place, (number, path) in enumerate(reversed(paths.items())):
        yield Figure(
            title=f"Evidence of experiment {number}, by fresh problems",
            told=f"It accepts at {needed[number]:.3g}, the line across: one over alpha. The scale is logarithmic.",
            lines=(Line(name="evidence", points=tuple(path)),),
            limit=needed[number],
            logarithmic=True,
            aside=place >= _NEWEST_PATHS,
        )


def _scores(board: LearnBoard) -> Iterator[Figure]:
    for look in sorted({one.look for one in board.scores if not one.void}):
        scored = [one for one in board.scores if one.look == look and one.total]
        bars = [bar for one in scored for bar in _scored(one)]
        told = "Pass rates with 95 % intervals. They report, and decide nothing."
        yield Figure(title=f"Look {look} at the public benchmark", told=told, bars=tuple(bars))


def _scored(one: Score) -> Iterator[Bar]:
    for who, passed, low, high in (
        ("base", one.base, one.base_low, one.base_high),
        ("champion", one.champion, one.champion_low, one.champion_high),
    ):
        told = f"{passed / one.total:.1%} ({low:.1%} to {high:.1%})"
        yield Bar(name=f"{one.language}, {who}", value=passed / one.total, low=low, high=high, told=told)


def _of_rounds(rounds: Sequence[Round]) -> Table:
    rows = tuple(
        (
            str(one.experiment),
            str(one.round),
            f"{one.passed} of {one.asked}",
            str(one.champion),
            str(one.base),
            str(one.examples),
            f"{one.loss_first:.2f} -> {one.loss_last:.2f}",
        )
        for one in rounds
    )
    heads = ("experiment", "round", "passed", "champion", "base", "examples", "loss")
    return Table(title="Rounds", heads=heads, rows=rows)


def _decided(board: LearnBoard) -> Table:
    rows = tuple(
        (str(one.number), one.decision, "; ".join(one.sentences), one.adapter[:12], one.receipt)
        for one in board.experiments
        if not one.running
    )
    return Table(
        title="Decided experiments", heads=("number", "decision", "why", "adapter", "receipt"), rows=rows
    )


# -- both


def _effort(facts: Facts) -> Iterator[str]:
    seen = facts.timings
    if not seen.since:
        yield "No supervisor has run yet."
        return
    largest = sorted(seen.purposes, key=lambda one: -one.covered_s)[:_REASONS]
    told = ", ".join(f"{one.phase} {one.share:.0%}" for one in largest)
    whole = f"{duration(facts.status.active_s)} of work in {duration(seen.table.wall_s)}"
    yield f"{whole}: {told}." if told else f"{whole}."


def _holds(facts: Facts) -> Iterator[str]:
    seen = facts.verification
    if seen is None:
        yield "Its receipts could not be verified, because its settings cannot be read."
    elif seen.ok:
        yield f"{len(seen.receipts)} receipts and the event log were verified for this report: everything holds."
    else:
        wrong = [one for one in seen.receipts if one.answer != "ok"]
        chain = f" The event log: {seen.chain.detail}" if seen.chain.detail else ""
        named = "; ".join(f"{one.receipt[:16]} {one.answer}" for one in wrong[:_REASONS])
        count = "One thing does" if seen.wrong == 1 else f"{seen.wrong} things do"
        yield f"{count} not hold: {named or 'the event log'}.{chain}"


def _hours(seen: WatchTimings) -> Iterator[Figure]:
    rest = (("not measured", seen.table.unaccounted_s),) if seen.table.wall_s else ()
    covered = (*((one.phase, one.covered_s) for one in seen.purposes), *rest)
    bars = tuple(_bar_of(name, seconds, seen.table.wall_s) for name, seconds in covered if seconds > 0)
    if bars:
        told = "Of all time since the watch began. What runs beside another counts in both."
        yield Figure(title="Where the time went", told=told, bars=bars)


def _bar_of(name: str, seconds: float, wall_s: float) -> Bar:
    share = min(seconds / wall_s, 1.0)
    return Bar(name=name, value=share, told=f"{duration(seconds)}, {share:.1%}")


def _time(seen: WatchTimings) -> Table:
    rows = tuple(
        (one.phase, str(one.count), duration(one.covered_s), f"{one.share:.1%}", duration(one.max_s))
        for one in seen.purposes
    )
    heads = ("for", "times", "time", "share", "longest")
    return Table(title="The time in numbers", heads=heads, rows=rows)


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _REASON_CHARACTERS else f"{line[:_REASON_CHARACTERS]}..."
