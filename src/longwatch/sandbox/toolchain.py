"""Which folders of the host a sandbox must show, so that the tools on the person's PATH run inside.

The home itself is never shown, nor a folder that holds credentials: of such a folder only the programs are.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from longwatch.sandbox.bubblewrap import ALWAYS_SHOWN

_CREDENTIALS = frozenset(
    {
        ".aws",
        ".azure",
        ".claude",
        ".codex",
        ".config",
        ".docker",
        ".git-credentials",
        ".gnupg",
        ".kube",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".ssh",
        "auth.json",
        "credentials",
        "credentials.json",
        "credentials.toml",
        "keyrings",
    }
)
_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims"})
_LONGEST_CHAIN = 40
_SHEBANG_BYTES = 256


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """What the sandbox needs besides what it always shows."""

    folders: tuple[Path, ...]
    """To be exposed read-only at their own path."""
    path: str
    """The host's PATH without what is not shown."""
    environment: Mapping[str, str]
    """Where tools that look below the home find their parts."""


def find(programs: Sequence[str], path: str) -> Toolchain:
    """Follow each program to everything it stands on. One that is not found is left out: its check will say so."""
    files = tuple(dict.fromkeys(file for name in programs for file in _chain(name, path, _LONGEST_CHAIN)))
    folders = _outermost(
        folder for file in files for folder in _folders(file) if not _shown(folder, ALWAYS_SHOWN)
    )
    entries = (entry for entry in path.split(":") if entry and _shown(Path(entry), (*ALWAYS_SHOWN, *folders)))
    return Toolchain(
        folders=folders, path=":".join(dict.fromkeys(entries)), environment=_environment(folders)
    )


def prefixes(programs: Sequence[str], path: str) -> tuple[Path, ...]:
    """Return only the folders of `find`."""
    return find(programs, path).folders


def _chain(name: str, path: str, left: int) -> Iterator[Path]:
    """Give the program, whatever its links lead to, and the interpreters of scripts."""
    found = shutil.which(name, path=path)
    if found is None or left == 0:
        return
    file = Path(found).absolute()
    yield file
    while file.is_symlink() and (left := left - 1) > 0:
        # Lexical parents would be wrong behind a linked folder.
        file = file.parent.resolve() / file.readlink()
        yield file
    yield file.resolve()
    interpreter = _interpreter(file)
    if interpreter is not None:
        yield from _chain(interpreter, path, left - 1)


def _interpreter(file: Path) -> str | None:
    with file.open("rb") as script:
        first = script.readline(_SHEBANG_BYTES)
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _folders(file: Path) -> Iterator[Path]:
    """Give the folders that one program needs."""
    if "node_modules" in file.parts:
        yield Path(*file.parts[: file.parts.index("node_modules") + 1])
        return
    home = file.parent
    prefix = home.parent if home.name in _PROGRAM_FOLDERS else home
    yield prefix if _is_safe(prefix) else home
    yield from _relatives(prefix)


def _relatives(prefix: Path) -> Iterator[Path]:
    """Give what a virtual environment or a Rust installation stands on, beside itself."""
    marker = prefix / "pyvenv.cfg"
    if marker.is_file():
        lines = marker.read_text(encoding="utf-8").splitlines()
        values = (
            line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"
        )
        yield from (Path(value).resolve().parent for value in values)
    if prefix.name == ".cargo":
        yield from (prefix / "registry", prefix.parent / ".rustup")


def _is_safe(folder: Path) -> bool:
    home = Path.home()
    if home.is_relative_to(folder) or folder in {home / ".local", home / ".cargo"}:
        return False
    return not any((folder / name).exists() for name in _CREDENTIALS)


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Leave out what lies inside another one, what does not exist, and what must not be shown at all."""
    usable = {folder for folder in folders if folder.is_dir() and _is_safe(folder)}
    return tuple(
        sorted(
            one for one in usable if not any(one != other and one.is_relative_to(other) for other in usable)
        )
    )


def _shown(folder: Path, roots: Iterable[Path]) -> bool:
    return any(folder.is_relative_to(root) for root in roots)


def _environment(folders: tuple[Path, ...]) -> dict[str, str]:
    rust = next((folder for folder in folders if folder.name == ".rustup"), None)
    return {} if rust is None else {"RUSTUP_HOME": str(rust)}
