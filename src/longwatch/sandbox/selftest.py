"""Proves by doing that a sandbox holds: each probe tries to break out of it (specification K38)."""

import os
import socket
import tempfile
from pathlib import Path

import msgspec

from longwatch.kernel.child import Command, Monitor, ProcessRecord
from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.kernel.identity import find_by_cookie, namespace_depth
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import new_cookie, run, tail
from longwatch.sandbox.plan import Plan, Sandbox

_WALL_S = 120.0
_TMP_BYTES = 1_048_576
_SECRET = "longwatch-self-test"  # noqa: S105 - not a secret: what the probe must not find


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the sandbox was asked to prevent, and whether it did."""

    name: str
    ok: bool
    detail: str
    """What was seen; if it is not ok, the mend."""


class _Trial(msgspec.Struct, frozen=True):
    name: str
    script: str
    """Exits with 0 if it could not do what it tried."""
    mend: str


_TRIALS = (
    _Trial("runs", "true", "nothing can be run in it"),
    _Trial("no root", '[ "$(id -u)" != 0 ]', "the command kept root's user id"),
    _Trial("no capabilities", "grep -q '^CapEff:.0*$' /proc/self/status", "the command kept capabilities"),
    _Trial(
        "no new privileges",
        "grep -q '^NoNewPrivs:.1$' /proc/self/status",
        "set-uid programs would work inside",
    ),
    _Trial("home hidden", '[ ! -e "$PROBE_HOME" ]', "the home directory can be seen; look at `expose`"),
    _Trial(
        "host read-only",
        'for f in / /usr /etc /opt /dev; do p="$f/.longwatch-probe-$$"; if touch "$p" 2>/dev/null; then rm "$p"; exit 1; fi; done',
        "the host's files can be changed",
    ),
    _Trial(
        "protected file read-only",
        "! { echo changed > protected; } 2>/dev/null && echo changed > free",
        "a protected file inside the writable folder can be changed",
    ),
    _Trial(
        "kernel settings read-only",
        'for f in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches; do [ ! -w "$f" ] || exit 1; done',
        "the command can change the host's kernel settings; do not run this watch as root",
    ),
    _Trial(
        "secrets of /etc hidden",
        "for f in /etc/shadow /etc/gshadow /etc/ssl/private /etc/ssh; do [ ! -e $f ] || exit 1; done",
        "files that only root may read can be seen",
    ),
    _Trial(
        "other processes hidden", '[ ! -e "/proc/$PROBE_PID/environ" ]', "the host's processes can be seen"
    ),
    _Trial("environment cleared", '[ -z "${PROBE_LEAK:-}" ]', "the supervisor's environment can be seen"),
    _Trial(
        "namespaces refused",
        "! unshare -U true 2>/dev/null",
        "new user namespaces can be made inside",
    ),
    _Trial(
        "memory folders bounded",
        'f=$(mktemp); head -c 4194304 /dev/zero 2>/dev/null > "$f"; code=$?; rm "$f"; [ $code != 0 ]',
        "the folders in memory have no bound",
    ),
    _Trial(
        "network unreachable",
        '! bash -c ": > /dev/tcp/127.0.0.1/$PROBE_PORT" 2>/dev/null',
        "the host's network can be reached though nobody allowed it",
    ),
)


def self_test(sandbox: Sandbox) -> tuple[Probe, ...]:
    """Try to break out in every known way, and leave nothing behind. Each way is a start: a second in all, or of containers ten."""
    with (
        tempfile.TemporaryDirectory(prefix="longwatch-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        place = _Place(sandbox, Path(folder).resolve(), server.getsockname()[1])
        first = place.probe(_TRIALS[0])
        if not first.ok:
            return (first,)
        found = (first, *map(place.probe, _TRIALS[1:]), place.escape(), place.reach())
    sandbox.tidy()
    return found


class _Place:
    """A throw-away folder in which the probes run."""

    def __init__(self, sandbox: Sandbox, folder: Path, port: int) -> None:
        self._sandbox = sandbox
        self._work = folder / "work"
        self._log = folder / "log"
        self._port = port
        self._work.mkdir()
        (self._work / "protected").touch()

    def probe(self, trial: _Trial) -> Probe:
        """Run one trial."""
        try:
            record = self._run(trial.script, new_cookie())
        except (ConfigError, NotReadyError) as error:
            return Probe(name=trial.name, ok=False, detail=f"{trial.mend} ({self._sandbox.mend}): {error}")
        mend = f"{trial.mend} ({self._sandbox.mend})"
        why = record.limit_detail or tail(self._log, 3)
        detail = "as it should be" if record.ok else f"{mend}: {why}"
        return Probe(name=trial.name, ok=record.ok, detail=detail)

    def escape(self) -> Probe:
        """Leave a process behind that left its session, and count what lives on."""
        cookie = new_cookie()
        record = self._run(
            "setsid sleep 600 >/dev/null 2>&1 & exec setsid sleep 601 >/dev/null 2>&1 &", cookie
        )
        left = len(find_by_cookie(cookie))
        detail = f"{left} processes lived on after their parent" if left else "what escaped was ended"
        return Probe(name="fork escape ended", ok=record.ok and left == 0, detail=detail)

    def reach(self) -> Probe:
        """End what runs inside from the host, as a limit or a pause does: an engine on another machine would hide it."""
        cookie = new_cookie()
        witness = _Witness(cookie)
        self._run("echo up; exec sleep 602", cookie, witness)
        left = len(find_by_cookie(cookie))
        detail = "what runs inside was found and ended"
        if left or not witness.seen:
            detail = (
                f"{left} processes lived on"
                if left
                else "the host cannot find what runs inside; the engine must run on it"
            )
        return Probe(name="reached from the host", ok=witness.seen and not left, detail=detail)

    def _run(self, script: str, cookie: str, monitor: Monitor | None = None) -> ProcessRecord:
        variables = {
            "PROBE_HOME": str(Path.home()),
            "PROBE_PID": str(os.getpid()),
            "PROBE_PORT": str(self._port),
        }
        plan = Plan(
            workdir=self._work,
            writable=((self._work, self._work),),
            readonly=((self._work / "protected",) * 2,),
            environment=variables,
            tmp_bytes=_TMP_BYTES,
        )
        command = Command(
            argv=self._sandbox.wrap(("/bin/sh", "-c", script), plan),
            cwd=self._work,
            environment={"PATH": os.defpath, "PROBE_LEAK": _SECRET},
            log=self._log,
            limits=Limits(wall_s=_WALL_S, grace_s=1.0),
            phase="self-test",
            contained=self._sandbox.contained,
        )
        return run(command, cookie=cookie, monitor=monitor)


class _Witness:
    """Waits for the first line, and then looks whether somebody of this cookie lives in a namespace of its own."""

    def __init__(self, cookie: str) -> None:
        self._cookie, self._up = cookie, False
        self.seen = False

    def line(self, line: bytes, elapsed_s: float) -> None:  # noqa: ARG002 - the protocol's signature
        """Look once."""
        if not self._up:
            here = namespace_depth(os.getpid())
            self.seen = any(namespace_depth(one.pid) > here for one in find_by_cookie(self._cookie))
        self._up = True

    def reason_to_end(self, elapsed_s: float) -> str | None:  # noqa: ARG002 - the protocol's signature
        """End it when it was looked at."""
        return "it was looked at" if self._up else None
