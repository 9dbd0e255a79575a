"""The command line of each sandboxed process, by language and role."""

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.cell import InfraError
from longwatch.learn.grading.languages import Script
from longwatch.learn.grading.place import HERE, lacking, words
from longwatch.learn.tasks import Language
from longwatch.sandbox.choice import Sandboxing

ANSWER, PROGRAM = "answer", "program"
PYTHON = "/usr/bin/python3"
NODE = "/usr/bin/node"

_HERE = Path(__file__).parent
_PYTHON_PARTS: Mapping[str, tuple[str, ...]] = {
    ANSWER: ("plain.py", "pipes.py", "answer_python.py"),
    PROGRAM: ("plain.py", "pipes.py", "program_python.py"),
}
_JAVASCRIPT_PARTS: Mapping[str, tuple[str, ...]] = {
    ANSWER: ("plain.js", "answer.js"),
    PROGRAM: ("plain.js", "program.js"),
}
_OWN_IMPORT = "from longwatch."
_COMPILE = (
    "import marshal, sys; marshal.dump(compile(sys.stdin.read(), 'longwatch.py', 'exec'), sys.stdout.buffer)"
)
# On the command line the code would be converted four times: that is a tenth of a cell's start.
_BOOT = """
import marshal, posix
code = b""
while len(code) < {size}:
    code += posix.read(0, {size} - len(code)) or posix._exit(1)
exec(marshal.loads(code))
"""
# Our own process holds the pipes' other ends; whatever the answer prints goes nowhere.
_NODE_SHELL = (
    "exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null && "
    "ulimit -t {cpu_s} && ulimit -d {data_kib} && ulimit -f {file_blocks} && ulimit -p 64 && ulimit -c 0 && "
    'exec "$0" --max-old-space-size={heap_mib} -e "$1"'
)


class Launch(msgspec.Struct, frozen=True):
    """How a cell's process is started."""

    argv: tuple[str, ...]
    code: bytes = b""
    """Our own program, which the process reads before the first frame."""
    script: Script | None = None
    """What its sandbox has more than others."""


def launch(language: Language, role: str, bounds: Bounds, where: Sandboxing = HERE) -> Launch:
    """Return what a cell runs; a runtime that is missing or broken is an `InfraError`."""
    return (_python if language is Language.PYTHON else _javascript)(role, bounds, where)


def _python(role: str, bounds: Bounds, where: Sandboxing) -> Launch:
    code = _python_code(role, where)
    limits = (str(bounds.cpu_s), str(bounds.memory_bytes), str(bounds.tmp_bytes))
    return Launch((PYTHON, "-s", "-P", "-S", "-B", "-c", _BOOT.format(size=len(code)), *limits), code)


def _javascript(role: str, bounds: Bounds, where: Sandboxing) -> Launch:
    if lacking(where, (NODE,)):
        raise InfraError(f"{NODE} is missing: install Node.js from the distribution's packages")
    shell = _NODE_SHELL.format(
        cpu_s=bounds.cpu_s,
        data_kib=2 * bounds.memory_bytes // 1024,
        file_blocks=bounds.tmp_bytes // 512,
        heap_mib=bounds.memory_bytes // (1024 * 1024),
    )
    return Launch(("/bin/sh", "-c", shell, NODE, _text(_JAVASCRIPT_PARTS[role])))


@functools.cache
def _python_code(role: str, where: Sandboxing) -> bytes:
    """Compile the program once with the interpreter that will run it: that is a third of a cell's start."""
    text = _text(_PYTHON_PARTS[role]) + "\nmain()\n"
    try:
        done = subprocess.run(
            words(where, (PYTHON, "-I", "-S", "-B", "-c", _COMPILE)),
            input=text.encode(),
            capture_output=True,
            check=False,
        )
    except (OSError, ConfigError, NotReadyError) as error:
        raise InfraError(f"{PYTHON} cannot be started: {error}; install Python 3") from error
    if done.returncode != 0:
        why = done.stderr[-500:].decode("utf-8", "replace")
        raise InfraError(f"{PYTHON} cannot compile the grading program: {why}")
    return done.stdout


@functools.cache
def _text(parts: tuple[str, ...]) -> str:
    """Join the parts. Inside they are one file: what they import from each other is already there."""
    lines = (
        line
        for name in parts
        for line in (_HERE / name).read_text(encoding="utf-8").splitlines(keepends=True)
    )
    return "".join(line for line in lines if not line.startswith(_OWN_IMPORT))
