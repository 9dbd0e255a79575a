"""Lists what stands below a folder, with stamps; large trees on all cores."""

import errno
import hashlib
import itertools
import marshal
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from longwatch.kernel import walking
from longwatch.kernel.errors import PathError
from longwatch.kernel.walking import Columns, Request

_BOUND = frozenset({stat.S_IFREG, stat.S_IFLNK})
_ERROR_PARTS = 2
_SHARES_PER_CORE = 16
_LARGE = 2000
"""Files that are seen before helpers are worth their start."""


class Walk:
    """A tree that was walked: its fingerprint, and on request everything that was found."""

    def __init__(self, own: Columns, helpers: "list[subprocess.Popen[bytes]]") -> None:
        self._own = own
        self._helpers = helpers

    def fingerprint(self) -> bytes:
        """One digest over every path, mode and stamp; nothing if a file is too young to be known.

        Raises:
            OSError: a helper could not read a folder.
        """
        parts = [walking.fingerprint(self._own), *(_answer(helper)[0] for helper in self._helpers)]
        return hashlib.sha256(b"".join(parts)).digest() if all(parts) else b""

    def columns(self) -> Columns:
        """Everything that was found; to be asked once, after the fingerprint.

        Raises:
            PathError: a FIFO, socket or device is there, or a name is not UTF-8.
        """
        for helper in self._helpers:
            with cast("IO[bytes]", helper.stdin) as pipe:
                pipe.write(b"?")
            _extend(self._own, Columns(*_answer(helper)))
        return _checked(self._own)


@contextmanager
def walk(root: Path, without: frozenset[str]) -> Iterator[Walk]:
    """Walk all below `root`, leaving out the paths in `without`. Links are never followed.

    A tree that shows itself to be large is walked with helpers on the other cores. Where it is parted depends on the tree
    alone: the fingerprint covers the parts in their order.

    Raises:
        OSError: a folder cannot be read.
    """
    found = Columns([], [], [])
    # The clock is read before anything is listed: what changes from now on counts as young.
    request = Request(os.fspath(root), [""], without, time.time_ns())
    cores = len(os.sched_getaffinity(0))
    waiting = [""]
    while waiting and (len(waiting) < (cores - 1) * _SHARES_PER_CORE or len(found.paths) < _LARGE):
        waiting += walking.step(request, waiting.pop(0), found)
    own, *others = (request._replace(folders=waiting[start::cores]) for start in range(cores))
    with ExitStack() as stack:
        helpers = [_ask(stack, other) for other in others if other.folders]
        _extend(found, walking.walk(own))
        yield Walk(found, helpers)


def scan(root: Path, without: frozenset[str]) -> Columns:
    """List all files and links below `root`; errors as `walk` and `Walk.columns`."""
    with walk(root, without) as walked:
        walked.fingerprint()
        return walked.columns()


def look_up(root: Path, paths: Iterable[str], without: frozenset[str]) -> tuple[Columns, tuple[str, ...]]:
    """List what stands at `paths`, and name those where nothing does; a folder stands for everything in it."""
    found, missing = Columns([], [], []), []
    request = Request(os.fspath(root), [], without, time.time_ns())
    for path in paths:
        try:
            facts = os.lstat(f"{request.base}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            missing.append(path)
            continue
        if stat.S_ISDIR(facts.st_mode):
            request.folders.append("" if path == "." else f"{path}/")
        else:
            _extend(found, Columns([path], [facts.st_mode], [walking.stamp(facts, request.now_ns)]))
    _extend(found, walking.walk(request))
    return _checked(found), tuple(missing)


def _ask(stack: ExitStack, request: Request) -> "subprocess.Popen[bytes]":
    """Start a helper. It reads all of its request first and answers last, so neither side can block the other."""
    argv = [sys.executable, "-I", "-S", walking.__file__]
    helper = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    stack.callback(helper.kill)
    pipe = cast("IO[bytes]", helper.stdin)
    with suppress(BrokenPipeError):  # it died, which its answer will show
        pipe.write(marshal.dumps(tuple(request)))
        pipe.flush()
    return helper


def _answer(helper: "subprocess.Popen[bytes]") -> tuple[Any, ...]:
    try:
        answer: tuple[Any, ...] = marshal.load(cast("IO[bytes]", helper.stdout))  # noqa: S302 - this same program
    except EOFError as error:
        raise OSError(errno.EIO, f"a helper process died with code {helper.wait()}") from error
    if len(answer) == _ERROR_PARTS:
        raise OSError(answer[0], os.strerror(answer[0]), answer[1])
    return answer


def _extend(found: Columns, more: Columns) -> None:
    found.paths.extend(more.paths)
    found.modes.extend(more.modes)
    found.stamps.extend(more.stamps)


def _checked(found: Columns) -> Columns:
    """Refuse what cannot be bound. Modes repeat and names are mostly ASCII, so the usual case costs next to nothing."""
    refused = {mode for mode in set(found.modes) if stat.S_IFMT(mode) not in _BOUND}
    if refused:
        path = next(itertools.compress(found.paths, (mode in refused for mode in found.modes)))
        raise PathError(f"{path!r} is a FIFO, socket or device: only files and links can be bound")
    for path in itertools.filterfalse(str.isascii, found.paths):
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise PathError(f"{path!r} is no UTF-8 name: rename the file") from error
    return found
