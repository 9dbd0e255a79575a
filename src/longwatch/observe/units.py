"""The systemd user unit of a watch: its text, its place, and what a person does with it (specification K39)."""

import os
import sys
from collections.abc import Iterator

from longwatch.kernel import service
from longwatch.kernel.watch import Watch

_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "SSH_AUTH_SOCK", "GNUPGHOME", "XDG_CONFIG_HOME")
"""What a service needs of the person's environment to run the same tools and sign the same way. No secrets."""


def describe(watch: Watch) -> str:
    """Return the unit's text, and below it, as comments, how to install it."""
    text = service.unit(watch.root, command(watch), environment(), watch.root.name)
    path = service.unit_folder(os.environ) / service.unit_name(watch.root)
    advice = (
        f"`longwatch service --write` puts this to {path}.",
        *_enabling(service.unit_name(watch.root)),
        *_lingering(),
    )
    return text + "\n" + "\n".join(f"# {line}" for line in advice)


def install(watch: Watch) -> str:
    """Write the unit where the user's systemd looks for it; nothing is enabled or started."""
    path = service.write_unit(
        watch.root, command(watch), environment=environment(), description=watch.root.name
    )
    return "\n".join((f"{path} is written.", *_enabling(path.name), *_lingering()))


def command(watch: Watch) -> tuple[str, ...]:
    """Return what the service runs: a pause does not end it, so that `resume` finds somebody."""
    return (
        *(sys.executable, "-I", "-m", "longwatch.cli.main", "run", "--stay"),
        *("--watch-dir", str(watch.root)),
    )


def environment() -> dict[str, str]:
    """Return the service's variables."""
    return {name: os.environ[name] for name in _PASSED if os.environ.get(name)}


def _enabling(name: str) -> Iterator[str]:
    yield f"Start it now and at each login: systemctl --user daemon-reload && systemctl --user enable --now {name}"
    yield f"What it printed: journalctl --user -u {name}"
    yield (
        "API keys that the worker needs are not in the unit, which others may read: "
        f"`systemctl --user edit {name}` and an EnvironmentFile= with mode 600."
    )


def _lingering() -> Iterator[str]:
    lingers = service.lingering()
    if lingers is None:
        yield "systemd is not in charge of this machine: the unit is for one where it is."
    elif not lingers:
        yield "It ends with your last session and does not start at boot before: loginctl enable-linger"
