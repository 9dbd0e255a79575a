"""Confinement by a container of docker or podman. The tools inside are the image's; the way to run it is a program of ours.

An engine starts a container somewhere else than below its client, and leaves it there when the client dies. So a small
program stands around the client (`container_program.py`), and the container carries the cookie of its program: by that the
kernel finds what is inside, and ends it like everything else.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.identity import COOKIE_VARIABLE
from longwatch.sandbox.choice import CLIENT_VARIABLES
from longwatch.sandbox.engine import LABEL, Engine, Image, client, image, look, tidy
from longwatch.sandbox.plan import HOME, Plan, check, environment, host_of

ROOTS_INSIDE = (1000, 1000)
"""Who root is inside, where the engine can map users."""
_PROGRAM = Path(__file__).parent / "container_program.py"
_NOTHING = Path(__file__).parent / "etc" / "nothing"
_MEMORY_FOLDERS = ("/tmp", "/var/tmp", HOME)  # noqa: S108 - the container's own
_PROCESSES = 4096
_MOVED = 65536
_KNOBS = ":".join(
    f"/proc/{name}" for name in ("asound", "driver", "dynamic_debug", "mtrr", "pressure", "tty")
)
_NOBODY = (65534, 65534)


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What `container_program.py` is told besides the engine's words."""

    program: str
    client: dict[str, str]
    """The environment of the engine's client."""
    kept: tuple[str, ...]
    """Variables that are not handed on: the client's, and those that the plan sets."""
    hand_on: bool
    filter: str
    cookie: str = COOKIE_VARIABLE
    label: str = LABEL


