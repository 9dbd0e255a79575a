"""Starts programs: in their own session, in their control group, with limits and without our descriptors."""

import contextlib
import os
import resource
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from longwatch.kernel import cgroup, tree
from longwatch.kernel.child import Command, Identity
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.identity import COOKIE_VARIABLE, identify, read_stat, snapshot

_OUT_OF_MEMORY_FIRST = 1000
_OUT_OF_MEMORY_EARLY = 500


def new_cookie() -> str:
    """Return an owner mark for one child. Inside a child of ours it begins with that child's own mark.

    So the mark of a step finds everything that the step started, however deep.
    """
    own = os.environ.get(COOKIE_VARIABLE)
    return f"{own}.{secrets.token_hex(8)}" if own else secrets.token_hex(16)


def spawn(command: Command, cookie: str, group: cgroup.Group | None) -> "subprocess.Popen[bytes]":
    """Start a supervised child with pipes for its input and output. A missing program or folder is a `ConfigError`."""
    limits = command.limits
    processes = None if limits.processes is None or group is not None else limits.processes + _own_tasks()
    return _start(
        command.argv,
        cwd=command.cwd,
        environment={**command.environment, COOKIE_VARIABLE: cookie},
        stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
        output=subprocess.PIPE,
        errors=subprocess.PIPE,
        prepare=lambda: _prepare(group, _OUT_OF_MEMORY_FIRST, processes, limits.file_bytes),
    )


def _own_tasks() -> int:
    """Count the threads of this user: RLIMIT_NPROC counts them all, not only the child's."""
    user = os.getuid()
    return sum(_tasks(stat.pid, user) for stat in snapshot())


def _tasks(pid: int, user: int) -> int:
    try:
        folder = Path(f"/proc/{pid}")
        return len(os.listdir(folder / "task")) if folder.stat().st_uid == user else 0  # noqa: PTH208 - only counted
    except OSError:  # it ended, or is hidden
        return 0


def _prepare(
    group: cgroup.Group | None, adjustment: int, processes: int | None, file_bytes: int | None
) -> None:
    """Between fork and exec, in the child: enter the group, set limits, forget our signal handling."""
    if group is not None:
        cgroup.join(group)
    Path("/proc/self/oom_score_adj").write_text(str(adjustment), encoding="ascii")
    _lower(resource.RLIMIT_CORE, 0)
    if processes is not None:
        _lower(resource.RLIMIT_NPROC, processes)
    if file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, file_bytes)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def _start(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: int,
    output: int | IO[bytes],
    errors: int,
    prepare: Callable[[], None],
) -> "subprocess.Popen[bytes]":
    if not argv:
        raise ConfigError("there is no program to run: the command line is empty")
    if not cwd.is_dir():
        raise ConfigError(f"{argv[0]} cannot be started: its working directory {cwd} does not exist")
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(environment),
            stdin=stdin,
            stdout=output,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - the one place between fork and exec; callers have one thread
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{argv[0]} cannot be started in {cwd}: {error}; install it or correct its path"
        ) from error
    # Its end is taken by pidfd and wait4; without a code Popen would wait for it behind our back.
    child.returncode = 0
    return child


def spawn_detached(
    argv: tuple[str, ...], *, cwd: Path, environment: Mapping[str, str], log: Path, cookie: str
) -> Identity:
    """Start a program of ours that outlives us: own session, no input, output straight into its log.

    Wait for its end with `identity.open_pidfd`, take its code with `exit_code`, then call `end_tree`, which also removes
    its control group.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(log, flags, 0o600), "ab", buffering=0) as output, _group(cookie) as group:
        child = _start(
            argv,
            cwd=cwd,
            environment={**environment, COOKIE_VARIABLE: cookie},
            stdin=subprocess.DEVNULL,
            output=output,
            errors=subprocess.STDOUT,
            prepare=lambda: _prepare(group, _OUT_OF_MEMORY_EARLY, None, None),
        )
    return identify(child.pid, cookie)


@contextlib.contextmanager
def _group(cookie: str) -> Iterator[cgroup.Group | None]:
    """Make a group without limits, that only a failed start removes."""
    group = cgroup.create(cookie, memory_bytes=None, processes=None)
    try:
        yield group
    except ConfigError:
        if group is not None:
            tree.remove_group(group)
        raise


def exit_code(identity: Identity) -> int | None:
    """Take the exit code of a child of ours that ended (negative: the signal); `None` if it is not ours or still runs."""
    stat = read_stat(identity.pid)
    if stat is None or stat.start_ticks != identity.start_ticks or stat.ppid != os.getpid():
        return None
    pid, status = os.waitpid(identity.pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None
