"""The page of `longwatch web`, served by the real program and opened in a real headless Chromium."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

AXE = Path(__file__).parents[1] / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIOLATIONS = "axe.run().then(({ violations }) => violations.map((one) => [one.id, one.nodes.map((node) => node.html)]))"
PROGRAM = (sys.executable, "-m", "longwatch.cli.main", "web", "--port", "0")


@dataclass
class Seen:
    """What a browser page said and asked for, beside what it shows."""

    said: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@contextlib.contextmanager
def served(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve the watches of a folder, and yield the address with the key."""
    serving = subprocess.Popen(
        [*PROGRAM, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment and dict(environment),
    )
    assert serving.stdout is not None
    try:
        yield serving.stdout.readline().partition(": ")[2].strip()
    finally:
        serving.terminate()
        _, complaints = serving.communicate(timeout=15)
        assert (serving.returncode in {0, -15}, complaints) == (True, "")


def origin(address: str) -> str:
    return address.partition("/?")[0]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "scripts/install-debian test installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@contextlib.contextmanager
def opened(
    browser: Browser, address: str, *, width: int = 1200, dark: bool = False, still: bool = False
) -> Iterator[tuple[Page, Seen]]:
    """A page that was opened by the printed address; at the end it must have said nothing wrong, and asked nobody else."""
    seen = Seen()
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce" if still else "no-preference",
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("console", lambda message: seen.said.append(message.text))
    page.on("pageerror", lambda error: seen.said.append(str(error)))
    page.on("dialog", lambda dialog: seen.said.append(dialog.message))
    page.on("websocket", lambda socket: seen.foreign.append(socket.url))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(origin(address)) else seen.foreign.append(asked.url),
    )
    page.goto(address)
    yield page, seen
    context.close()
    assert seen == Seen()