class Container:
    """The sandbox of one engine and one image. Measured with podman 4.3: 0.3 to 0.5 s a start."""

    confines = True
    contained = True

    def __init__(self, engine: str, image: str = "", user: tuple[int, int] | None = None) -> None:
        """`user` is the user and group id that files belong to on the host: the caller's own."""
        self.name = engine
        self.mend = f"`{engine} run` must work for this user, with limits of memory and processes"
        self._image = image
        self._user = user or (os.geteuid(), os.getegid())

    def wrap(self, argv: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return the command line. A plan that would show more than it says is refused.

        Raises:
            ConfigError: the plan asks for what a container cannot do, or there is no image.
            NotReadyError: the engine does not answer, or the image is not here.
        """
        check(plan)
        self._refuse(plan)
        engine, found = self._found()
        start = Start(
            program=engine.program,
            client=client(),
            kept=tuple(sorted({*CLIENT_VARIABLES, *plan.environment})),
            hand_on=plan.hand_on_environment,
            filter=engine.filter,
        )
        # By itself podman copies into a folder in memory what the place holds: what is hidden, too.
        more = ",notmpcopyup" if self.name == "podman" else ""
        words = (
            *self._confinement(plan),
            *_memory(plan, more),
            *_mounts(plan, more),
            *_environment(plan),
            found.id,
            *argv,
        )
        return (sys.executable, "-I", "-S", str(_PROGRAM), msgspec.json.encode(start).decode(), *words)

    def search_path(self) -> str:
        """Return where the image's programs are looked for."""
        return self._found()[1].path

    def foundation(self) -> tuple[str, ...]:
        """Return what the answers of this sandbox depend on, besides this machine and its user."""
        program = shutil.which(self.name) or ""
        modified_ns = Path(program).stat().st_mtime_ns if program else 0
        engine, found = self._found()
        return (program, str(modified_ns), engine.version, found.id)

    def toolchain(self) -> str:
        """Return the digest of the image: whatever ran inside ran with its tools."""
        return self._found()[1].id

    def tidy(self) -> None:
        """Take away the containers of programs that are gone."""
        tidy(look(self.name))

    def _found(self) -> tuple[Engine, Image]:
        if not self._image:
            raise ConfigError(
                f'sandbox.kind = "{self.name}" needs sandbox.image: the name of an image that is on this machine'
            )
        engine = look(self.name)
        return engine, image(engine, self._image)

    def _refuse(self, plan: Plan) -> None:
        if plan.nested:
            raise ConfigError(
                f"sandbox {self.name}: a worker with a sandbox of its own cannot run in a container; use bubblewrap"
            )
        if self.name == "docker" and self._user[0] == 0:
            raise ConfigError(
                "sandbox docker: run by root, what a container writes would belong to another user, or the command would "
                "be root. Run the watch as an ordinary user, or use podman or bubblewrap"
            )
        for path in (
            *(path for pair in (*plan.writable, *plan.readonly) for path in pair),
            *plan.expose,
            *plan.hidden,
        ):
            if set(str(path)) & set(',"\n'):
                raise ConfigError(
                    f"sandbox {self.name} cannot show {str(path)!r}: take comma, quote and newline out of it"
                )

    def _confinement(self, plan: Plan) -> Iterator[str]:
        yield from ("--interactive", "--init", "--pull", "never", "--entrypoint", "", "--no-healthcheck")
        yield from ("--log-driver", "none", "--hostname", "sandbox", "--workdir", str(plan.workdir))
        yield from ("--network", "host" if plan.network else "none")
        yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        # Else a system with SELinux would want a label on every file of the person's that is shown.
        yield from ("--security-opt", "label=disable")
        yield from ("--pids-limit", str(plan.processes or _PROCESSES), "--oom-score-adj", "1000")
        if plan.memory_bytes is not None:
            yield from ("--memory", str(plan.memory_bytes), "--memory-swap", str(plan.memory_bytes))
        yield from self._who(plan)

    def _who(self, plan: Plan) -> Iterator[str]:
        if self.name == "podman":
            yield "--read-only-tmpfs=false"
            # Where root is mapped, the host's knobs seem to be the command's own: those that an engine does not hide by itself.
            yield from ("--security-opt", f"mask={_KNOBS}")
            if self._user[0] != 0:
                yield from ("--userns", "keep-id")
            elif plan.writable:
                # Two places changed: root is nobody special inside, and what is written belongs to root outside.
                inside = ROOTS_INSIDE[0]
                for kind in ("--uidmap", "--gidmap"):
                    yield from (kind, f"0:1:{inside}", kind, f"{inside}:0:1")
                    yield from (kind, f"{inside + 1}:{inside + 1}:{_MOVED - inside - 1}")
        yield from ("--user", "{}:{}".format(*self._inside(plan)))

    def _inside(self, plan: Plan) -> tuple[int, int]:
        if self._user[0] != 0:
            return self._user
        # Who has nothing of root's to write need not be root outside either: then limits of processes hold.
        return ROOTS_INSIDE if plan.writable else _NOBODY


def _memory(plan: Plan, more: str) -> Iterator[str]:
    yield from ("--shm-size", str(plan.tmp_bytes))
    for folder in _MEMORY_FOLDERS:
        yield from ("--tmpfs", f"{folder}:rw,exec,nosuid,nodev,size={plan.tmp_bytes},mode=1777{more}")


def _mounts(plan: Plan, more: str) -> Iterator[str]:
    shown: dict[Path, tuple[str, ...]] = {}
    for host, inside in plan.writable:
        shown[inside] = _bind(host, inside)
    for folder in plan.expose:
        shown.setdefault(folder, _bind(folder, folder, "readonly"))
    for host, inside in plan.readonly:
        shown[inside] = _bind(host, inside, "readonly")
    for path in plan.hidden:
        shown[path] = _hide(plan, path, more)
    # What lies below another place is mounted after it; engines sort like this themselves.
    for _, words in sorted(shown.items(), key=lambda item: len(item[0].parts)):
        yield from words


def _bind(host: Path, inside: Path, *more: str) -> tuple[str, ...]:
    return ("--mount", ",".join(("type=bind", f"source={host}", f"target={inside}", *more)))


def _hide(plan: Plan, inside: Path, more: str) -> tuple[str, ...]:
    if (host_of(plan, inside) or inside).is_dir():
        return ("--tmpfs", f"{inside}:ro,size=4096,mode=0555{more}")
    return _bind(_NOTHING, inside, "readonly")


def _environment(plan: Plan) -> Iterator[str]:
    for name, value in environment(plan, home=HOME).items():
        yield from ("--env", f"{name}={value}")
