"""A person's wishes as durable, sequenced requests (specification K11). They never carry a wall clock that decides."""

from enum import StrEnum

import msgspec


class Verb(StrEnum):
    """What a person can ask for."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One wish."""

    verb: Verb
    accept: bool = False
    """With `resume`: the person's word that they looked."""
    refresh: bool = False
    """With `accept`: take the world as it is now for the new starting point."""
    after_step: bool = False
    """With `pause`: let running steps finish first."""
