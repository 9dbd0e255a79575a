"""Confinement by bubblewrap: namespaces, no privileges, a root that holds only what is named. Needs no daemon."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from longwatch.sandbox.plan import HOME, Plan, check, environment, host_of

USER_ID = "1000"
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ALWAYS_SHOWN = tuple(Path("/", name) for name in ("usr", "opt", *_SYSTEM))
"""Folders of the host that every command sees, read-only."""

_OWN_ETC = Path(__file__).parent / "etc"

# Everything else in /etc stays out: as root's own user id the command could read files that only root may read.
_ETC = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "hosts",
    "inputrc",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "maven/m2.conf",
    "maven/logging",
    "mime.types",
    "networks",
    "nsswitch.conf",
    "os-release",
    "perl",
    "php",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "python3*",
    "resolv.conf",
    "rpc",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)


_KNOBS = (
    "sys",
    "acpi",
    "asound",
    "driver",
    "dynamic_debug",
    "fs",
    "mtrr",
    "pressure",
    "scsi",
    "sysrq-trigger",
    "tty",
)


class Bubblewrap:
    """The sandbox of choice. Measured with bubblewrap 0.8: 6 ms a start."""

    name = "bubblewrap"
    confines = True
    contained = False
    mend = "install bubblewrap 0.8 or newer and allow user namespaces (sysctl user.max_user_namespaces)"

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program

    def wrap(self, argv: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return the command line. A plan that would show more than it says is refused."""
        check(plan)
        return (
            self._program,
            *_isolation(plan),
            *_system(),
            *_etc(),
            *_memory(plan),
            *_planned(plan),
            *_environment(plan),
            # Last: from here on not even an empty folder can be made outside the writable places.
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(plan.workdir), "--"),
            *argv,
        )

    def foundation(self) -> tuple[str, ...]:
        """Return the program and when it was changed."""
        program = shutil.which(self._program) or ""
        return (program, str(Path(program).stat().st_mtime_ns if program else 0))

    def tidy(self) -> None:
        """Nothing is ever left."""

    def search_path(self) -> str:
        """The host's programs are shown."""
        return ""

    def toolchain(self) -> str:
        """The host's tools are what runs inside."""
        return ""


def _isolation(plan: Plan) -> tuple[str, ...]:
    return (
        *("--unshare-all", "--unshare-user", "--uid", USER_ID, "--gid", USER_ID, "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--hostname", "sandbox"),
        *(() if plan.nested else ("--disable-userns",)),
        *(("--share-net",) if plan.network else ()),
    )


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/opt", "/opt", "--dir", "/run")
    for name in _SYSTEM:
        folder = Path("/", name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))


def _etc() -> Iterator[str]:
    yield from ("--perms", "0755", "--dir", "/etc")
    for pattern in _ETC:
        for path in sorted(Path("/etc").glob(pattern)):
            # What a link such as resolv.conf leads to may lie outside everything that is shown.
            yield from ("--ro-bind-try", str(path.resolve()), str(path))
    for name in ("passwd", "group"):
        yield from ("--ro-bind", str(_OWN_ETC / name), f"/etc/{name}")


def _memory(plan: Plan) -> Iterator[str]:
    yield from ("--proc", "/proc")
    # Run by root, the command keeps root's user id for the kernel and could set the host's own knobs, such as the
    # program that takes core dumps: bubblewrap 0.8 leaves them writable then.
    for name in _KNOBS:
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    yield from ("--dev", "/dev")
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108 - the sandbox's own, made here
        yield from ("--perms", "1777", "--size", str(plan.tmp_bytes), "--tmpfs", folder)
    yield from ("--perms", "0700", "--size", str(plan.tmp_bytes), "--tmpfs", HOME)


def _planned(plan: Plan) -> Iterator[str]:
    around = [
        folder for folder in plan.expose if any(inside.is_relative_to(folder) for _, inside in plan.writable)
    ]
    # A later mount covers what lies below it: what surrounds a writable folder comes first.
    for folder in around:
        yield from ("--ro-bind", str(folder), str(folder))
    for host, inside in plan.writable:
        yield from ("--bind", str(host), str(inside))
    for folder in plan.expose:
        if folder not in around:
            yield from ("--ro-bind", str(folder), str(folder))
    for host, inside in plan.readonly:
        yield from ("--ro-bind", str(host), str(inside))
    for path in plan.hidden:
        yield from _hide(plan, path)


def _hide(plan: Plan, inside: Path) -> tuple[str, ...]:
    host = host_of(plan, inside) or inside
    if host.is_dir():
        return ("--tmpfs", str(inside), "--remount-ro", str(inside))
    return ("--ro-bind", "/dev/null", str(inside))


def _environment(plan: Plan) -> Iterator[str]:
    if not plan.hand_on_environment:
        yield "--clearenv"
    for name, value in environment(plan, home=HOME).items():
        yield from ("--setenv", name, value)
