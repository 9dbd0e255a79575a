"""Lists what stands below a folder, with stamps and remembered digests; large trees on all cores."""

import errno
import itertools
import marshal
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

from longwatch.kernel import walking
from longwatch.kernel.errors import PathError
from longwatch.kernel.statcache import StatCache
from longwatch.kernel.walking import Columns, Request

_BOUND = frozenset({stat.S_IFREG, stat.S_IFLNK})
_LARGE = 20_000
_SHARES_PER_CORE = 16


def scan(root: Path, without: frozenset[str], cache: StatCache | None = None) -> Columns:
    """List all files and links below `root`, leaving out the paths in `without`. Links are never followed.

    Raises:
        PathError: a FIFO, socket or device is there, or a name is not UTF-8.
        OSError: a folder cannot be read.
    """
    return _checked(_below(_request(root, [""], without, cache), cache))


def look_up(
    root: Path, paths: Iterable[str], without: frozenset[str], cache: StatCache | None = None
) -> tuple[Columns, tuple[str, ...]]:
    """List what stands at `paths`, and name those where nothing does; a folder stands for everything in it."""
    found, missing, folders = Columns([], [], [], []), [], []
    base, now_ns = os.fspath(root), time.time_ns()
    known = cache.known() if cache else {}
    for path in paths:
        try:
            facts = os.lstat(f"{base}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            missing.append(path)
            continue
        if stat.S_ISDIR(facts.st_mode):
            folders.append("" if path == "." else f"{path}/")
        else:
            mark = walking.stamp(facts, now_ns)
            _extend(found, Columns([path], [facts.st_mode], [mark], [known.get(mark)]))
    _extend(found, _below(_request(root, folders, without, cache), cache))
    return _checked(found), tuple(missing)


def _request(root: Path, folders: list[str], without: frozenset[str], cache: StatCache | None) -> Request:
    # Taken before anything is listed: what changes from now on counts as young.
    return Request(os.fspath(root), folders, without, time.time_ns(), os.fspath(cache.path) if cache else "")


def _below(request: Request, cache: StatCache | None) -> Columns:
    cores = len(os.sched_getaffinity(0))
    known = cache.known() if cache else {}
    if cores == 1 or len(known) < _LARGE:
        return walking.walk(request, known)
    return _by_processes(request, known, cores)


def _by_processes(request: Request, known: dict[bytes, bytes], cores: int) -> Columns:
    """Walk with helpers on the other cores. A large cache foretells a large tree; nothing depends on it."""
    found = Columns([], [], [], [])
    waiting = list(request.folders)
    while waiting and len(waiting) < cores * _SHARES_PER_CORE:
        waiting += walking.step(request, waiting.pop(0), known, found)
    own, *others = (request._replace(folders=waiting[start::cores]) for start in range(cores))
    with ExitStack() as stack:
        helpers = [_ask(stack, other) for other in others if other.folders]
        _extend(found, walking.walk(own, known))
        for helper in helpers:
            _extend(found, _answer(helper))
    return found


def _ask(stack: ExitStack, request: Request) -> "subprocess.Popen[bytes]":
    """Start a helper. It reads all of its request first and answers last, so neither side can block the other."""
    argv = [sys.executable, "-I", "-S", walking.__file__]
    helper = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    stack.callback(helper.kill)
    with cast("IO[bytes]", helper.stdin) as pipe:
        pipe.write(marshal.dumps(tuple(request)))
    return helper


def _answer(helper: "subprocess.Popen[bytes]") -> Columns:
    data = cast("IO[bytes]", helper.stdout).read()
    if helper.wait():
        raise OSError(errno.EIO, f"a helper process died with code {helper.returncode}")
    answer = marshal.loads(data)  # noqa: S302 - the child is this same program
    if len(answer) == len(Columns._fields):
        return Columns(*answer)
    code, path = answer
    raise OSError(code, os.strerror(code), path)


def _extend(found: Columns, more: Columns) -> None:
    found.paths.extend(more.paths)
    found.modes.extend(more.modes)
    found.stamps.extend(more.stamps)
    found.digests.extend(more.digests)


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
