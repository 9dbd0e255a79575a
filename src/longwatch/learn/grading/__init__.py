"""Grading: the answer runs in one sandboxed process, its tests in another, and our own process decides (L10).

Where a benchmark's tests are one program with the answer, that is built and run in one sandboxed process (`scripts`,
`joining`; the reasons are in docs/adr/0008).
"""

from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.extraction import extract
from longwatch.learn.grading.grader import grade, grade_all
from longwatch.learn.grading.identity import identity
from longwatch.learn.grading.screening import Finding, Proof, Screened, proved, screen

__all__ = [
    "Bounds",
    "Finding",
    "Proof",
    "Screened",
    "extract",
    "grade",
    "grade_all",
    "identity",
    "proved",
    "screen",
]
