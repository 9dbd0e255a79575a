"""The only writers of files, and the only readers and removers of files that somebody else may have shaped.

A write is a temporary file beside its target, an fsync, a rename and an fsync of the folder: a reader sees the old
content or the new, also after a power loss. A write that was cut short leaves at most a file named
`.longwatch-*.tmp`, which nothing reads.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from longwatch.kernel.errors import IntegrityError, LongwatchError, NotReadyError, PathError
from longwatch.kernel.removal import remove_folder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNTRUSTED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK_BYTES = 1024 * 1024

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MENDS = {
    errno.ENOSPC: "the disk is full: free some space, or raise [host] free_disk_bytes to stop earlier",
    errno.EDQUOT: "the disk quota is used up: free some space or raise the quota",
    errno.EFBIG: "the file would pass the file-size limit (ulimit -f): raise it",
    errno.EROFS: "the file system is read-only: remount it writable, or move the watch",
    errno.EACCES: "permission is denied: check the owner and mode of the file and its folder",
    errno.EPERM: "the operation is not permitted: check the owner and attributes of the file",
    errno.ENOENT: "its folder does not exist: create the folder, or run `longwatch init`",
    errno.ENOTDIR: "a part of the path is no folder: move that file away",
    errno.EISDIR: "a folder stands there: move it away",
    errno.ENAMETOOLONG: "the name is too long for the file system: choose a shorter one",
    errno.EIO: "the device reports an error: check the disk and the kernel's log",
    errno.EBUSY: "something is mounted or in use there: unmount or end it",
}


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` at `path`, whole and durable, or raise and leave the old content as it was.

    A symbolic link at `path` is replaced, never written through. `mode` holds whatever the umask is.

    Raises:
        NotReadyError: the disk is full.
        LongwatchError: any other reason; the message names the path and the mend.
    """
    _write(path, data, mode, _exchange)


