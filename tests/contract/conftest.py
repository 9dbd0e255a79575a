"""Every kind of sandbox for the contract: engines of containers are started when they are first asked for."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import engines

from longwatch.sandbox import SANDBOXES, Sandbox

Make = Callable[[str], Sandbox]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], engines.Ready]]:
    """Start an engine when it is first asked for; it ends with the module, since others count what lives."""
    begun: dict[str, engines.Ready] = {}
    with contextlib.ExitStack() as stack:

        def ready(kind: str) -> engines.Ready:
            if kind not in begun:
                engines.forget()
                real = kind == "podman"
                start = engines.podman() if real else engines.stand_in(tmp_path_factory.mktemp(kind), kind)
                begun[kind] = stack.enter_context(start)
            return begun[kind]

        yield ready


@pytest.fixture
def make(
    ready: Callable[[str], engines.Ready], monkeypatch: pytest.MonkeyPatch, work: Path
) -> Iterator[Make]:
    """Return a sandbox by its kind; with docker, the folder of work belongs to an ordinary user."""

    def make(kind: str) -> Sandbox:
        if kind not in {"docker", "podman"}:
            return SANDBOXES[kind]()
        engine = ready(kind)
        for name, value in engine.environment.items():
            monkeypatch.setenv(name, value)
        if engine.user is not None:
            os.chown(work, *engine.user)
            work.parent.chmod(0o755)
            # What the self-test makes is its user's: here we are root, and the user is another.
            os.umask(0)
        return engine.sandbox()

    before = os.umask(0o022)
    yield make
    os.umask(before)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
