"""A generation as a value, and what differs between two. Pure."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import groupby
from operator import attrgetter

import msgspec

from longwatch.kernel.digest import Digest, of_bytes

SHOWN = 8
"""So many changes of one part are named in a sentence; the rest is counted."""
_SHORT = 12
_encode = msgspec.json.Encoder(order="sorted").encode


class Part(StrEnum):
    """What a generation consists of."""

    SOURCES = "sources"
    """Our own files that a step's program can load, by their paths in the package."""
    CONFIG = "config"
    """The settings that change what is trained or measured, by their keys."""
    MODEL = "model"
    """The base model and its tokenizer."""
    DATA = "data"
    """The benchmarks that are audited with, by the keys of the settings that name them."""
    RUNTIMES = "runtimes"
    """The programs that run answers, by their paths."""
    ENVIRONMENT = "environment"
    """Versions of Python, of the libraries and of the accelerator's driver."""


class Generation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names to digests, versions or values: all that must be equal while an experiment is made."""

    sources: Mapping[str, str]
    config: Mapping[str, str]
    model: Mapping[str, str]
    data: Mapping[str, str]
    runtimes: Mapping[str, str]
    environment: Mapping[str, str]

    @property
    def digest(self) -> Digest:
        """One digest for all of it: its name."""
        return of_bytes(_encode(self))


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is no longer what it was."""

    part: Part
    name: str
    old: str
    """Empty: it was not there."""
    new: str
    """Empty: it is gone."""
    mend: str

    @property
    def text(self) -> str:
        """Name, old and new, for a person."""
        return f"{self.name} {_shown(self.old)} -> {_shown(self.new)}"


def changes(before: Generation, after: Generation, parts: Iterable[Part] = Part) -> tuple[Change, ...]:
    """Return what differs in these parts, in their order.

    A benchmark that is named for the first time, or no longer, is none: nothing is measured with another one.
    """
    return tuple(
        Change(part=part, name=name, old=old, new=new, mend=_MENDS[part](name, old))
        for part in parts
        for name, old, new in _differing(getattr(before, part), getattr(after, part))
        if not (part is Part.DATA and not (old and new))
    )


def sentence(found: Iterable[Change]) -> str:
    """Return all changes with their mends, for a person; of many of one part the first few, and how many more."""
    grouped = groupby(found, key=attrgetter("part"))
    return "; ".join(_of_part(part, tuple(some)) for part, some in grouped)


def _of_part(part: Part, found: tuple[Change, ...]) -> str:
    shown = ", ".join(change.text for change in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    mends = " and ".join(dict.fromkeys(change.mend for change in found))
    return f"{part}: {shown}{more} ({mends})"


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield name, old, new


def _shown(value: str) -> str:
    if not value:
        return "nothing"
    is_digest = len(value) == 64 and set(value) <= set("0123456789abcdef")
    return value[:_SHORT] if is_digest else value


def _library(name: str, old: str) -> str:
    if name == "python":
        return f"use Python {old}"
    return f"restore driver {old}" if name == "driver" else f"pip install {name}=={old}"


_MENDS: Mapping[Part, Callable[[str, str], str]] = {
    Part.SOURCES: lambda *_: "install that version of longwatch again",
    Part.CONFIG: lambda *_: "put it back in longwatch.toml",
    Part.MODEL: lambda *_: "restore its files, or begin a new watch: adapters fit one base only",
    Part.DATA: lambda *_: "restore the file",
    Part.RUNTIMES: lambda *_: "install that version again",
    Part.ENVIRONMENT: _library,
}
