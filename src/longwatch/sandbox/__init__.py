"""Sandboxes: what a worker and the checks may see of this machine. Each turns a command line into a confined one."""

from collections.abc import Callable, Mapping

from longwatch.sandbox.bubblewrap import Bubblewrap
from longwatch.sandbox.none import NoSandbox
from longwatch.sandbox.plan import Plan, Sandbox

__all__ = ["SANDBOXES", "Plan", "Sandbox"]

SANDBOXES: Mapping[str, Callable[[], Sandbox]] = {"bubblewrap": Bubblewrap, "none": NoSandbox}
"""By the name that `[sandbox] kind` gives."""
