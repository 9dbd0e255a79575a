"""Loading `longwatch.toml`: everything that is wrong is told at once, with the key, the value and the mend.

`msgspec` stops at its first complaint. So the text is first walked against the wanted type, which collects every
problem of form, and is converted only when there is none; then the rules of meaning run on the typed settings.
"""

import difflib
import enum
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec

from longwatch.kernel.errors import ConfigError, PathError
from longwatch.kernel.files import read_bounded
from longwatch.kernel.settings import KernelSettings

_FILE_BYTES = 1024 * 1024
_SHOWN_CHARACTERS = 60
_TEN_YEARS_S = 315_360_000
_INT64 = 2**63
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WANTED = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}

T = TypeVar("T", bound=msgspec.Struct)


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong in a file that a person wrote: where (`worker.wall_s = -1`), and the mend."""

    where: str
    mend: str


def load(path: Path, wanted: type[T], rules: Callable[[T], Iterable[Problem]] = lambda _: ()) -> T:
    """Return the file as a `wanted`, after every problem of form, or else of meaning, was looked for.

    The kernel's own rules run when `wanted` is a `KernelSettings`; `rules` are those of the application.

    Raises:
        ConfigError: the file is missing, unreadable, no TOML, or wrong; the message lists all problems.
    """
    table = _table(path)
    refuse(path, conform(table, wanted))
    settings = msgspec.convert(table, wanted)
    shared = kernel_problems(settings) if isinstance(settings, KernelSettings) else ()
    refuse(path, (*shared, *rules(settings)))
    return settings


def kind_of(path: Path) -> str:
    """Return the kind of watch that the file describes, whatever else is wrong with it.

    Raises:
        ConfigError: the file cannot be read as TOML, or names no kind.
    """
    kind = _table(path).get("kind")
    if isinstance(kind, str) and kind:
        return kind
    raise ConfigError(f'{path}: names no kind of watch: add a line like kind = "migrate" at its top')


def refuse(source: Path | str, problems: Iterable[Problem]) -> None:
    """Do nothing if there is no problem.

    Raises:
        ConfigError: there are some; all of them stand in the message, one a line.
    """
    lines = [f"{problem.where}: {problem.mend}" for problem in problems]
    if len(lines) == 1:
        raise ConfigError(f"{source}: {lines[0]}")
    if lines:
        raise ConfigError("\n  ".join([f"{source}: {len(lines)} problems", *lines]))


def conform(value: object, wanted: object, key: str = "", *, strict: bool = True) -> Iterator[Problem]:
    """Walk a decoded value against the wanted type and yield every problem of form.

    With `strict=False` text may stand for numbers and truth values, as in YAML that was read as plain text.
    """
    if typing.get_origin(wanted) in {types.UnionType, typing.Union}:
        wanted = _alternative(value, typing.get_args(wanted))
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        yield from _conform_table(value, wanted, key, strict=strict)
    elif typing.get_origin(wanted) is tuple:
        yield from _conform_list(value, typing.get_args(wanted)[0], key, strict=strict)
    else:
        yield from _conform_scalar(value, wanted, key, strict=strict)


def at(key: str, value: object) -> str:
    """Return the place of a problem as a person reads it: `worker.wall_s = -1`.

    Long values are shortened, and characters that cannot be shown, or not be written as UTF-8, stand as their escapes.
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " ..."
    return f"{key} = {printable(shown)}"


def printable(text: str) -> str:
    """Return text in which every character that cannot be shown is its escape."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` if one of the known names is close, else all of them if they are few."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known are {', '.join(names)}" if 0 < len(names) <= 24 else ""


def too_small(
    table: str, settings: msgspec.Struct, least: Mapping[str, float], *, above: float | None = None
) -> Iterator[Problem]:
    """Yield a problem for each named number below its least value, not above `above`, or longer than ten years."""
    for name, minimum in least.items():
        value = getattr(settings, name)
        where = at(f"{table}.{name}", value)
        if above is not None and value <= above:
            yield Problem(where, f"must be more than {above:g}")
        elif value < minimum:
            yield Problem(where, f"must be at least {minimum:g}")
        elif name.endswith("_s") and value > _TEN_YEARS_S:
            yield Problem(where, f"must be at most {_TEN_YEARS_S} (ten years)")


def not_positive(table: str, settings: msgspec.Struct, *names: str) -> Iterator[Problem]:
    """Yield a problem for each named number that is not more than 0, or is longer than ten years."""
    return too_small(table, settings, dict.fromkeys(names, 0.0), above=0.0)


def bad_variables(key: str, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each word that is no name of an environment variable.

    The word is not shown: it may well be the secret itself, pasted in place of its name.
    """
    for number, name in enumerate(names):
        if not _VARIABLE.fullmatch(name):
            yield Problem(f"{key}[{number}]", "must be the name of an environment variable, not its value")


