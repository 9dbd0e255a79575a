"""What the sandbox costs an answer in each language, against the same build and run as plain subprocesses.

Both do the same with a program that is known to pass: write it into an empty folder, build it and run it, on as many
threads. Ours also confines it, and checks its nonce. A language that is not on this machine is left out.
"""

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _common import Figure, Result, show

from longwatch.learn.grading import grade, grade_all, joining, scripts
from longwatch.learn.grading.known import Known, known
from longwatch.learn.grading.languages import NONCE, RUNTIMES, SCRIPTS, Script
from longwatch.learn.tasks import Language, OneFile, Verdict

PROGRAMS = 8
ROUNDS = 2
SHARE, MORE_MS = 0.25, 15.0
"""What the sandbox may cost: of what is compiled a share, of a script so many milliseconds."""
WORKERS = 2 * len(os.sched_getaffinity(0))


def plain(program: str, script: Script, folder: Path) -> None:
    """Build and run a program as anybody would."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        (Path(place) / script.file).write_text(program)
        environment = dict(os.environ) | {
            name: value for name, value in script.environment.items() if "tmp" not in value
        }
        environment |= {
            name: f"{place}{value}" for name, value in script.environment.items() if "tmp" in value
        }
        # Another compiler of the person's own would be another measurement.
        environment["PATH"] = f"{scripts.BIN}:/bin"
        lines = f"( {script.build or ':'} ) && ( {script.run}\n)"
        subprocess.run(("sh", "-c", lines), cwd=place, env=environment, check=True, capture_output=True)


def program_of(right: Known, script: Script) -> str:
    """Return the file of an answer that passes."""
    assert isinstance(right.task.tests, OneFile)
    tests = joining.witnessed(right.task.tests, script, NONCE)
    return joining.join(right.answer, tests, right.task.entry_point, script)


def seconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def side_by_side(language: Language, folder: Path) -> Figure:
    """Measure one language: both in turn, and the better round of each, because only the machine makes one worse."""
    script, right = SCRIPTS[language], known(language)[0]
    program = program_of(right, script)
    assert grade(right.answer, right.task).verdict is Verdict.PASS, shlex.quote(program)

    def ours() -> None:
        list(grade_all([(right.answer, right.task)] * PROGRAMS, workers=WORKERS))

    def theirs() -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda _: plain(program, script, folder), range(PROGRAMS)))

    taken = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    mine, other = (min(times) / PROGRAMS for times in zip(*taken, strict=True))
    more_ms = 1000 * (mine - other) * len(os.sched_getaffinity(0))
    compiled = bool(script.build) or language is Language.GO  # which builds while it tests
    return Figure(
        what=f"{RUNTIMES[language].name}, {more_ms:+.0f} ms of a core a program",
        ours=1 / mine,
        unit="programs/s",
        peer="plain subprocess",
        theirs=1 / other,
        goal=f"{100 * SHARE:.0f} % longer at most" if compiled else f"{MORE_MS:.0f} ms more at most",
        met=mine <= (1 + SHARE) * other if compiled else more_ms <= MORE_MS,
    )


def measure(folder: Path) -> Result:
    """Measure every language that is here."""
    here = [language for language in SCRIPTS if not scripts.missing(language)]
    absent = [RUNTIMES[language].name for language in SCRIPTS if language not in here]
    remarks = [f"not on this machine: {', '.join(absent)}"] if absent else []
    return Result([side_by_side(language, folder) for language in here], remarks)


if __name__ == "__main__":
    show("A program of answer and tests, built and run", measure)
