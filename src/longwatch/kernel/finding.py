"""What `doctor` and `reconcile` say, as values: applications make them, the observers print them."""

from enum import StrEnum

import msgspec


class Standing(StrEnum):
    """How one thing is."""

    FINE = "fine"
    NOTE = "note"
    """It works; a person should know it."""
    WRONG = "wrong"
    """Work cannot go on, or not safely, before it is mended."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `doctor`."""

    name: str
    standing: Standing
    text: str
    mend: str = ""
    """What to do; empty where nothing has to be done."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what `reconcile` shows."""

    title: str
    lines: tuple[str, ...]


def fine(name: str, text: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(name=name, standing=Standing.FINE, text=text)


def note(name: str, text: str, mend: str = "") -> Finding:
    """Say something that a person should know."""
    return Finding(name=name, standing=Standing.NOTE, text=text, mend=mend)


def wrong(name: str, text: str, mend: str) -> Finding:
    """Say what has to be mended, and how."""
    return Finding(name=name, standing=Standing.WRONG, text=text, mend=mend)
