"""Moves a child's output: through redaction into a capped log and to its reader, and feeds its standard input."""

import os
import selectors
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

from longwatch.kernel.errors import NotReadyError
from longwatch.kernel.redact import Redactor, Stream

LONGEST_LINE = 8 * 1024 * 1024
"""A coding agent printed a line of 1.57 MB; what is longer than this is cut."""

_CHUNK = 256 * 1024
_TAIL = 256 * 1024
_DRAIN_READS = 64
"""So many reads at most after the child's end: an orphan that prints without end must not hold us."""


class CappedLog:
    """A log file that never grows beyond its cap. What is too much is left out of the middle, and the log says so."""

    def __init__(self, path: Path, cap_bytes: int) -> None:
        """An older file of this name is replaced; a symbolic link is not followed."""
        self._file = _create(path)
        self._path = path
        self._cap = cap_bytes
        self._written = 0
        self._overflow = bytearray()
        self._left_out = 0

    def write(self, data: bytes) -> None:
        """Append; beyond the cap only the latest bytes are remembered."""
        room = self._cap - self._written
        self._append(data[:room])
        self._written += min(room, len(data))
        beyond = data[room:]
        self._overflow += beyond
        surplus = len(self._overflow) - _TAIL
        if surplus > 0:
            del self._overflow[:surplus]
            self._left_out += surplus

    def _append(self, data: bytes) -> None:
        try:
            _write_all(self._file, data)
        except OSError as error:
            raise NotReadyError(
                f"{self._path} cannot be written: {error}; free some space on its disk"
            ) from error

    def close(self) -> None:
        """Put the tail where it belongs."""
        if self._overflow:
            self._fold()
        self._file.close()

    def _fold(self) -> None:
        """Cut the end of the file off, and write what was left out, and the tail, in its place."""
        tail_size = min(_TAIL, self._cap // 2)
        self._file.seek(max(self._written - tail_size, 0))
        tail = (self._file.read() + bytes(self._overflow))[-tail_size:] if tail_size else b""
        total = self._written + self._left_out + len(self._overflow)
        # The notice names a number whose own length matters: room is made for the longest one.
        head = max(self._cap - tail_size - len(_notice(total)), 0)
        self._file.truncate(head)
        self._file.seek(head)
        self._append((_notice(total - head - len(tail)) + tail)[: self._cap - head])


def _notice(size: int) -> bytes:
    return f"\n[longwatch: {size} bytes are left out here]\n".encode()


def _write_all(file: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _create(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
    except OSError as error:
        raise NotReadyError(f"the log {path} cannot be created: {error}; make its folder writable") from error


class Lines:
    """Cuts a stream into lines and hands each over once; the part of a line beyond `LONGEST_LINE` is dropped."""

    def __init__(self, take: Callable[[bytes], None], longest: int = LONGEST_LINE) -> None:
        self._take = take
        self._longest = longest
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        """Take a piece of output."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._append(part)
            self.close()
        self._append(rest)

    def close(self) -> None:
        """Hand over an unfinished last line, if there is one."""
        self._take(bytes(self._held))
        self._held.clear()

    @property
    def pending(self) -> bool:
        """True if a line was begun and not finished."""
        return bool(self._held)

    def _append(self, part: bytes) -> None:
        self._held += part[: self._longest - len(self._held)]


class Pump:
    """Serves the pipes of one child from one thread, and wakes at its end. Nothing in here blocks but `wait`."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        *,
        pidfd: int,
        log: CappedLog,
        redactor: Redactor,
        stdin: bytes,
        line: Callable[[bytes], None],
    ) -> None:
        self.printed_bytes = 0
        self.ended = False
        self._log = log
        self._lines = Lines(line)
        self._stdin = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self._pidfd = pidfd
        self._selector.register(pidfd, selectors.EVENT_READ, self._end)
        self._streams: list[tuple[IO[bytes], Stream]] = []
        self._add_output(child.stdout, redactor)
        self._add_output(child.stderr, redactor)
        self._stdout = child.stdout
        self._add_input(child.stdin)

    def _add_output(self, pipe: IO[bytes] | None, redactor: Redactor) -> None:
        if pipe is None:
            return
        stream = redactor.stream()
        os.set_blocking(pipe.fileno(), False)
        self._streams.append((pipe, stream))
        self._selector.register(pipe, selectors.EVENT_READ, lambda: self._read(pipe, stream))

    def _add_input(self, pipe: IO[bytes] | None) -> None:
        if pipe is None:
            return
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, selectors.EVENT_WRITE, lambda: self._write(pipe))

    def wait(self, timeout_s: float) -> None:
        """Move what is ready now; wait for something to become ready for `timeout_s` at most."""
        for key, _ in self._selector.select(timeout_s):
            key.data()

    def finish(self) -> None:
        """Take what still lies in the pipes, and close them: an orphan that holds one is not waited for."""
        for pipe, stream in self._streams:
            reads = 0
            while not pipe.closed and reads < _DRAIN_READS and self._read(pipe, stream):
                reads += 1
            self._give(pipe, stream.close())
        if self._lines.pending:
            self._lines.close()
        for key in tuple(self._selector.get_map().values()):
            self._drop(key.fileobj)
        self._selector.close()

    def _end(self) -> None:
        self.ended = True
        self._selector.unregister(self._pidfd)

    def _read(self, pipe: IO[bytes], stream: Stream) -> bool:
        """Read once; False if there was nothing."""
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._drop(pipe)
            return False
        self.printed_bytes += len(data)
        self._give(pipe, stream.feed(data))
        return True

    def _give(self, pipe: IO[bytes], data: bytes) -> None:
        self._log.write(data)
        if pipe is self._stdout:
            self._lines.feed(data)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self._stdin = self._stdin[os.write(pipe.fileno(), self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it closed its input: it does not want to know
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._drop(pipe)

    def _drop(self, file: object) -> None:
        if isinstance(file, int):
            self._selector.unregister(file)
            return
        self._selector.unregister(file)  # type: ignore[arg-type]
        file.close()  # type: ignore[attr-defined]
