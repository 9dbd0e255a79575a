"""Text for people: what the observers found, as lines. Pure; times come in UTC and are shown in the wanted zone (K37)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from longwatch.kernel.journal import Event
from longwatch.observe import health
from longwatch.observe.status import Status, StepStatus

Row = tuple[str, ...]


def table(rows: Sequence[Row], *, gap: int = 2, right: frozenset[int] = frozenset()) -> str:
    """Return rows of equal length as aligned columns, those in `right` to the right; the last column may be long."""
    if not rows:
        return ""
    last = len(rows[0]) - 1
    widths = [max(len(row[column]) for row in rows) for column in range(last + 1)]

    def cell(row: Row, column: int) -> str:
        if column in right:
            return row[column].rjust(widths[column]) + " " * gap
        return row[column] if column == last else row[column].ljust(widths[column] + gap)

    return "\n".join("".join(cell(row, column) for column in range(last + 1)).rstrip() for row in rows)


def indented(text: str, width: int = 2) -> str:
    """Return text with each line moved to the right."""
    return "\n".join(f"{' ' * width}{line}".rstrip() for line in text.splitlines())


def duration(seconds: float) -> str:
    """Return seconds as a person reads them, with the two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit, smaller_size, smaller in _UNITS:
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller_size:02d} {smaller}"
    return f"{whole} s"


_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def moment(at: datetime, zone: str) -> str:
    """Return a moment in a time zone, with the zone's name."""
    return at.astimezone(_zone(zone)).strftime("%Y-%m-%d %H:%M:%S %Z")


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def stamped(stamp: str, zone: str) -> str:
    """Return a stored UTC time stamp as `moment` does."""
    return moment(datetime.fromisoformat(stamp), zone)


def event_line(event: Event, zone: str) -> str:
    """Return one event as a line."""
    return f"{event.seq:>6}  {stamped(event.at, zone)}  {event.kind:<20}  {one_line(event.text)}"


def one_line(text: str) -> str:
    """Return text whose line ends and control characters cannot disturb a terminal or a list."""
    return "".join(character if character.isprintable() else " " for character in text)


def plain(text: str) -> str:
    """Return text in its lines, without control characters that a terminal would obey."""
    return "\n".join(one_line(line) for line in text.splitlines())


# -- status


def status_text(status: Status, recent: Iterable[Event], now: datetime) -> str:
    """Return the whole status."""
    rows = [*_head_rows(status, now), *_step_rows(status), *_summary_rows(status)]
    events = [_brief(event, status.zone) for event in recent]
    head = f"last events ({now.astimezone(_zone(status.zone)):%Z}):"
    parts = [table(rows), *(["", head, *events] if events else [])]
    return "\n".join(parts)


def _brief(event: Event, zone: str) -> str:
    """Return an event as it fits beside others on a small terminal; `events` tells all of it."""
    return f"  {stamped(event.at, zone)[5:19]}  {one_line(event.text)}"


def _head_rows(status: Status, now: datetime) -> Iterator[Row]:
    yield "watch", f"{status.watch}{f' ({status.kind})' if status.kind else ''}"
    told = health.health(status)
    yield "health", f"{told.level.value.replace('_', ' ')}: {one_line(told.sentence)}"
    if told.command:
        yield "next", f"{told.command} (in its folder)"
    why = status.reason if status.reason not in told.sentence else ""
    yield "phase", f"{status.phase}{f': {one_line(why)}' if why else ''}"
    yield "desired", status.desired
    if status.next_retry_s is not None:
        due = moment(now + timedelta(seconds=status.next_retry_s), status.zone)
        yield "next retry", f"in {duration(status.next_retry_s)}, at {due}"
    if status.parked_s:
        yield "parked", f"{duration(status.parked_s)} in all, for usage limits"
    if status.failures:
        yield "failures", f"{status.failures} in a row"
    yield "supervisor", _supervisor(status)
    if status.pending_requests:
        yield "requested", f"{', '.join(status.pending_requests)} (not obeyed yet)"
    if status.config_problem:
        yield "config", one_line(status.config_problem)


def _supervisor(status: Status) -> str:
    who = status.supervisor
    if who is None:
        return "none so far"
    since = stamped(who.since, status.zone)
    if who.alive:
        return f"process {who.pid} on {who.host}, since {since}"
    return f"none; the last was process {who.pid} on {who.host}, since {since}"


def _step_rows(status: Status) -> Iterator[Row]:
    # At rest nothing runs: what is open was cut, and the next run settles it.
    name = "step" if status.phase in _MOVING else "cut step"
    for step in status.steps:
        yield name, step_line(step)


def step_line(step: StepStatus) -> str:
    """Return a step in hand as a line: what it does, how far it is, and how long the rest may take."""
    said = one_line(f" {step.text}" if step.text else "")
    idle = f", idle {duration(step.idle_s)}" if step.idle_s >= 1 else ""
    left = "" if step.left_s is None else f", about {duration(step.left_s)} to go"
    counted = progress_bar(step.done, step.total)
    return f"{step.title or step.id}: {step.phase or 'begins'}{said}{counted} ({duration(step.active_s)}{idle}{left})"


def progress_bar(done: int | None, total: int | None, width: int = 16) -> str:
    """Return ` [####....] 12/48`, a bare count where the total is not known, or nothing where nothing is counted."""
    if done is None:
        return ""
    if not total:
        return f" {done}"
    full = min(width, width * done // total)
    return f" [{'#' * full}{'.' * (width - full)}] {done}/{total}"


_MOVING = frozenset({"running", "pausing", "stopping"})


def _summary_rows(status: Status) -> Iterator[Row]:
    yield from ((name, one_line(value)) for name, value in status.summary)
    yield "active", duration(status.active_s)