def replace_json(path: Path, value: msgspec.Struct, mode: int = 0o600) -> None:
    """Put `value` at `path` as indented JSON with a final newline; otherwise as `replace`."""
    replace(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n", mode)


def show(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` at `path` whole, but without waiting for the disk: for what may be lost with the power.

    Raises:
        NotReadyError, LongwatchError: as `replace`.
    """
    _write(path, data, mode, _exchange, durable=False)


@contextmanager
def log(path: Path, mode: int = 0o600) -> Iterator[int]:
    """Open a log of our own for appending, made where it is missing, for a program that we start."""
    with _explained("open", path):
        descriptor = os.open(
            path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode
        )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that the file at `path` stands for; a second caller waits. It ends with its holder, however that dies."""
    with log(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def create(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` at a `path` that is named by its content. Nothing that exists is ever overwritten.

    A repeat with the same content is harmless.

    Raises:
        IntegrityError: something else stands at `path`.
        NotReadyError, LongwatchError: as `replace`.
    """
    try:
        _write(path, data, mode, _add)
    except FileExistsError:
        if not _holds(path, data):
            raise IntegrityError(
                f"{path} exists with other content and was not overwritten: move it away after looking at it"
            ) from None


def make_folder(path: Path) -> Path:
    """Create the folder and its parents with mode 0700 where they are missing, durably, and return it."""
    with _explained("create the folder", path):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
            with _opened(folder.parent) as parent:
                os.fsync(parent)
        with _opened(path):
            return path


def normal(relative: str) -> str:
    """Pure: return the path without `.` and doubled `/`; the root itself is `.`.

    Raises:
        PathError: it is empty, absolute, has a NUL or a `..`, or cannot be a file name.
    """
    if not relative:
        raise PathError("an empty path names nothing: write a path inside the root")
    if "\0" in relative:
        raise PathError(f"path {relative!r} has a NUL character: remove it")
    if relative.startswith("/"):
        raise PathError(f"path {relative!r} is absolute: write it relative to its root")
    parts = [part for part in relative.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise PathError(f"path {relative!r} has a `..`: write it without")
    try:
        os.fsencode(relative)
    except UnicodeEncodeError as error:
        raise PathError(f"path {relative!r} cannot be a file name: {error.reason}") from error
    return "/".join(parts) or "."


def contained(root: Path, relative: str) -> Path:
    """Return `root / relative` if it stays inside `root`, symbolic links followed (specification K34).

    The last parts need not exist. What the path leads to can change later: whoever opens it and cares uses
    `read_bounded`.

    Raises:
        PathError: it is empty, absolute, has a NUL or a `..`, or a symbolic link on its way leads outside or in
            a circle.
    """
    path = root / normal(relative)
    base = os.path.realpath(root)
    if not _inside(os.path.realpath(path), base):
        raise PathError(
            f"path {relative!r} leads outside {root}: a symbolic link on its way points elsewhere"
        )
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathError(f"path {relative!r} in {root} is a circle of symbolic links") from error
    return path


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file that somebody else may have put there.

    Never blocks, never follows a symbolic link at the end of the path, never reads more than `max_bytes` + 1.

    Raises:
        FileNotFoundError: there is nothing at `path`.
        PathError: a link, FIFO, socket, device or folder stands there, or the file is larger than `max_bytes`.
        LongwatchError: it cannot be read; the message names the mend.
    """
    with _explained("read", path, missing=True):
        descriptor = _open_untrusted(path)
        try:
            return _read_regular(descriptor, path, max_bytes)
        finally:
            os.close(descriptor)


def read_ends(path: Path, head_bytes: int, tail_bytes: int) -> tuple[int, bytes, bytes]:
    """Return the size, the beginning and the end of a regular file, each of them bounded; raises as `read_bounded`.

    Of a file that fits into the two together the beginning is all.
    """
    with _explained("read", path, missing=True):
        descriptor = _open_untrusted(path)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise PathError(f"{path} is a {_kind(facts.st_mode)}: a regular file is needed there")
            size, together = facts.st_size, head_bytes + tail_bytes
            if size <= together:
                return size, os.pread(descriptor, together, 0), b""
            return (
                size,
                os.pread(descriptor, head_bytes, 0),
                os.pread(descriptor, tail_bytes, size - tail_bytes),
            )
        finally:
            os.close(descriptor)


def remove_recorded(path: Path, root: Path) -> None:
    """Remove a file or a whole tree at a recorded path below `root`, durably; a missing one is no error (K9).

    Works on trees of any depth and any permissions, and never follows a symbolic link inside them.

    Raises:
        PathError: `path` is `root` itself, not below it, or one of its parts below `root` is a symbolic link.
        LongwatchError: it cannot be removed; the message names the mend.
    """
    parts = _parts_below(path, root)
    with _explained("remove", path), suppress(FileNotFoundError), _walked(root, parts[:-1], path) as parent:
        _remove(parent, parts[-1], path)
        os.fsync(parent)


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write on the file system of `path`, which must exist."""
    with _explained("ask for the free space of", path):
        facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


@contextmanager
def _explained(verb: str, path: Path, *, missing: bool = False) -> Iterator[None]:
    """Turn an `OSError` into our own error; with `missing`, let `FileNotFoundError` through."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if missing and error.errno == errno.ENOENT:
            raise
        kind = NotReadyError if error.errno in _FULL else LongwatchError
        reason = _MENDS.get(error.errno or 0, f"{error.strerror}: check the file and its folder")
        raise kind(f"cannot {verb} {path}: {reason}") from error


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _exchange(folder: int, temporary: str, name: str) -> None:
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _add(folder: int, temporary: str, name: str) -> None:
    os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(temporary, dir_fd=folder)


def _write(
    path: Path, data: bytes, mode: int, publish: Callable[[int, str, str], None], *, durable: bool = True
) -> None:
    with _explained("write", path), _opened(path.parent) as folder:
        temporary = f".longwatch-{os.urandom(8).hex()}.tmp"
        try:
            _fill(folder, temporary, data, mode, durable=durable)
            publish(folder, temporary, path.name)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        if durable:
            os.fsync(folder)


def _fill(folder: int, name: str, data: bytes, mode: int, *, durable: bool) -> None:
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, mode)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return read_bounded(path, len(data)) == data
    except (PathError, FileNotFoundError):
        return False


def _inside(path: str, base: str) -> bool:
    return path == base or path.startswith(base.rstrip("/") + "/")


def _open_untrusted(path: Path) -> int:
    try:
        return os.open(path, _UNTRUSTED)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathError(f"{path} is a symbolic link: a regular file is needed there") from error
        if error.errno == errno.ENXIO:
            raise PathError(f"{path} is a socket or device: a regular file is needed there") from error
        raise


def _read_regular(descriptor: int, path: Path, max_bytes: int) -> bytes:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise PathError(f"{path} is a {_kind(facts.st_mode)}: a regular file is needed there")
    if facts.st_size > max_bytes:
        raise PathError(f"{path} has {facts.st_size} bytes, more than the allowed {max_bytes}")
    data = bytearray()
    while len(data) <= max_bytes:
        chunk = os.read(descriptor, min(_CHUNK_BYTES, max_bytes + 1 - len(data)))
        if not chunk:
            return bytes(data)
        data += chunk
    raise PathError(f"{path} grew past the allowed {max_bytes} bytes while it was read")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "FIFO"
    return "socket or device"


def _parts_below(path: Path, root: Path) -> tuple[str, ...]:
    try:
        parts = path.absolute().relative_to(root.absolute()).parts
    except ValueError as error:
        raise PathError(f"{path} is not below {root} and was not removed") from error
    if not parts or ".." in parts:
        raise PathError(f"{path} is not strictly below {root} and was not removed")
    return parts


@contextmanager
def _walked(root: Path, parts: tuple[str, ...], path: Path) -> Iterator[int]:
    """Open the folder at `parts` below `root` step by step, so that no link can lead the way."""
    descriptor = os.open(root, _FOLDER)
    try:
        for part in parts:
            _refuse_link(descriptor, part, path)
            deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_link(folder: int, name: str, path: Path) -> os.stat_result:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode):
        raise PathError(f"{name!r} in {path} is a symbolic link: nothing was removed")
    return facts


def _remove(parent: int, name: str, path: Path) -> None:
    if not stat.S_ISDIR(_refuse_link(parent, name, path).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    remove_folder(parent, name)
