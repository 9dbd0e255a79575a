"""The command line of each sandboxed process, by language and role."""

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path

from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.cell import InfraError
from longwatch.learn.tasks import Language

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
    "import marshal, sys; print(marshal.dumps(compile(sys.stdin.read(), 'longwatch.py', 'exec')).hex())"
)
_BOOT = "import marshal, sys; exec(marshal.loads(bytes.fromhex(sys.argv.pop(1))))"
# Our own process holds the pipes' other ends; whatever the answer prints goes nowhere.
_NODE_SHELL = (
    "exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null && "
    "ulimit -t {cpu_s} && ulimit -d {data_kib} && ulimit -f {file_blocks} && ulimit -p 64 && ulimit -c 0 && "
    'exec "$0" --max-old-space-size={heap_mib} -e "$1"'
)


def command(language: Language, role: str, bounds: Bounds) -> tuple[str, ...]:
    """Return what a cell runs; a runtime that is missing or broken is an `InfraError`."""
    return (_python if language is Language.PYTHON else _javascript)(role, bounds)


def _python(role: str, bounds: Bounds) -> tuple[str, ...]:
    limits = (str(bounds.cpu_s), str(bounds.memory_bytes), str(bounds.tmp_bytes))
    return (PYTHON, "-s", "-P", "-S", "-B", "-c", _BOOT, _python_code(role), *limits)


def _javascript(role: str, bounds: Bounds) -> tuple[str, ...]:
    if not Path(NODE).exists():
        raise InfraError(f"{NODE} is missing: install Node.js from the distribution's packages")
    shell = _NODE_SHELL.format(
        cpu_s=bounds.cpu_s,
        data_kib=2 * bounds.memory_bytes // 1024,
        file_blocks=bounds.tmp_bytes // 512,
        heap_mib=bounds.memory_bytes // (1024 * 1024),
    )
    return ("/bin/sh", "-c", shell, NODE, _text(_JAVASCRIPT_PARTS[role]))


@functools.cache
def _python_code(role: str) -> str:
    """Compile the program once with the interpreter that will run it: that is a third of a cell's start."""
    text = _text(_PYTHON_PARTS[role]) + "\nmain()\n"
    try:
        done = subprocess.run(
            (PYTHON, "-I", "-S", "-B", "-c", _COMPILE),
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise InfraError(f"{PYTHON} cannot be started: {error}; install Python 3") from error
    if done.returncode != 0:
        raise InfraError(f"{PYTHON} cannot compile the grading program: {done.stderr[-500:]}")
    return done.stdout.strip()


@functools.cache
def _text(parts: tuple[str, ...]) -> str:
    """Join the parts. Inside they are one file: what they import from each other is already there."""
    lines = (
        line
        for name in parts
        for line in (_HERE / name).read_text(encoding="utf-8").splitlines(keepends=True)
    )
    return "".join(line for line in lines if not line.startswith(_OWN_IMPORT))
