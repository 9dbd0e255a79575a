"""Engines of containers for tests: a stand-in for docker, and podman itself where it runs on this machine."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from longwatch.sandbox import engine
from longwatch.sandbox.container import Container
from tests.support import engine_service

PROGRAMS = (
    *(
        "bash",
        "cat",
        "env",
        "false",
        "find",
        "getent",
        "grep",
        "head",
        "id",
        "ls",
        "mkdir",
        "mktemp",
        "mv",
        "python3",
        "rm",
    ),
    *("setsid", "sh", "sleep", "tail", "touch", "true", "unshare", "wc"),
)
"""What is in the image that podman runs."""
_FOLDERS = {
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    **dict.fromkeys(("dev", "etc", "home", "opt", "proc", "run", "sys"), 0o755),
}
_UNUSED = frozenset(
    {"__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "tkinter"}
)
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


class Ready(msgspec.Struct, frozen=True):
    """An engine that a test may use."""

    name: str
    environment: Mapping[str, str]
    image: str
    user: tuple[int, int] | None
    """Who the files belong to; docker never runs for root."""

    def sandbox(self) -> Container:
        """Return the sandbox; `environment` must stand in the process."""
        return Container(self.name, self.image, self.user)


def forget() -> None:
    """Let engines be asked anew: what they said is remembered in one process, and was said of another storage."""
    for asked in (engine._podman, engine._docker, engine._image):
        asked.cache_clear()


@contextlib.contextmanager
def stand_in(folder: Path, name: str) -> Iterator[Ready]:
    """Let the stand-in serve as this engine."""
    program, where = folder / "bin" / name, folder / "service"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -S {Path(engine_service.__file__)} {name} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    argv = (sys.executable, "-I", "-S", engine_service.__file__, "serve", str(where))
    with subprocess.Popen(argv, start_new_session=True) as service:
        try:
            _until(where.exists)
            path = f"{program.parent}:{os.environ.get('PATH', os.defpath)}"
            host = {f"{variable}_HOST": f"unix://{where}" for variable in ("DOCKER", "CONTAINER")}
            user = (1000, 1000) if name == "docker" and os.geteuid() == 0 else None
            yield Ready(name, {"PATH": path, **host}, engine_service.IMAGE, user)
        finally:
            service.kill()


@contextlib.contextmanager
def podman() -> Iterator[Ready]:
    """Use podman itself if it runs containers here, and the stand-in if it does not.

    In a folder with a short name: podman waits twenty seconds for each container whose sockets have names too long for it.
    """
    with tempfile.TemporaryDirectory(prefix="lw-") as folder, _podman_in(Path(folder)) as ready:
        yield ready


@contextlib.contextmanager
def _podman_in(folder: Path) -> Iterator[Ready]:
    found = _real(folder)
    if found is None:
        with stand_in(folder, "podman") as ready:
            yield ready
        return
    try:
        yield found
    finally:
        for words in (("rm", "--all", "--force"), ("rmi", "--all", "--force")):
            subprocess.run(
                ("podman", *words), env={**os.environ, **found.environment}, check=True, capture_output=True
            )


def _real(folder: Path) -> Ready | None:
    if shutil.which("podman") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "storage.conf").write_text(_STORAGE.format(folder=folder), encoding="utf-8")
    _image(folder / "image.tar")
    for runtime in ("crun", "runc"):
        text = f'[engine]\nruntime = "{runtime}"\ntmp_dir = "{folder}/alive"\n'
        (folder / "containers.conf").write_text(text, encoding="utf-8")
        places = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
        variables = {name: str(folder / file) for name, file in places.items()}
        if _runs(folder, {**os.environ, **variables}):
            return Ready("podman", variables, "localhost/longwatch-tools", None)
    return None


def _runs(folder: Path, environment: dict[str, str]) -> bool:
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
    run = (
        "podman",
        "run",
        "--rm",
        "--init",
        "--network",
        "none",
        "--memory",
        "64m",
        *limits,
        "localhost/longwatch-tools",
        "true",
    )
    made = ("podman", "import", str(folder / "image.tar"), "localhost/longwatch-tools")
    return all(
        subprocess.run(argv, env=environment, capture_output=True, check=False).returncode == 0
        for argv in (made, run)
    )


@functools.cache
def _closure(programs: tuple[str, ...]) -> frozenset[Path]:
    """Return the programs, the libraries that they load, and every link on the way."""
    found: set[Path] = set()
    for name in programs:
        program = shutil.which(name, path="/usr/bin:/usr/sbin")
        assert program is not None, f"{name} is needed for the image"
        needed = subprocess.run(("ldd", program), capture_output=True, text=True, check=False).stdout.split()
        for word in (program, *(word for word in needed if word.startswith("/"))):
            found.update(_links(Path(word)))
    return frozenset(found)


def _links(path: Path) -> Iterable[Path]:
    yield path
    while path.is_symlink():
        path = path.parent.resolve() / path.readlink()
        yield path


def _image(file: Path) -> None:
    """Make an image of this machine's own programs, and of the library of its Python."""
    with tarfile.open(file, "w") as tar:
        for folder, mode in ({"usr": 0o755, "var": 0o755} | _FOLDERS).items():
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for folder in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{folder}"
            tar.addfile(entry)
        for path in sorted(_closure(PROGRAMS)):
            real = path.parent.resolve() / path.name
            tar.add(
                real,
                arcname=str(real if real.is_relative_to("/usr") else Path("/usr", *real.parts[1:])),
                recursive=False,
            )
        library = Path("/usr/lib", f"python3.{_minor()}")
        tar.add(library, filter=lambda entry: None if _UNUSED & set(Path(entry.name).parts) else entry)


def _minor() -> str:
    said = subprocess.run(
        ("/usr/bin/python3", "-c", "import sys; print(sys.version_info[1])"),
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


def _until(there: Iterable[bool] | object) -> None:
    deadline = time.monotonic() + 20
    while not there():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the stand-in does not serve"
        time.sleep(0.02)
