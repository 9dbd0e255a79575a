"""Answers that were written to be judged, and a plain restatement of how two evaluators of MultiPL-E judge them.

Each file of `constructed/` holds completions: a line `=== NUMBER VERDICT what it is`, then the text. A verdict is
`pass` or `fail`, or both where they differ: that of DeepSeek-Coder's evaluator, then that of MultiPL-E's authors.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
from curricula import PUBLIC

from longwatch.learn.sources import pinned
from longwatch.learn.tasks import Evaluator, Language

FOLDER = Path(__file__).parent / "constructed"
SHORT = {
    Language.CPP: "cpp",
    Language.CSHARP: "cs",
    Language.TYPESCRIPT: "ts",
    Language.PHP: "php",
    Language.BASH: "sh",
    Language.GO: "go",
    Language.RUST: "rs",
    Language.RUBY: "rb",
    Language.PERL: "pl",
    Language.LUA: "lua",
    Language.R: "r",
}
_HEADING = re.compile(r"^=== (\d+) (pass|fail|pass/fail|fail/pass) (.+)\n", re.MULTILINE)
_INCLUDES = (
    "stdlib.h",
    "algorithm",
    "math.h",
    "stdio.h",
    "vector",
    "string",
    "climits",
    "cstring",
    "iostream",
    "cassert",
)
_USINGS = (
    "Numerics",
    "Diagnostics",
    "Collections.Generic",
    "Linq",
    "Text",
    "Security.Cryptography",
    "Collections.Generic",
)
_SECONDS = 30


class Constructed(NamedTuple):
    what: str
    name: str
    """The task's."""
    program: str
    passes: bool


def constructed(language: Language, evaluator: Evaluator) -> list[Constructed]:
    """The answers in a language as whole programs, as the evaluator puts them together."""
    data = pinned.read(pinned.MULTIPL_E[language], PUBLIC)
    rows = {row["name"].split("_")[1]: row for row in map(msgspec.json.decode, data.splitlines())}
    parts = _HEADING.split((FOLDER / f"{SHORT[language]}.txt").read_text(encoding="utf-8"))[1:]
    found = []
    for number, verdict, what, completion in zip(*(parts[i::4] for i in range(4)), strict=True):
        row = rows[number]
        code = f"{row['prompt']}\n{completion}\n{row['tests']}"
        passes = verdict.split("/")[0 if evaluator is Evaluator.DEEPSEEK else -1] == "pass"
        found.append(Constructed(what, row["name"], _framed(code, language, evaluator), passes))
    return found


def _framed(code: str, language: Language, evaluator: Evaluator) -> str:
    if evaluator is Evaluator.DEEPSEEK:
        if language is Language.CPP:
            return "".join(f"#include<{one}>\n" for one in _INCLUDES) + f"\n{code}"
        if language is Language.CSHARP:
            return "".join(f"using System.{one};\n" for one in _USINGS) + f"\n{code}"
        if language is Language.PHP:
            return f"{code}?>"
    return code


def recording(language: Language, evaluator: Evaluator) -> bytes:
    """The same answers in the file that such an evaluator writes."""
    answers = constructed(language, evaluator)
    if evaluator is Evaluator.MULTIPL_E:
        rows = (
            {
                "name": one.name,
                "results": [{"program": one.program, "status": "OK" if one.passes else "Exception"}],
            }
            for one in answers
        )
        return b"\n".join(map(msgspec.json.encode, rows))
    details: dict[str, list[tuple[int, dict[str, object]]]] = {}
    for one in answers:
        detail = {"task_id": one.name, "completion_id": 0, "passed": one.passes, "code": one.program}
        details.setdefault(one.name, []).append((0, detail))
    return msgspec.json.encode(details)


def plainly_passes(program: str, language: Language, evaluator: Evaluator, folder: Path) -> bool:
    """What the evaluator says, in a few lines and without a sandbox: only for answers that we wrote ourselves."""
    judge = {
        Language.CPP: _cpp,
        Language.CSHARP: _csharp,
        Language.TYPESCRIPT: _typescript,
        Language.GO: _go,
        Language.RUST: _rust,
    }.get(language)
    path = folder / f"test{'_test' if language is Language.GO else ''}.{SHORT[language]}"
    path.write_text(program, encoding="utf-8")
    if judge is not None:
        return judge(path, evaluator)
    words = {Language.PHP: "php", Language.BASH: "bash", Language.RUBY: "ruby", Language.PERL: "perl"}
    words |= {Language.LUA: "lua5.4", Language.R: "Rscript"}
    return _ends_well(path, words[language], path.name)


def _run(path: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    known = {"PATH": "/usr/bin:/bin", "HOME": str(path.parent), **environment}
    return subprocess.run(
        words,
        cwd=path.parent,
        env=known,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _ends_well(path: Path, *words: str) -> bool:
    return _run(path, *words).returncode == 0


def _cpp(path: Path, _: Evaluator) -> bool:
    return _ends_well(path, "g++", "-std=c++17", path.name) and _ends_well(path, "./a.out")


def _rust(path: Path, _: Evaluator) -> bool:
    return _ends_well(path, "rustc", path.name, "-o", "a.out") and _ends_well(path, "./a.out")


def _go(path: Path, _: Evaluator) -> bool:
    return "FAIL" not in _run(path, "go", "test", path.name, GO111MODULE="off").stdout


def _typescript(path: Path, evaluator: Evaluator) -> bool:
    ways = [("--target", "esnext")]
    if evaluator is Evaluator.DEEPSEEK:
        ways = [("--target", "ES2015", "--lib", "ES2015,DOM"), ()]
    return any(
        _ends_well(path, "tsc", path.name, *way) and _ends_well(path, "node", "test.js") for way in ways
    )


def _csharp(path: Path, evaluator: Evaluator) -> bool:
    libraries = () if evaluator is Evaluator.DEEPSEEK else ("-r:System.Numerics.dll",)
    if not _ends_well(path, "mcs", "-d:DEBUG", *libraries, path.name):
        return False
    said = _run(path, "mono", "test.exe", MONO_TRACE_LISTENER="Console.Error").stderr
    if evaluator is Evaluator.DEEPSEEK:
        return "Fail" not in said
    return "DefaultTraceListener.Fail" not in said and "Unhandled Exception" not in said
