"""How a file of answer and tests is built and run in a cell, and what its end means.

Both share a process, so what it says can be forged by who tries hard enough. What passes has exited with 0 *and* said the
nonce, which the tests do in their last line: whoever exits early, or prints what a passing test prints, fails.
"""

import re
from collections.abc import Iterable

from longwatch.learn.grading import place
from longwatch.learn.grading.bounds import MIB, Bounds
from longwatch.learn.grading.cell import InfraError
from longwatch.learn.grading.languages import NONCE, RUNTIMES, Script
from longwatch.learn.grading.place import HERE
from longwatch.learn.grading.runtimes import Launch
from longwatch.learn.tasks import Language
from longwatch.sandbox.choice import Sandboxing

BOUNDS = Bounds(cpu_s=10, wall_s=60.0, memory_bytes=2048 * MIB, tmp_bytes=256 * MIB, frame_bytes=MIB)
"""Those of one file: a compiler and a virtual machine need more of everything."""
NOT_BUILT = 96
_NOT_WRITTEN = 97
_BUILD_FACTOR = 3
_PROCESSES = 256
_WORDS_BYTES = 400
BIN = "/usr/bin"
"""Where a language's programs are: inside a cell there is no other place."""
# The launcher's own shell is the first process of the namespace: nothing inside can end it or its exit status.
_SHELL = """
head -c {size} >{file} || exit {not_written}
exec 3>&1 4>&2 </dev/null >words 2>&1
ulimit -c 0; ulimit -f {file_blocks}; ulimit -d {data_kib}; ulimit -p {processes}
( ulimit -t {build_s}; {build} ) 3>&- 4>&- || {{ tail -c {words} words >&4; exit {not_built}; }}
( ulimit -t {run_s}; {run}
) >&3 2>words 3>&- 4>&-
code=$?
tail -c {words} words >&4
exit $code
"""


def wanted(language: Language) -> tuple[str, ...]:
    """Return the paths of everything that a language needs."""
    runtime = RUNTIMES[language]
    return (*(f"{BIN}/{program}" for program in runtime.programs), *runtime.files)


def _everything() -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for language in RUNTIMES for path in wanted(language)))


def missing(language: Language, where: Sandboxing = HERE) -> tuple[str, ...]:
    """Return what a language needs and this machine, or the image, does not have."""
    # Asked about all languages at once: to look into an image, a container is started.
    lacking = place.lacking(where, _everything())
    return tuple(path for path in wanted(language) if path in lacking)


def advice(language: Language, lacking: Iterable[str], where: Sandboxing = HERE) -> str:
    """Return what a person has to know who lacks these. Pure."""
    packages = " ".join(RUNTIMES[language].packages)
    spot = f"in {where.image}" if place.contained(where) else "here"
    return f"{', '.join(lacking)} not {spot}: apt-get install {packages}"


def launch(  # noqa: PLR0917 - each is one thing that a program depends on
    language: Language, script: Script, size: int, nonce: str, bounds: Bounds, where: Sandboxing = HERE
) -> Launch:
    """Return what a cell runs for a program of so many bytes, which it reads first.

    Raises:
        InfraError: something of the language is not on this machine, or in the image.
    """
    lacking = missing(language, where)
    if lacking:
        raise InfraError(advice(language, lacking, where))
    shell = _SHELL.format(
        size=size,
        file=script.file,
        not_written=_NOT_WRITTEN,
        not_built=NOT_BUILT,
        file_blocks=bounds.tmp_bytes // 512,
        data_kib=bounds.memory_bytes // 1024,
        processes=_PROCESSES,
        build=script.build or ":",
        build_s=_BUILD_FACTOR * bounds.cpu_s,
        run=script.run.replace(NONCE, nonce),
        run_s=bounds.cpu_s,
        words=_WORDS_BYTES,
    )
    return Launch(("/bin/sh", "-c", shell), script=script)


def failure(code: int, output: bytes, words: str, nonce: str) -> str:
    """Return why a program that ended does not pass; empty: it passes. Pure."""
    told_last = re.sub(r"\s+", " ", words).strip()
    if code == NOT_BUILT:
        return f"it is not built: {told_last}"
    if code:
        return f"it ended with status {code}: {told_last}"
    if nonce.encode() not in output:
        return "it ended before its tests had passed"
    return ""
