"""Data that its licence forbids as training data is recognised by its content, whatever its file is called (L1)."""

import re

from longwatch.kernel.errors import RefusedError

_FIELDS = (b'"doctests"', b'"stop_tokens"', b'"prompt_terminology"')
_ORIGIN = re.compile(rb"nuprl/MultiPL-E|MultiPL-E/datasets|originals-with-cleaned-doctests")
_NAME = re.compile(rb'"(?:name|id|task_id|problem)"\s*:\s*"(?:HumanEval|mbpp)_\d+_\w+')
_HARNESS = re.compile(
    rb"node:assert.{0,40}function test\(\) \{(?:\\n|\s)+let candidate = "
    rb"|def test_check\(\):(?:\\n|\s)+check\(",
    re.DOTALL,
)


def check(line: bytes, place: str) -> None:
    """Return if a record may be used for training.

    Raises:
        RefusedError: it is one of MultiPL-E: by its fields, its origin, its name or the frame of its tests.
    """
    if sum(field in line for field in _FIELDS) > 1 or any(
        mark.search(line) for mark in (_ORIGIN, _NAME, _HARNESS)
    ):
        raise RefusedError(
            f"{place} is a record of MultiPL-E, whose licence forbids use as training data: "
            "it may be an audit, never a curriculum; choose another source"
        )