def kernel_problems(settings: KernelSettings) -> Iterator[Problem]:
    """Yield what is wrong with the meaning of the shared tables."""
    backoff, host, observe = settings.backoff, settings.host, settings.observe
    yield from not_positive("backoff", backoff, "first_s")
    least = {"max_s": backoff.first_s, "max_faults": 1, "max_transients": 0, "max_park_s": 0}
    yield from too_small("backoff", backoff, least)
    yield from too_small("host", host, {"free_disk_bytes": 0, "logs_bytes": 1024**2, "cores": 0})
    yield from not_positive("observe", observe, "heartbeat_s")
    yield from _zone_problems(observe.zone)
    yield from bad_variables("observe.secrets", observe.secrets)
    for number, marker in enumerate(host.markers):
        if not marker or "\0" in marker:
            yield Problem(at(f"host.markers[{number}]", marker), "must be the path of a file")


def _zone_problems(zone: str) -> Iterator[Problem]:
    if zone == "UTC":  # also on a host without a time zone database
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = difflib.get_close_matches(zone, sorted(available_timezones()), n=1)
        hint = f'did you mean "{close[0]}"?' if close else 'write one like "Europe/Berlin", or "UTC"'
        yield Problem(at("observe.zone", zone), f"is no time zone that this machine knows: {hint}")


def _table(path: Path) -> dict[str, object]:
    text = _text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {_placed(str(error), text)}") from error


def _text(path: Path) -> str:
    try:
        raw = read_bounded(path, _FILE_BYTES)
    except FileNotFoundError as error:
        mend = "run `longwatch init migrate` in the repository, or name the watch with --watch-dir"
        raise ConfigError(f"{path} does not exist: {mend}") from error
    except PathError as error:
        raise ConfigError(f"the configuration cannot be read: {error}") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path} is not UTF-8 text (line {line}): save it with the encoding UTF-8"
        ) from error


def _placed(message: str, text: str) -> str:
    lines = text.splitlines() or [""]
    end = f"at line {len(lines)}, column {len(lines[-1]) + 1}"
    return message.replace("at end of document", f"{end}, the end of the file")


def _alternative(value: object, alternatives: tuple[object, ...]) -> object:
    """Choose the member of a union by form: a table for a mapping, else the scalar that fits, else the first."""
    tables = [one for one in alternatives if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if tables and isinstance(value, dict):
        return tables[0]
    others = [one for one in alternatives if one not in tables]
    return next((one for one in others if isinstance(one, type) and isinstance(value, one)), others[0])


def _conform_table(
    value: object, wanted: type[msgspec.Struct], key: str, *, strict: bool
) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(at(key or "all of it", value), "must be a table: write its keys in { }")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    if wanted.__struct_config__.forbid_unknown_fields:
        for name in (name for name in value if name not in fields):
            yield Problem(at(_joined(key, name), value[name]), f"is no known key{nearest(name, fields)}")
    for name, field in fields.items():
        if name in value:
            yield from conform(value[name], field.type, _joined(key, name), strict=strict)
        elif field.required:
            yield Problem(_joined(key, name), "is missing: add it")


def _conform_list(value: object, wanted: object, key: str, *, strict: bool) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem(at(key, value), "must be a list: write it in [ ]")
        return
    for number, item in enumerate(value):
        yield from conform(item, wanted, f"{key}[{number}]", strict=strict)


def _conform_scalar(value: object, wanted: object, key: str, *, strict: bool) -> Iterator[Problem]:
    if isinstance(wanted, type) and issubclass(wanted, enum.StrEnum):
        if value not in tuple(wanted):
            yield Problem(at(key, value), f"is none of the choices{nearest(str(value), set(wanted))}")
        return
    try:
        typed = msgspec.convert(value, wanted, strict=strict)
    except msgspec.ValidationError:
        yield Problem(at(key, value), f"must be {_described(wanted)}")
        return
    if isinstance(typed, float) and not math.isfinite(typed):
        yield Problem(at(key, value), "must be a finite number")
    elif isinstance(typed, int) and not -_INT64 <= typed < _INT64:
        yield Problem(at(key, value), "is too large: it must fit in 64 bits")


def _described(wanted: object) -> str:
    for known, words in _WANTED.items():
        if wanted is known:
            return words
    return f"a {wanted}"


def _joined(key: str, name: str) -> str:
    plain = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return f"{key}.{plain}" if key else plain
