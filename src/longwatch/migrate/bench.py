"""The workbench: what worker and checks see of this machine, derived once from the settings (specification M15)."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from longwatch.kernel.child import ProcessRecord
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.limits import Limits
from longwatch.migrate.place import INSIDE, Place
from longwatch.migrate.repository.checkout import object_folders
from longwatch.migrate.repository.git import Git
from longwatch.sandbox import Plan, Sandbox, sandbox_of
from longwatch.sandbox.plan import HOME
from longwatch.sandbox.toolchain import Toolchain, find

Mounts = tuple[tuple[Path, Path], ...]


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox with the tools that this repository needs."""

    sandbox: Sandbox
    tools: Toolchain
    expose: tuple[Path, ...]
    share: tuple[tuple[Path, str], ...]
    """Ignored folders of the person's repository, and where they stand in a checkout."""
    objects: tuple[Path, ...]
    """Where the person's repository keeps its objects: git needs them in every checkout."""
    tmp_bytes: int

    def inside(self, checkout: Path) -> Path:
        """Return where a checkout stands for the command: elsewhere if the sandbox confines, where it lies if not."""
        return INSIDE if self.sandbox.confines else checkout

    def killed(self, record: ProcessRecord) -> bool:
        """Return whether the sandbox itself was killed, by nobody of ours: what runs inside cannot reach it."""
        return self.sandbox.confines and record.signal == signal.SIGKILL and record.limit is None

    def _basics(self) -> dict[str, str]:
        home = HOME if self.sandbox.confines else str(Path.home())
        return {"PATH": self.tools.path, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb"}

    def plan(
        self,
        checkout: Path,
        *,
        environment: Mapping[str, str],
        readonly: Mounts = (),
        writable: Mounts = (),
        network: bool = False,
        nested: bool = False,
        workdir: str = ".",
        limits: Limits | None = None,
    ) -> Plan:
        """Return the plan for one command in a checkout; of the limits, a container holds those of memory and processes."""
        inside = self.inside(checkout)
        shared = (
            *((folder, folder) for folder in self.objects),
            *((host, inside / relative) for host, relative in self.share),
        )
        for _, relative in self.share:
            _make_room(checkout, relative)
        return Plan(
            workdir=inside / workdir,
            writable=((checkout, inside), *writable),
            expose=self.expose,
            readonly=(*shared, *readonly),
            network=network,
            environment={**self._basics(), **self.tools.environment, **environment},
            hand_on_environment=True,
            tmp_bytes=self.tmp_bytes,
            memory_bytes=limits.memory_bytes if limits else None,
            processes=limits.processes if limits else None,
            nested=nested,
        )


def bench_of(place: Place, programs: Sequence[str]) -> Bench:
    """Return the workbench for these programs."""
    settings = place.settings.sandbox
    own = ((place.repository / name) if (place.repository / name).is_file() else name for name in programs)
    shared = tuple(place.repository / name for name in settings.share if (place.repository / name).exists())
    needed = (*own, *(folder / "bin" / "python" for folder in shared if (folder / "pyvenv.cfg").is_file()))
    sandbox = sandbox_of(place.settings.where)
    sandbox.tidy()
    names = tuple(str(name) for name in needed)
    tools = toolchain_of(sandbox) or find(names, os.environ.get("PATH", ""))
    source = () if place.source_root is None else (place.source_root.resolve(),)
    extra = (*(Path(folder).expanduser() for folder in settings.expose), *source)
    return Bench(
        sandbox=sandbox,
        tools=tools,
        # A virtual environment knows itself by the path it was made at, so what is shared stands there too.
        expose=tuple(dict.fromkeys((*tools.folders, *extra, *shared))),
        share=tuple((host, str(host.relative_to(place.repository))) for host in shared),
        objects=object_folders(Git.open(place.repository)),
        tmp_bytes=settings.tmp_bytes,
    )


def toolchain_of(sandbox: Sandbox) -> Toolchain | None:
    """Return the tools of a sandbox that brings its own; `None`: the host's are shown."""
    path = sandbox.search_path()
    return Toolchain(folders=(), path=path, environment={}) if path else None


def _make_room(checkout: Path, relative: str) -> None:
    """A mount needs a folder to stand on. A checkout that has something there already is in the way."""
    target = checkout / relative
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise ConfigError(
            f"sandbox.share: {relative} is a file or link in the checkout: share only ignored folders"
        )
    target.mkdir(parents=True, exist_ok=True)
