"""`longwatch fetch`: what a watch may need from outside, by name."""

from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError
from longwatch.learn.sources import fetching, mbxp, pinned
from longwatch.learn.sources.pinned import Pinned
from longwatch.learn.student.fetch import SMOLLM2, Progress, silent
from longwatch.learn.student.model import embedded

STUDENT = "student"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Public files that are fetched together."""

    purpose: str
    pins: tuple[Pinned, ...]
    lines: str
    """What a person puts into `longwatch.toml`, with `{file}` or `{folder}`."""


OFFERS = {
    "humaneval": Offer(
        purpose="for audits; it never trains", pins=(pinned.HUMANEVAL,), lines="[audit]\nhumaneval = {file}"
    ),
    "multipl-e": Offer(
        purpose="for audits in 13 languages; its licence forbids training",
        pins=tuple(pinned.MULTIPL_E.values()),
        lines="[audit]\nmultipl_e = {folder}",
    ),
    "mbpp": Offer(
        purpose="a curriculum in Python",
        pins=(pinned.MBPP,),
        lines='[curriculum]\nsource = "mbpp"\npublic = {folder}',
    ),
    "mbxp": Offer(
        purpose="a curriculum in six languages",
        pins=tuple(mbxp.FILES.values()),
        lines='[curriculum]\nsource = "mbxp"\npublic = {folder}',
    ),
}


def fetch(what: str, cache: Path, *, source: Path | None = None, progress: Progress = silent) -> str:
    """Fetch one thing into the cache, from `source` instead of the network if given, and say what to do with it.

    Raises:
        ConfigError: nothing of that name is offered.
        TransientError, NotReadyError, IntegrityError: as `sources.fetching.fetch` and `student.model.embedded`.
    """
    if what == STUDENT:
        return f"The student is ready: {embedded(cache, source=source, progress=progress)}"
    if what not in OFFERS:
        raise ConfigError(f"{what!r} is not offered: choose one of {', '.join((STUDENT, *OFFERS))}")
    offer, folder = OFFERS[what], public(cache)
    copies = [fetching.fetch(pin, folder, source=source) for pin in offer.pins]
    lines = offer.lines.format(file=_quoted(copies[0]), folder=_quoted(folder))
    place = f"{len(copies)} files in {copies[0].parent}" if len(copies) > 1 else copies[0]
    return f"{what} is here, checked by digest: {place}\nIn longwatch.toml:\n\n{lines}"


def _quoted(path: Path) -> str:
    """Pure: a path as TOML writes it, which is as JSON writes it."""
    return msgspec.json.encode(str(path)).decode()


def public(cache: Path) -> Path:
    """Return the folder of public files in the cache."""
    return cache / "public"


def listing(cache: Path) -> str:
    """Return what is offered, a line each, and whether it is here."""
    rows = [_student(cache), *(_offer(name, offer, cache) for name, offer in OFFERS.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _student(cache: Path) -> tuple[str, ...]:
    here = (cache / f"{SMOLLM2.member_sha256}.gguf").is_file()
    origin = f"{SMOLLM2.distribution} {SMOLLM2.version}"
    return _row(STUDENT, SMOLLM2.wheel_bytes, "Apache-2.0", origin, "the embedded student", here=here)


def _offer(name: str, offer: Offer, cache: Path) -> tuple[str, ...]:
    size_bytes, first = sum(pin.published_bytes for pin in offer.pins), offer.pins[0]
    here = all(fetching.is_there(pin, public(cache)) for pin in offer.pins)
    origin = f"{first.repository}@{first.revision[:8]}"
    return _row(name, size_bytes, first.licence, origin, offer.purpose, here=here)


def _row(
    name: str, size_bytes: int, licence: str, origin: str, purpose: str, *, here: bool
) -> tuple[str, ...]:
    return name, f"{size_bytes / 1000:.0f} kB", licence, origin, purpose, "here" if here else "not here"
