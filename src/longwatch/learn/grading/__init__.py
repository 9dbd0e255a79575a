"""Grading: the answer runs in one sandboxed process, its tests in another, and our own process decides (L10)."""

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
