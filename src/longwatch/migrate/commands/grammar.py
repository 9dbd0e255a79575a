"""The form in which `table` says what a check may tell each program, and the names with a meaning. Pure."""

from collections.abc import Mapping
from enum import Enum, auto

import msgspec


class Operand(Enum):
    """What the arguments that are no options must be."""

    NONE = auto()
    WORD = auto()
    """A target or a goal: no `=`, no `:`, no `..`, no slash at its start."""
    TASK = auto()
    """The same, and a `:` is part of the name."""
    PATH = auto()
    """A path inside the repository; what follows `::` (a test's name) is free."""
    TEXT = auto()
    """Free."""
    SCRIPT = auto()
    """A file inside the repository, and everything after it belongs to that file."""
    PACKAGE_SCRIPT = auto()
    """The name of a script in package.json."""


class Rest(Enum):
    """What may stand behind `--`."""

    NONE = auto()
    OPERANDS = auto()
    """More operands."""
    OWN = auto()
    """Arguments of the repository's own program."""
    TOOL = auto()
    """Arguments for whatever a script of the repository starts: nothing that could carry code."""
    LINTS = auto()
    """Lint levels: `-D warnings`."""


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of one program, or of one of its verbs."""

    verbs: Mapping[str, "Grammar"] = {}
    """By first argument."""
    verb_optional: bool = False
    """Without a known verb the grammar itself holds; otherwise such a command line is refused."""
    flags: frozenset[str] = frozenset()
    letters: str = ""
    """One-letter flags that may be written together."""
    values: frozenset[str] = frozenset()
    """Options whose value is harmless text: `--k V`, `--k=V`, and for one letter `-kV`."""
    numbers: frozenset[str] = frozenset()
    """Options whose value is a number that may be left out."""
    paths: frozenset[str] = frozenset()
    """Options whose value is a path inside the repository."""
    choices: Mapping[str, frozenset[str]] = {}
    """Options that take one of these values."""
    operand: Operand = Operand.NONE
    operands_needed: bool = False
    rest: Rest = Rest.NONE
    needs: frozenset[str] = frozenset()
    """One of these must be given, or the tool would change files."""


def words(text: str) -> frozenset[str]:
    """Split at blanks."""
    return frozenset(text.split())


ALIASES: Mapping[str, str] = {
    "nodejs": "node",
    "gmake": "make",
    "gradlew": "gradle",
    "mvnw": "mvn",
    "perl5": "perl",
}

PYTHON_MODULES = words("pytest unittest")
"""The modules that `python -m` may name: each is then judged by its own grammar."""

SUBSTITUTES = words("bundle")
"""Programs whose verb `exec` starts another one: that one is judged in its place."""

WRAPPERS = words("""
    env sudo doas su runuser xargs parallel find fd nohup setsid timeout nice ionice chrt taskset time busybox toybox awk
    gawk mawk nawk sed ed vi vim emacs ssh scp rsync docker podman nerdctl kubectl chroot unshare nsenter strace ltrace gdb
    script expect watch tee eval exec command builtin source stdbuf flock systemd-run bwrap firejail npx pnpx bunx uvx pipx
    screen tmux at batch coproc trap setpriv capsh start-stop-daemon dbus-run-session socat nc ncat curl wget install cp mv
    ln rm dd tar ld.so ld-linux-x86-64.so.2
""")
"""Programs that only start others, write files or fetch them: never the proof itself, whatever the configuration says."""
