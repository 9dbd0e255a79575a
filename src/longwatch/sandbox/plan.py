"""What a sandbox is asked for, as a value, and what every kind of sandbox must do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from longwatch.kernel.errors import ConfigError, PathError

GIB = 1024**3
HOME = "/home/worker"
"""The home inside: empty, in memory, gone afterwards."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one command may see and do. Pairs are (path on the host, path inside); a later field covers what
    an earlier one shows at the same place.

    What is mounted inside a writable folder must already exist there, or an empty one is left behind.
    """

    workdir: Path
    """Inside."""
    writable: tuple[tuple[Path, Path], ...] = ()
    expose: tuple[Path, ...] = ()
    """Folders of the host that are shown read-only at their own path."""
    readonly: tuple[tuple[Path, Path], ...] = ()
    """Also inside a writable folder: that is how a protected file stays as it is."""
    hidden: tuple[Path, ...] = ()
    """Paths inside that appear empty."""
    network: bool = False
    """With it the command also reaches whatever listens on the host's loopback."""
    environment: Mapping[str, str] = {}
    hand_on_environment: bool = False
    """Also hand on the environment of the command that is wrapped: the way for secrets, since what stands in `environment`
    stands in the process list."""
    tmp_bytes: int = GIB
    """Size of each folder in memory: /tmp, /var/tmp, /dev/shm and the home."""
    memory_bytes: int | None = None
    """The most memory, and the most processes, where the sandbox itself has to hold them: a container is in no control group
    of its supervisor's."""
    processes: int | None = None
    nested: bool = False
    """Allow user namespaces inside: for a worker that brings a sandbox of its own."""


class Sandbox(Protocol):
    """Turns a command into one that runs confined."""

    name: str
    confines: bool
    """False: nothing protects the host from the command."""
    mend: str
    """What to see to where its self-test fails."""
    contained: bool
    """The command line launches a container (`Command.contained`)."""

    def wrap(self, argv: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return the command line that runs `argv` as planned."""

    def foundation(self) -> tuple[str, ...]:
        """Return what the answers of its self-test depend on, besides the machine and its user."""

    def search_path(self) -> str:
        """Return where programs are looked for inside, if the sandbox brings its own; empty: the host's are shown."""

    def toolchain(self) -> str:
        """Return what binds the programs inside to what ran; empty if they are the host's."""

    def tidy(self) -> None:
        """Take away what programs that were ended could not."""


def environment(plan: Plan, *, home: str) -> dict[str, str]:
    """Return what the command's environment holds besides what is handed on: the plan's, on top of a few defaults."""
    defaults = {"HOME": home, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb"}
    return {**({} if plan.hand_on_environment else defaults), **plan.environment}


def check(plan: Plan) -> None:
    """Refuse a plan that shows more than it says: a missing path, the home, or a link that leads elsewhere."""
    for host, inside in (*plan.writable, *plan.readonly):
        _check_pair(host, inside)
        _check_links(plan, host)
        _check_links(plan, host_of(plan, inside))
    for path in plan.hidden:
        _check_links(plan, host_of(plan, path))
    for folder in plan.expose:
        _check_exposed(folder)


def host_of(plan: Plan, inside: Path) -> Path | None:
    """Where a path inside lies on the host, below a writable folder; `None` if it lies in none."""
    for host, mount in plan.writable:
        if inside.is_relative_to(mount):
            return host / inside.relative_to(mount)
    return None


def _check_pair(host: Path, inside: Path) -> None:
    if not host.is_absolute() or not inside.is_absolute() or ".." in inside.parts:
        raise ConfigError(f"sandbox: {host} -> {inside}: both paths must be absolute")
    if not host.exists():
        raise ConfigError(f"sandbox: {host} does not exist; create it before it is shown as {inside}")


def _check_links(plan: Plan, path: Path | None) -> None:
    """A link that a worker left in its folder would be followed by the mount, on the host, with our rights."""
    for root, _ in plan.writable:
        if path is None or path == root or not path.is_relative_to(root):
            continue
        if path.resolve() != root.resolve() / path.relative_to(root):
            raise PathError(
                f"sandbox: {path} leads through a symbolic link; remove the link before it is mounted"
            )


def _check_exposed(folder: Path) -> None:
    real, home = folder.resolve(), Path.home().resolve()
    if home.is_relative_to(real):
        raise ConfigError(f"sandbox: {folder} holds the home directory; expose the folder of the tools alone")
    if not real.exists():
        raise ConfigError(f"sandbox: {folder} does not exist; correct `expose`")
