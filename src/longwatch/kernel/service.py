"""A systemd user unit for one watch: restarted after a failure, started at boot, left alone when a person must look.

Quoting follows systemd.syntax(7) and systemd.service(5). The `:` before the program switches off the replacement of
`$`, so that only `%`, quotes and backslashes have a meaning.
"""

import hashlib
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError, ExitCode

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL_NAMES = {"\n": "a newline", "\r": "a carriage return", "\0": "a NUL"}
_ALLOWED_CONTROL = frozenset("\t")
_LOOK_FIRST = (ExitCode.BLOCKED, ExitCode.NEEDS_RECONCILE, ExitCode.EXHAUSTED)

_TEMPLATE = """\
[Unit]
Description={description}
# Restarts are spaced by RestartSec; no count of them ends the service for good.
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={directory}
{environment}ExecStart={command}
Restart=on-failure
RestartSec=30
# Blocked, needs reconcile, budget exhausted: a restart mends none of these.
RestartPreventExitStatus={look_first}
# A spent budget is an end like any other; the other two stay visible as failed.
SuccessExitStatus={exhausted}
# The supervisor ends its own children within 15 s of SIGTERM. After a crash of its own they live on and are adopted.
KillMode=process
TimeoutStopSec=30
# The kernel may take a child for its memory; that must not end the supervisor.
OOMPolicy=continue
# The supervisor keeps its children in control groups below its own.
Delegate=yes

[Install]
WantedBy=default.target
"""


def unit(watch_dir: Path, argv: Sequence[str], environment: Mapping[str, str], description: str) -> str:
    """Return the text of the unit that runs `argv` in `watch_dir`. Pure.

    `argv[0]` and `watch_dir` are absolute. The values of `environment` can be read by anybody who may read the unit:
    no secrets.

    Raises:
        ConfigError: a value cannot stand in a unit file; the message names it.
    """
    return _TEMPLATE.format(
        description=f"Longwatch ({_specifiers(_clean('the description', description))})",
        directory=_directory(watch_dir),
        environment="".join(_assignment(name, value) for name, value in environment.items()),
        command=_command(argv),
        look_first=" ".join(str(int(code)) for code in _LOOK_FIRST),
        exhausted=int(ExitCode.EXHAUSTED),
    )


def unit_name(watch_dir: Path) -> str:
    """Return the unit's file name: stable for a watch, different for every folder, plain letters only. Pure."""
    slug = re.sub(r"[^a-z0-9]+", "-", watch_dir.name.lower()).strip("-")[:40] or "watch"
    digest = hashlib.sha256(os.fsencode(watch_dir)).hexdigest()[:10]
    return f"longwatch-{slug}-{digest}.service"


def write_unit(
    watch_dir: Path,
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    description: str,
    folder: Path | None = None,
) -> Path:
    """Write the unit where the user's systemd looks for it, and return its path.

    `folder` replaces that place. systemd reads the file at the next `systemctl --user daemon-reload`.
    """
    watch_dir = watch_dir.resolve()
    text = unit(watch_dir, argv, environment, description)
    path = files.make_folder(folder or unit_folder(os.environ)) / unit_name(watch_dir)
    files.replace(path, text.encode(), mode=0o644)
    return path


def unit_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's own units (systemd.unit(5))."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return base / "systemd/user"


def lingering(root: Path = Path("/")) -> bool | None:
    """True if this user's services run without a login, from boot on; `None` where systemd is not in charge.

    `loginctl enable-linger` switches it on. `root` is the machine's root folder.
    """
    if not (root / "run/systemd/system").is_dir():
        return None
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None
    return (root / "var/lib/systemd/linger" / name).exists()


def _command(argv: Sequence[str]) -> str:
    if not argv or not argv[0].startswith("/"):
        raise ConfigError(
            f"a service needs the absolute path of its program, not {argv[0] if argv else ''!r}: write it out"
        )
    words = [_word("the command", part) for part in argv]
    if re.search(r"[\"'\\\x00-\x1f]", argv[0]):
        # systemd takes no such program name, however quoted; a shell that only passes its arguments on does.
        words = ["/bin/sh", '"-c"', _word("the command", 'exec "$@"'), '"sh"', *words]
    return ":" + " ".join(words)


def _assignment(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name of an environment variable: letters, digits and underscores only"
        )
    return f"Environment={_word(f'the variable {name}', f'{name}={value}')}\n"


def _directory(path: Path) -> str:
    text = _clean("the watch's folder", str(path))
    if not path.is_absolute():
        raise ConfigError(f"a service needs the absolute path of its watch, not {text!r}: write it out")
    # This value stands unquoted. At its end a blank would be dropped, and a backslash would join the next line.
    ending = "/." if text[-1].isspace() or text[-1] == "\\" else ""
    return _specifiers(text) + ending


def _word(what: str, value: str) -> str:
    """Quote one word so that systemd reads exactly `value`."""
    escaped = _clean(what, value).replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{_specifiers(escaped)}"'


def _specifiers(value: str) -> str:
    return value.replace("%", "%%")


def _clean(what: str, value: str) -> str:
    """Return `value` if a unit file can hold it."""
    bad = next((found[0] for found in _CONTROL.finditer(value) if found[0] not in _ALLOWED_CONTROL), None)
    if bad is not None:
        name = _CONTROL_NAMES.get(bad, f"the control character {bad!r}")
        raise ConfigError(
            f"{what} has {name} in {value!r}: a unit file cannot hold it; rename it, or take it out"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{what} is not UTF-8: {value!r}; systemd reads no other encoding, so rename it"
        ) from error
    return value
