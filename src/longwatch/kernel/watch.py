"""Where the parts of a watch lie. Paths only; nothing here reads or writes."""

from dataclasses import dataclass
from pathlib import Path

CONFIG = "longwatch.toml"
HIDDEN = ".longwatch"


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch's folder."""

    root: Path

    @property
    def config(self) -> Path:
        """Return what to do, within which limits: the person's file."""
        return self.root / CONFIG

    @property
    def hidden(self) -> Path:
        """Return the folder of everything that Longwatch keeps."""
        return self.root / HIDDEN

    @property
    def database(self) -> Path:
        """Return state, events, steps and requests."""
        return self.hidden / "watch.db"

    @property
    def lease(self) -> Path:
        """Return the file whose lock is the ownership."""
        return self.hidden / "lease"

    @property
    def bell(self) -> Path:
        """Return the FIFO that wakes a sleeping supervisor after a request."""
        return self.hidden / "bell"

    @property
    def steps(self) -> Path:
        """Return the folder with one folder per step: what it is, how it goes, what came of it, its log."""
        return self.hidden / "steps"

    @property
    def receipts(self) -> Path:
        """Return the folder of signed receipts, named by their digests."""
        return self.hidden / "receipts"

    @property
    def keys(self) -> Path:
        """Return the folder of the watch's signing key."""
        return self.hidden / "key"

    @property
    def daemon_log(self) -> Path:
        """Return where a daemon's own output goes."""
        return self.hidden / "supervisor.log"

    def step(self, step_id: str) -> Path:
        """Return one step's folder."""
        return self.steps / step_id
