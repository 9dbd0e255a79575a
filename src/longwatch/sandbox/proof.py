"""The self-test before work begins, once per boot: what it depends on is remembered, so that a restart is quick."""

import os
from pathlib import Path

import msgspec

from longwatch import __version__
from longwatch.kernel import files
from longwatch.kernel.clock import boot_id
from longwatch.kernel.errors import NotReadyError, PathError
from longwatch.sandbox.plan import Sandbox
from longwatch.sandbox.selftest import self_test

_BYTES = 64 * 1024


class _Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer depends on: another boot, user, version, program or image asks again."""

    boot: str
    user: int
    version: str
    foundation: tuple[str, ...]


def prove(sandbox: Sandbox, remembered: Path) -> None:
    """Return if the sandbox holds on this machine; the answer is remembered at `remembered` until the next boot.

    Raises:
        NotReadyError: it does not; the message names every way out that was found.
    """
    if not sandbox.confines:
        return
    sandbox.tidy()
    ground = _ground(sandbox)
    if _remembered(remembered) == ground:
        return
    failed = [probe for probe in self_test(sandbox) if not probe.ok]
    if failed:
        told = "; ".join(f"{probe.name}: {probe.detail}" for probe in failed)
        raise NotReadyError(
            f"The sandbox does not hold on this machine: {told}. `longwatch doctor` says more."
        )
    files.replace_json(remembered, ground)


def _ground(sandbox: Sandbox) -> _Ground:
    return _Ground(
        boot=boot_id(),
        user=os.getuid(),
        version=f"{__version__} {sandbox.name}",
        foundation=sandbox.foundation(),
    )


def _remembered(path: Path) -> _Ground | None:
    try:
        return msgspec.json.decode(files.read_bounded(path, _BYTES), type=_Ground)
    except (FileNotFoundError, PathError, msgspec.MsgspecError):
        return None
