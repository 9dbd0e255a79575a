"""Sandboxes: what a worker and the checks may see of this machine. Each turns a command line into a confined one."""

import functools
from collections.abc import Callable, Mapping

from longwatch.sandbox.bubblewrap import Bubblewrap
from longwatch.sandbox.choice import ENGINES, Sandboxing
from longwatch.sandbox.none import NoSandbox
from longwatch.sandbox.plan import Plan, Sandbox

__all__ = ["ENGINES", "SANDBOXES", "Plan", "Sandbox", "sandbox_of"]


def _container(engine: str, image: str = "") -> Sandbox:
    from longwatch.sandbox.container import Container  # noqa: PLC0415 - most watches never load it

    return Container(engine, image)


SANDBOXES: Mapping[str, Callable[..., Sandbox]] = {
    "bubblewrap": Bubblewrap,
    **{name: functools.partial(_container, name) for name in ENGINES},
    "none": NoSandbox,
}
"""By the name that `[sandbox] kind` gives. Those of `ENGINES` take the image."""


def sandbox_of(chosen: Sandboxing) -> Sandbox:
    """Return the sandbox that was chosen; the image counts where the kind has one."""
    make = SANDBOXES[chosen.kind]
    return make(chosen.image) if chosen.kind in ENGINES else make()
