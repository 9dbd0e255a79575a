"""Holds the size rules of the house: short functions, files that are read in one sitting. Prints the figures.

A function's length is all its lines from `def` to its end, docstring and comments included; a function inside
another counts for itself as well.

    scripts/sizes.py [--root DIR]
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from generated import ROOT

FILE_LINES = 400
MEDIAN_LINES = 10
NINE_IN_TEN_LINES = 25


@dataclass(frozen=True)
class Function:
    """One function: where it stands and how many lines it has."""

    place: str
    lines: int


def functions(source: str, name: str) -> Iterator[Function]:
    """Measure every function of one file."""
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.end_lineno or node.lineno
            yield Function(f"{name}:{node.lineno} {node.name}", last - node.lineno + 1)


def ninth_decile(lines: list[int]) -> int:
    """Return the length that nine in ten functions do not pass."""
    return sorted(lines)[(len(lines) * 9 - 1) // 10]


def broken_rules(files: dict[str, int], found: list[Function]) -> Iterator[str]:
    """Yield a sentence for each rule that is broken."""
    for name, lines in files.items():
        if lines > FILE_LINES:
            yield f"{name} has {lines} lines, more than {FILE_LINES}: split it by what its parts are about"
    lengths = [function.lines for function in found]
    if median(lengths) >= MEDIAN_LINES:
        yield f"the median function has {median(lengths):g} lines; it must stay under {MEDIAN_LINES}"
    if ninth_decile(lengths) >= NINE_IN_TEN_LINES:
        longest = sorted(found, key=lambda function: -function.lines)[:10]
        names = "".join(f"\n    {function.lines:4} {function.place}" for function in longest)
        yield f"more than one function in ten has {NINE_IN_TEN_LINES} lines or more; the longest:{names}"


def main() -> int:
    """Measure `src` and say what is too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    root: Path = parser.parse_args().root
    sources = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((root / "src").rglob("*.py"))
    }
    files = {name: len(source.splitlines()) for name, source in sources.items()}
    found = [function for name, source in sources.items() for function in functions(source, name)]
    if not found:
        print(f"no function below {root / 'src'}: nothing to measure", file=sys.stderr)
        return 1
    lengths = [function.lines for function in found]
    print(
        f"{len(files)} files, the longest {max(files.values())} lines; {len(found)} functions, "
        f"median {median(lengths):g} lines, nine in ten up to {ninth_decile(lengths)}, the longest {max(lengths)}"
    )
    broken = list(broken_rules(files, found))
    print(*broken, sep="\n", end="\n" if broken else "", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
