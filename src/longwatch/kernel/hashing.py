"""Hashes files on all cores.

A few files are hashed by threads: hashlib and the kernel let go of the interpreter's lock for large ones. Many small
files would spend their time on that lock, so they go to helper processes, each running this very file. It therefore
imports the standard library only, and starts in a few hundredths of a second.
"""

import errno
import hashlib
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

_CHUNK_BYTES = 1024 * 1024
_SMALL_BYTES = 65_536
_MANY = 2000
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STAMP = struct.Struct("<QQqqq")
_ANSWER = struct.Struct(f"<i{_STAMP.size}s32s")
_CHANGED = -1
_IRREGULAR = -2


class Hashed(NamedTuple):
    """What was read: the SHA-256, and the stamp (see `statcache`) that held from before the first byte to the last."""

    stamp: bytes
    sha256: bytes


class ChangedError(OSError):
    """A file changed while it was read."""


class IrregularError(OSError):
    """Something that is no regular file stands there."""


def stamp(facts: os.stat_result) -> bytes:
    """What the file is known by, however young it is."""
    return _STAMP.pack(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def hash_file(path: str) -> Hashed:
    """Hash one regular file without following a link at its end and without blocking.

    Raises:
        ChangedError, IrregularError: as they say, with the path in `filename`.
        OSError: it cannot be read.
    """
    code, mark, digest = _hash(path)
    if code:
        raise _error(code, path)
    return Hashed(mark, digest)


def hash_files(paths: Sequence[str]) -> list[Hashed]:
    """Hash many files on all cores; answers in the order of `paths`.

    Raises:
        OSError: for the first file that cannot be hashed, as `hash_file`.
    """
    answers = _by_threads(paths) if len(paths) < _MANY else _by_processes(paths)
    for path, (code, _, _) in zip(paths, answers, strict=True):
        if code:
            raise _error(code, path)
    return [Hashed(mark, digest) for _, mark, digest in answers]


_Answer = tuple[int, bytes, bytes]


def _by_threads(paths: Sequence[str]) -> list[_Answer]:
    with ThreadPoolExecutor(_cores()) as threads:
        return list(threads.map(_hash, paths))


def _by_processes(paths: Sequence[str]) -> list[_Answer]:
    """Deal the paths out like cards, so that a folder of large files does not land on one core."""
    count = _cores()
    answers: list[_Answer] = [(errno.EIO, b"", b"")] * len(paths)
    with ThreadPoolExecutor(count) as threads:
        shares = threads.map(_ask_helper, [paths[start::count] for start in range(count)])
        for start, share in enumerate(shares):
            answers[start::count] = share
    return answers


def _ask_helper(paths: Sequence[str]) -> list[_Answer]:
    argv = [sys.executable, "-I", "-S", __file__]
    request = b"\0".join(map(os.fsencode, paths))
    done = subprocess.run(argv, input=request, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise OSError(errno.EIO, f"a helper process died with code {done.returncode}")
    return list(_ANSWER.iter_unpack(done.stdout))


def _error(code: int, path: str) -> OSError:
    if code == _CHANGED:
        return ChangedError(errno.EAGAIN, "changed while it was read", path)
    if code == _IRREGULAR or code in {errno.ELOOP, errno.ENXIO}:
        return IrregularError(errno.EINVAL, "is no regular file", path)
    return OSError(code, os.strerror(code), path)


def _hash(path: str) -> _Answer:
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        return error.errno or errno.EIO, b"", b""
    try:
        return _hash_open(descriptor)
    except OSError as error:
        return error.errno or errno.EIO, b"", b""
    finally:
        os.close(descriptor)


def _hash_open(descriptor: int) -> _Answer:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        return _IRREGULAR, b"", b""
    if facts.st_size < _SMALL_BYTES:
        digest = hashlib.sha256(os.read(descriptor, _SMALL_BYTES)).digest()
    else:
        digest = _hash_large(descriptor)
    mark = stamp(facts)
    return (0 if stamp(os.fstat(descriptor)) == mark else _CHANGED), mark, digest


def _hash_large(descriptor: int) -> bytes:
    state = hashlib.sha256()
    buffer = bytearray(_CHUNK_BYTES)
    view = memoryview(buffer)
    while size := os.readv(descriptor, [buffer]):
        state.update(view[:size])
    return state.digest()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _serve() -> None:
    request = sys.stdin.buffer.read()
    for path in request.split(b"\0"):
        sys.stdout.buffer.write(_ANSWER.pack(*_hash(os.fsdecode(path))))


if __name__ == "__main__":
    _serve()
