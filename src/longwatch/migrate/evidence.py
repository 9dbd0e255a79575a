"""Packing evidence into outcomes, at the edge of a step's program."""

import msgspec

from longwatch.kernel.line import Failed, Failure, Succeeded
from longwatch.migrate.steps import Evidence, Spent, Surveyed, Usage


def succeeded(evidence: Evidence | Surveyed) -> Succeeded:
    """Return the outcome of a step that ended as it should; what it found may still be a refusal."""
    return Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))


def failed(failure: Failure, usage: Usage) -> Failed:
    """Return the outcome of a step that could not do its work, with what it cost."""
    return Failed(failure, msgspec.Raw(msgspec.json.encode(Spent(usage=usage))))
