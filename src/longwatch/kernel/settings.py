"""The part of `longwatch.toml` that every kind of watch shares. Names are the keys of the file; units stand in them."""

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[backoff]`: how long the watch waits after failures (specification K27)."""

    first_s: float = 30.0
    """The first wait; each further failure in a row doubles it."""
    max_s: float = 900.0
    """The longest wait."""
    max_faults: int = 6
    """So many faults in a row block the watch; other failures between them are not counted, and a success ends the row."""
    max_transients: int = 0
    """So many transient failures in a row block the watch, counted likewise; 0: never, it waits for ever."""
    park_for_quota: bool = False
    """Wait for a usage limit's reset; otherwise one ends the run with exit code 4, and the next `run` goes on."""
    max_park_s: float = 86_400.0
    """All waits for usage limits together, in the whole life of the watch; nothing but a larger number allows more."""


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[host]`: what the machine keeps for itself, and other programs to keep out of the way of."""

    free_disk_bytes: int = 1024**3
    """Below this no new work starts (specification K8)."""
    logs_bytes: int = 4 * 1024**3
    """All logs together; the oldest go first."""
    cores: int = 0
    """How many steps may run side by side at most; 0: as many as the application begins."""
    markers: tuple[str, ...] = ()
    """Marker files of other tools; one that names a live process makes `run` refuse (specification K4)."""
    publish_marker: str = ""
    """A marker file that this watch writes while it runs."""


class Observe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[observe]`: what others may read."""

    zone: str = "UTC"
    """Time zone of everything that is shown; what is stored is UTC."""
    status_file: str = ""
    """The status as JSON, replaced atomically at each change, for other programs."""
    heartbeat_s: float = 5.0
    """How often a running step's sign of life is stored."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables whose values never reach a log, an event, a receipt or a page."""
    notify: tuple[str, ...] = ()
    """A command of yours, one word each, that gets one JSON object on standard input for each thing in `notify_on`."""
    notify_on: tuple[str, ...] = ("blocked", "needs_reconcile", "exhausted", "complete", "accepted")
    """What it is told: that somebody has to look, that a budget is used up, that all is done, that a job or adapter was accepted."""


class KernelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The shared tables of `longwatch.toml`, parsed."""

    kind: str
    """The kind of watch: `migrate`."""
    backoff: Backoff = Backoff()
    host: Host = Host()
    observe: Observe = Observe()
