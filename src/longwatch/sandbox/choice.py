"""Which sandbox a file of settings chooses, and whether the choice makes sense. Pure."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from longwatch.kernel import config
from longwatch.kernel.config import Problem, at

ENGINES = ("docker", "podman")
"""The kinds that run containers, and so need an image."""
CONFINING = ("bubblewrap", *ENGINES)
KINDS = (*CONFINING, "none")
_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,500}", re.ASCII)


CLIENT_VARIABLES = (
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "HOME",
    "PATH",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
)
"""What the client of an engine reads. None of it is handed on to a container unless the plan names it."""


class Sandboxing(msgspec.Struct, frozen=True):
    """The sandbox that was chosen."""

    kind: str = "bubblewrap"
    image: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables that programs need which use it."""
        return CLIENT_VARIABLES if self.kind in ENGINES else ()


def problems(kind: str, image: str, *, kinds: Iterable[str] = KINDS) -> Iterator[Problem]:
    """Yield what is wrong with `[sandbox] kind` and `image`."""
    if kind not in (known := tuple(kinds)):
        yield Problem(at("sandbox.kind", kind), f"is no sandbox{config.nearest(kind, known)}")
    elif kind in ENGINES and not image:
        mend = f"must name an image that is on this machine, best by its digest: {kind} brings no programs of its own"
        yield Problem(at("sandbox.image", image), mend)
    elif kind not in ENGINES and image:
        yield Problem(
            at("sandbox.image", image), f'has a meaning only with kind = "{ENGINES[0]}" or "{ENGINES[1]}"'
        )
    elif image and not _IMAGE.fullmatch(image):
        yield Problem(
            at("sandbox.image", image), "is no name of an image: name, name:tag or name@sha256:digest"
        )


def pinned(image: str) -> bool:
    """True if the name of an image says its content too."""
    return "@sha256:" in image or image.startswith("sha256:")
