"""Where a teacher's answer came from: it stands beside each example that a teacher wrote. Values only."""

from enum import StrEnum

import msgspec

from longwatch.learn.tasks import Task


class Teacher(StrEnum):
    """Who helps when the student's own answers do not pass."""

    NONE = "none"
    REFERENCE = "reference"
    """The task's own reference solution."""
    MODEL = "model"
    """A larger model on this machine."""
    ENDPOINT = "endpoint"
    """A model behind an OpenAI-compatible address."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote an answer, when, and what it cost."""

    teacher: Teacher
    model: str = ""
    origin: str = ""
    """Scheme, host and port of the endpoint."""
    request: str = ""
    """What the endpoint calls the request."""
    seed: int | None = None
    """Of the sample; `None`: none was given."""
    asked_tokens: int | None = None
    answered_tokens: int | None = None
    """`None`: the endpoint did not say; then the reservation was counted."""
    usd: float = 0.0
    at: str = ""
    """When it was answered, in UTC; empty for a reference, which came with its task."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """A teacher's answer that passed the tests of its task."""

    task: str
    code: str
    provenance: Provenance


def references(tasks: tuple[Task, ...]) -> tuple[Solution, ...]:
    """Return the reference solutions, which were proved when the window was prepared (L2). Pure."""
    written = Provenance(teacher=Teacher.REFERENCE)
    return tuple(
        Solution(task=task.id, code=task.reference, provenance=written) for task in tasks if task.reference
    )
