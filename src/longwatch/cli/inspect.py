"""The commands that only look: nothing here changes a watch."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from longwatch.cli.common import HERE, AsJson, WatchDir, exits, out, show, watch_at
from longwatch.kernel.watch import Watch

if TYPE_CHECKING:
    from longwatch.observe.status import Status

RECENT = 5


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """Let Ctrl-C end what follows for ever: the person has seen enough, and nothing went wrong."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit from None


def status(
    watch_dir: WatchDir = HERE,
    *,
    follow: Annotated[bool, typer.Option("--watch", help="Follow live; Ctrl-C ends it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a watch does now, why, and what comes next. Takes no lock and changes nothing."""
    from longwatch.observe import status as observed  # noqa: PLC0415 - help needs none of it

    with exits():
        watch = watch_at(watch_dir)
        if follow:
            _follow(watch, as_json=as_json)
            return
        seen = observed.read(watch)
        show(seen, as_json=as_json, text=lambda: _status_text(watch, seen))


def _follow(watch: Watch, *, as_json: bool) -> None:
    from longwatch.observe import following  # noqa: PLC0415 - only here

    live = sys.stdout.isatty() and not as_json
    with _until_interrupted():
        for seen in following.statuses(watch, every=live):
            if as_json:
                out(msgspec.json.encode(seen).decode())
            else:
                out(("\033[H\033[2J" if live else "") + _status_text(watch, seen) + ("" if live else "\n"))
            sys.stdout.flush()


def _status_text(watch: Watch, seen: "Status") -> str:
    from longwatch.observe import render  # noqa: PLC0415 - JSON needs none of it
    from longwatch.observe import status as observed  # noqa: PLC0415 - the same

    return render.status_text(seen, observed.recent(watch, RECENT), datetime.now(UTC))


def events(
    watch_dir: WatchDir = HERE,
    *,
    after: Annotated[int | None, typer.Option("--after", min=0, help="Only those after this number.")] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="At most so many: the last ones, or the first after --after."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more; Ctrl-C ends it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the event log: what happened and why, each line numbered and chained to the one before."""
    from longwatch.observe import following, kinds, render  # noqa: PLC0415 - help needs none of it

    with exits(), _until_interrupted():
        watch = watch_at(watch_dir)
        zone = kinds.zone(watch)
        only_last = after is None and limit is not None
        start = following.tail(watch, limit) if only_last and limit else after or 0
        for event in following.events(
            watch, after=start, limit=None if only_last and follow else limit, follow=follow
        ):
            out(msgspec.json.encode(event).decode() if as_json else render.event_line(event, zone))
            sys.stdout.flush()


def timings(watch_dir: WatchDir = HERE, *, as_json: AsJson = False) -> None:
    """Show where the time went: per phase the count, total, median, p95, longest and share, and what is unaccounted for."""
    from longwatch.observe import kinds, reports  # noqa: PLC0415 - help needs none of it
    from longwatch.observe import timings as observed  # noqa: PLC0415 - the same

    with exits():
        watch = watch_at(watch_dir)
        seen = observed.read(watch)
        show(seen, as_json=as_json, text=lambda: reports.timings_text(seen, kinds.zone(watch)))


def verify(
    receipt: Annotated[
        str, typer.Argument(help="The digest of one receipt, or its beginning; left out: all.")
    ] = "",
    watch_dir: WatchDir = HERE,
    *,
    as_json: AsJson = False,
) -> None:
    """Check receipts and the event log again: signature, subjects, evidence, freshness, policy, chain. Needs no supervisor."""
    from longwatch.observe import reports, verifying  # noqa: PLC0415 - help needs none of it

    with exits():
        seen = verifying.verify(watch_at(watch_dir), receipt)
        show(seen, as_json=as_json, text=lambda: reports.verification_text(seen))
    if not seen.ok:
        raise typer.Exit(1)


def reconcile(watch_dir: WatchDir = HERE, *, as_json: AsJson = False) -> None:
    """Show what was in flight, what lives, what changed and what still holds, and the command that goes on. Read only."""
    from longwatch.observe import reconcile as observed  # noqa: PLC0415 - help needs none of it
    from longwatch.observe import reports  # noqa: PLC0415 - the same

    with exits():
        seen = observed.look(watch_at(watch_dir))
        show(seen, as_json=as_json, text=lambda: reports.reconciliation_text(seen))


def doctor(watch_dir: WatchDir = HERE, *, as_json: AsJson = False) -> None:
    """Prove by doing that this machine and this watch are fit for work; one line each, with the mend. Changes nothing."""
    from longwatch.observe import doctor as observed  # noqa: PLC0415 - help needs none of it
    from longwatch.observe import reports  # noqa: PLC0415 - the same

    with exits():
        seen = observed.examine(watch_dir)
        show(seen, as_json=as_json, text=lambda: reports.examination_text(seen))
    if not seen.ok:
        raise typer.Exit(1)
