"""Our half of the wire: frames with a deadline, and the check that a value is plain data. Nothing here trusts the other end."""

import math
import os
import select
import time
from collections.abc import Callable
from typing import Any

import msgspec

from longwatch.kernel.errors import LongwatchError

Tree = Any
"""A value as tagged JSON (see `plain`). Ours never becomes sets or dictionaries with foreign keys: these can be made
to collide."""

_SLICE_S = 0.2
_CHUNK_BYTES = 65_536
_LARGEST_EXACT = 2**53
_CONTAINERS = frozenset("ltSFd")
_HEXADECIMAL = frozenset("0123456789abcdef")


class ClosedError(LongwatchError):
    """The other end is gone."""


class LateError(LongwatchError):
    """The other end did not answer in time."""


class GarbageError(LongwatchError):
    """The other end broke the protocol; the message says how."""


class AbandonedError(LongwatchError):
    """We were asked to stop."""


class Patience:
    """How long one run may wait, and whether it was asked to stop."""

    def __init__(self, wall_s: float, abandoned: Callable[[], bool]) -> None:
        self.started_s = time.monotonic()
        self._deadline_s = self.started_s + wall_s
        self._abandoned = abandoned

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started_s

    def wait(self, descriptor: int, event: int) -> None:
        """Return when the descriptor is ready; `LateError` after the deadline."""
        poll = select.poll()
        poll.register(descriptor, event)
        while not poll.poll(_SLICE_S * 1000):
            if self._abandoned():
                raise AbandonedError("grading was asked to stop")
            if time.monotonic() > self._deadline_s:
                raise LateError("no answer in time")


class Frames:
    """Frames over two pipes: a length in four bytes, most significant first, and JSON."""

    def __init__(self, source: int, sink: int, *, largest_bytes: int, patience: Patience) -> None:
        self._source, self._sink = source, sink
        self._largest_bytes, self._patience = largest_bytes, patience
        self._buffer = bytearray()
        os.set_blocking(sink, False)

    def send(self, message: object) -> None:
        """Write one frame."""
        data = msgspec.json.encode(message)
        self.write(len(data).to_bytes(4, "big") + data)

    def write(self, data: bytes) -> None:
        """Write bytes that are no frame."""
        left = memoryview(data)
        while left:
            self._patience.wait(self._sink, select.POLLOUT)
            try:
                left = left[os.write(self._sink, left) :]
            except BrokenPipeError as error:
                raise ClosedError("it closed its input") from error
            except BlockingIOError:  # ready, but for less than a pipe writes at once
                continue

    def receive(self) -> list[Tree]:
        """Read one frame: a list that starts with a word."""
        self._fill(4)
        size = int.from_bytes(self._buffer[:4], "big")
        if size > self._largest_bytes:
            raise GarbageError(f"a frame of {size} bytes; the limit is {self._largest_bytes}")
        self._fill(4 + size)
        data = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return _message(data)

    def rest(self) -> bytes:
        """Read to the end what is no frame."""
        while chunk := self._chunk():
            self._buffer += chunk
            if len(self._buffer) > self._largest_bytes:
                raise GarbageError(f"more than {self._largest_bytes} bytes")
        return bytes(self._buffer)

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            chunk = self._chunk()
            if not chunk:
                raise ClosedError("it ended before it answered")
            self._buffer += chunk

    def _chunk(self) -> bytes:
        self._patience.wait(self._source, select.POLLIN)
        return os.read(self._source, _CHUNK_BYTES)


def _message(data: bytes) -> list[Tree]:
    try:
        message = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise GarbageError(f"a frame that is no JSON: {error}") from error
    if not (isinstance(message, list) and message and isinstance(message[0], str)):
        raise GarbageError("a frame that is no message")
    return message


def check(tree: Tree, depth: int) -> Tree:
    """Return the tree if it is plain data in exactly its own form and nested at most so deep; else `GarbageError`."""
    if isinstance(tree, list):
        _check_tagged(tree, depth)
    elif isinstance(tree, int) and abs(tree) > _LARGEST_EXACT:
        raise GarbageError("a large number without its tag")
    elif isinstance(tree, float) and not math.isfinite(tree):
        raise GarbageError("a number that is none")
    elif isinstance(tree, dict):
        raise GarbageError("a bare object")
    return tree


def _check_tagged(tree: list[Tree], depth: int) -> None:
    tag = tree[0] if tree else None
    if not isinstance(tag, str):
        raise GarbageError("a list without its tag")
    if tag in _CONTAINERS:
        if depth == 0:
            raise GarbageError("a value that is nested too deep")
        if tag == "d" and len(tree) % 2 == 0:
            raise GarbageError("a dictionary with half a pair")
        for part in tree[1:]:
            check(part, depth - 1)
    elif tag not in _SCALARS or not _SCALARS[tag](tree[1:]):
        raise GarbageError(f"a value with the unknown or wrongly filled tag {tag[:20]!r}")


def _is_hexadecimal(rest: list[Tree], *, even: bool) -> bool:
    return (
        len(rest) == 1
        and isinstance(rest[0], str)
        and _HEXADECIMAL.issuperset(rest[0])
        and not (even and len(rest[0]) % 2)
    )


def _is_integer(rest: list[Tree]) -> bool:
    digits = rest[0].removeprefix("-") if rest and isinstance(rest[0], str) else ""
    return bool(digits) and _is_hexadecimal([digits, *rest[1:]], even=False)


def _is_odd_float(rest: list[Tree]) -> bool:
    return len(rest) == 1 and rest[0] in ("nan", "inf", "-inf")


def _is_float(part: Tree) -> bool:
    return isinstance(part, float) or (
        isinstance(part, list) and part[:1] == ["f"] and _is_odd_float(part[1:])
    )


def _is_surrogate_text(rest: list[Tree]) -> bool:
    if not _is_hexadecimal(rest, even=True):
        return False
    try:
        bytes.fromhex(rest[0]).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


_SCALARS: dict[str, Callable[[list[Tree]], bool]] = {
    "i": _is_integer,
    "n": _is_integer,
    "f": _is_odd_float,
    "c": lambda rest: len(rest) == 2 and all(map(_is_float, rest)),
    "b": lambda rest: _is_hexadecimal(rest, even=True),
    "s": _is_surrogate_text,
    "u": lambda rest: not rest,
}
"""`n` is JavaScript's BigInt, `u` its undefined."""
