"""Text for people: timings, verification, reconciliation and examination. Pure."""

from collections.abc import Iterator

from longwatch.kernel.finding import Finding, Section, Standing
from longwatch.kernel.timing import PhaseTiming
from longwatch.observe.doctor import Examination
from longwatch.observe.reconcile import InFlight, Reconciliation
from longwatch.observe.render import Row, duration, indented, one_line, plain, stamped, table
from longwatch.observe.timings import Cost, Trace, WatchTimings
from longwatch.observe.verifying import Verification

_SIGNS = {Standing.FINE: "ok", Standing.NOTE: "note", Standing.WRONG: "WRONG"}
_LONGEST_STEPS = 10
_NEWEST_TRACES = 20


def timings_text(seen: WatchTimings, zone: str) -> str:
    """Return the tables of `timings`."""
    if not seen.since:
        return "No supervisor has run yet: there is nothing to measure."
    whole = seen.table
    head = f"{stamped(seen.since, zone)} to {stamped(seen.until, zone)}: {duration(whole.wall_s)}"
    header: Row = ("phase", "count", "total", "median", "p95", "max", "share", "")
    rows = [header, *map(_timing_row, whole.phases), _rest_row(whole.unaccounted_s, whole.wall_s)]
    parts = [head, table(rows, right=frozenset(range(1, 7)))]
    if whole.overlap_s >= 1:
        parts.append(f"{duration(whole.overlap_s)} are covered by more than one phase: their shares overlap.")
    parts += _purposes(seen)
    parts += _traces(seen)
    parts += _slowest(seen)
    return "\n".join(parts)


def _timing_row(row: PhaseTiming) -> Row:
    times = (row.total_s, row.median_s, row.p95_s, row.max_s)
    return (row.phase, str(row.count), *map(duration, times), f"{row.share:.1%}", "")


def _rest_row(unaccounted_s: float, wall_s: float) -> Row:
    share = unaccounted_s / wall_s if wall_s else 0.0
    return ("(unaccounted)", "", duration(unaccounted_s), "", "", "", f"{share:.1%}", "")


def _slowest(seen: WatchTimings) -> Iterator[str]:
    longest = sorted(seen.steps, key=lambda step: -step.active_s)[:_LONGEST_STEPS]
    if longest:
        yield "\nlongest steps:"
        yield indented(table([(step.id, duration(step.active_s)) for step in longest]))


def _purposes(seen: WatchTimings) -> Iterator[str]:
    if seen.purposes:
        yield "\nby purpose:"
        rows = [(row.phase, duration(row.total_s), f"{row.share:.1%}", "") for row in seen.purposes]
        yield indented(table(rows, right=frozenset({1, 2})))


def _traces(seen: WatchTimings) -> Iterator[str]:
    if not seen.traces:
        return
    left_out = max(len(seen.traces) - _NEWEST_TRACES, 0)
    yield f"\nattempts{f' (the newest; {left_out} more with --json)' if left_out else ''}:"
    header: Row = ("attempt", "active", "first action", "tokens", "USD", "phases")
    rows = [header, *map(_trace_row, seen.traces[-_NEWEST_TRACES:])]
    yield indented(table(rows, right=frozenset(range(1, 5))))
    if any("?" in cell for row in rows for cell in row[3:5]):
        yield indented("? what it used is not known: all that was reserved counts")


def _trace_row(trace: Trace) -> Row:
    first = "" if trace.first_action_s is None else duration(trace.first_action_s)
    phases = ", ".join(f"{one.phase} {duration(one.seconds)}" for one in trace.phases)
    return (trace.attempt, duration(trace.active_s), first, *_cost_cells(trace.cost), phases)


def _cost_cells(cost: Cost | None) -> tuple[str, str]:
    if cost is None:
        return "", ""
    tokens = f"{cost.tokens:,}{'' if cost.tokens_known else '?'}" if cost.tokens else ""
    return tokens, f"{cost.usd:.2f}{'' if cost.usd_known else '?'}" if cost.usd else ""


def verification_text(seen: Verification) -> str:
    """Return one line for each answer."""
    chain = seen.chain
    rows: list[Row] = [(chain.answer.value, "event log", one_line(chain.detail))]
    rows += [
        (one.answer.value, one.receipt[:16], one_line(" ".join(filter(None, (one.about, one.detail)))))
        for one in seen.receipts
    ]
    count = f"{len(seen.receipts)} receipts"
    verdict = f"{seen.wrong} answers are not ok" if seen.wrong else "everything holds"
    return f"{table(rows)}\n{count}: {verdict}."


def reconciliation_text(seen: Reconciliation) -> str:
    """Return everything that a person has to see, and the command that goes on."""
    reason = f": {one_line(seen.reason)}" if seen.reason else ""
    parts = [f"phase: {seen.phase}{reason}", *_flying(seen.in_flight)]
    parts += [part for section in seen.changes for part in _section(section)]
    parts.append(f"receipts that hold: {seen.receipts_ok}")
    if seen.receipts_wrong:
        parts += _section(Section(title="receipts that do not hold", lines=seen.receipts_wrong))
    if seen.problems:
        parts += _section(Section(title="could not be looked at", lines=seen.problems))
    parts.append(f"to go on: {seen.command or '(nothing to do)'}\n  {seen.advice}")
    return "\n".join(parts)


def _flying(steps: tuple[InFlight, ...]) -> Iterator[str]:
    if not steps:
        yield "in flight: nothing"
        return
    yield "in flight:"
    for step in steps:
        yield f"  {step.id}: {one_line(step.progress) or 'no sign of life yet'} ({duration(step.active_s)})"
        yield f"    {_life(step)}"


def _life(step: InFlight) -> str:
    if step.pid is None:
        return "its program was never seen to start"
    state = "lives" if step.alive else "is dead"
    pids = ", ".join(map(str, step.children))
    left = f"; what carries its mark and lives: {pids}" if pids else "; nothing of it lives"
    return f"its program, process {step.pid}, {state}{left}"


def _section(section: Section) -> Iterator[str]:
    yield f"{section.title}:"
    for line in section.lines or ("nothing",):
        yield indented(plain(line))


def examination_text(seen: Examination) -> str:
    """Return one line for each finding, its mend below it, and the sum."""
    width = max((len(finding.name) for finding in seen.findings), default=0)
    lines = [line for finding in seen.findings for line in _finding(finding, width)]
    wrong = sum(finding.standing is Standing.WRONG for finding in seen.findings)
    verdict = f"{wrong} of {len(seen.findings)} must be mended." if wrong else "Everything is fit for work."
    return "\n".join([*lines, verdict])


def _finding(finding: Finding, width: int) -> Iterator[str]:
    first, *others = plain(finding.text).splitlines() or [""]
    yield f"{_SIGNS[finding.standing]:<5}  {finding.name:<{width}}  {first}"
    below = " " * (width + 9)
    yield from (f"{below}{line}" for line in others)
    if finding.mend:
        yield f"{below}-> {one_line(finding.mend)}"
