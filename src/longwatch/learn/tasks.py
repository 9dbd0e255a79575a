"""What a task is, as a value: a programming problem with its tests (specification, *Words*)."""

from enum import StrEnum
from typing import Any

import msgspec

Json = Any
"""Null, booleans, numbers, strings, and lists and objects of these. (msgspec knows no recursive alias.)"""


class Language(StrEnum):
    """The programming languages that can be graded."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"
    JAVA = "java"
    CPP = "cpp"
    GO = "go"
    RUST = "rust"
    RUBY = "ruby"
    PHP = "php"
    PERL = "perl"
    LUA = "lua"
    BASH = "bash"
    R = "r"
    CSHARP = "csharp"


class Split(StrEnum):
    """Which side a problem is on. All languages of a problem are on one side (L4)."""

    TRAIN = "train"
    DEV = "dev"
    CONFIRM = "confirm"
    """Set aside before training, used once (L7, L17)."""
    SEALED = "sealed"
    """Only for the anchor: nobody trains on it and nothing is chosen by it (L21)."""
    AUDIT = "audit"
    """A public benchmark: it reports and never decides (L25)."""


class Case(msgspec.Struct, frozen=True, array_like=True):
    """One call and what it must return, as plain data. The expected value never enters the answer's process."""

    arguments: tuple[Json, ...]
    expected: Json


class Cases(msgspec.Struct, frozen=True, kw_only=True, tag="cases"):
    """Tests as data: our own process compares."""

    cases: tuple[Case, ...]
    tolerance: float = 0.0
    """Absolute and relative, for floats."""


class Program(msgspec.Struct, frozen=True, kw_only=True, tag="program"):
    """Tests as code, run in a process of its own: it calls the answer through plain data only."""

    code: str
    """Defines `check(candidate)` (HumanEval), or holds bare assertions that call the entry point (MBPP)."""


class Evaluator(StrEnum):
    """Whose way of building and running a benchmark's programs is followed."""

    MULTIPL_E = "multipl-e"
    """That of MultiPL-E's authors."""
    DEEPSEEK = "deepseek"
    """That of DeepSeek-Coder's evaluation of the same benchmark, which Qwen's is made of: it judges some otherwise."""


class OneFile(msgspec.Struct, frozen=True, kw_only=True, tag="one-file"):
    """Tests that are one program with the answer, as in most languages of MultiPL-E: a determined answer can forge its
    verdict, and reports say so.
    """

    given: str
    """What stands before the answer; it ends with the open head of the function that is asked for."""
    code: str
    """What stands after it."""
    stops: tuple[str, ...] = ()
    """An answer that goes on where `given` ends is cut where the first of these begins."""
    literal: bool = False
    """The answer stands between the two as it is: it is a part of a program that somebody else put together."""
    evaluator: Evaluator = Evaluator.MULTIPL_E


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A programming problem in one language."""

    id: str
    """Unique in its registry, path-safe."""
    problem: str
    """All language versions share it: the unit of every statistic (L16)."""
    repository: str
    """Its source: a family template of the generated curriculum, or a public set."""
    family: str
    language: Language
    level: int = 1
    split: Split
    prompt: str
    """What the student is asked, in words, with the signature."""
    entry_point: str
    preamble: str = ""
    """Code that stands before the answer when it is graded: what a benchmark gives beside the function that it asks for."""
    tests: Cases | Program | OneFile
    reference: str = ""
    """A solution that passes; empty where the source has none."""


class Verdict(StrEnum):
    """What grading an answer can say (L10)."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    INFRA = "infra"
    """Our own trouble: never scored as a failure."""


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one answer."""

    task: str
    verdict: Verdict
    why: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
