"""Packing evidence into outcomes, at the edge of a step's program."""

import msgspec

from longwatch.kernel.line import Succeeded
from longwatch.learn.steps import Evidence


def succeeded(evidence: Evidence) -> Succeeded:
    """Return the outcome of a step that ended as it should."""
    return Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))
