"""The documentation site: it builds without a warning, and works without a network."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from mkdocs.exceptions import PluginError
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "form": "action"}
FOREIGN = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)")


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does. With --quiet warnings would not count."""
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    found = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts/site_pages.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "scripts"))


class Loaded(HTMLParser):
    """What a page loads by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if LOADS.get(tag) == name and value]


def test_every_page_of_the_project_is_in_it(site: Path) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    written = {path.with_name("index.html") if path.stem == "README" else path for path in written}

    there = {path.relative_to(site) for path in site.rglob("*.html")}

    assert there == written | {
        Path(name) for name in ("index.html", "architecture.html", "changelog.html", "404.html")
    }
    assert "You go to bed" in (site / "index.html").read_text()
    assert [path for path in site.rglob("*.html") if "<p>```" in path.read_text()] == [], (
        "a block is not read"
    )


def test_it_loads_nothing_from_another_host(site: Path) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    styles = {path: path.read_text() for path in site.rglob("*.css")}

    loaded = [
        (path.name, one) for path, text in pages.items() for one in Loaded(text).found if FOREIGN.match(one)
    ]
    loaded += [
        (path.name, one) for path, text in {**pages, **styles}.items() for one in IN_STYLE.findall(text)
    ]

    assert loaded == []
    # What the theme's scripts would fetch from elsewhere: diagrams, and figures of a repository.
    assert [
        path
        for path, text in pages.items()
        if 'class="mermaid"' in text or 'data-md-component="source"' in text
    ] == []


def test_opened_from_the_disk_it_shows_and_finds_and_asks_nobody(site: Path) -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "scripts/install-debian test installs it"
    asked: list[str] = []
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((site / "how-to/recovery.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("reconcile")
        found = page.locator(".md-search-result__item").first
        found.wait_for()
        assert "reconcile" in found.inner_text()
        page.goto((site / "lifecycle.html").as_uri())
        browser.close()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert said == []


def test_a_page_that_nobody_finds_and_a_link_beside_its_mark_fail_the_build(tmp_path: Path) -> None:
    for name in ("mkdocs.yml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "src", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs/lost.md").write_text("[Where?](guide.md#nowhere)\n")

    done = build(tmp_path, tmp_path / "site")

    assert done.returncode == 1
    assert "  - lost.md\n" in done.stderr
    assert "does not contain an anchor '#nowhere'" in done.stderr
    assert "Aborted with 2 warnings" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("index.md", "[a](docs/guide.md)", "[a](guide.md)"),
        ("index.md", "[a](ARCHITECTURE.md)", "[a](architecture.md)"),
        ("architecture.md", "[docs/adr](docs/adr)", "[docs/adr](adr/README.md)"),
        ("reference/api.md", "[`web`](../page.md#the-report)", "[`web`](../page.md#the-report)"),
        ("concepts/recovery.md", "[a](../../ARCHITECTURE.md)", "[a](../architecture.md)"),
        ("blender-web.md", "[`blender-web`](../examples/blender-web)", "`blender-web`"),
        ("guide.md", "[a](#here) [b](https://example.org/x)", "[a](#here) [b](https://example.org/x)"),
    ],
)
def test_links_lead_where_they_lead_in_the_repository(
    pages: ModuleType, page: str, link: str, shown: str
) -> None:
    assert pages.translated(f"See {link}.", page) == f"See {shown}."


@pytest.mark.parametrize("link", ["docs/nothing.md", "src/nothing.py", "../README.md"])
def test_a_link_to_nothing_is_refused_by_name(pages: ModuleType, link: str) -> None:
    with pytest.raises(PluginError, match=f"README.md: the link to {re.escape(link)} leads to nothing"):
        pages.translated(f"[a]({link})", "index.md")
