"""What mkdocs is told about this project: the pages at its root belong to the site, and links may lead out of docs/.

A page of the root is shown as it is. A link between pages is written for the repository and translated; one that leads to
something that only the repository has stands as plain text in the site.
"""

import os.path
import posixpath
import re

from generated import ROOT
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SHOWN = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the root, and what the site calls them."""
LINK = re.compile(r"(?P<text>\[[^\[\]]+\])\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")
DOCS = "docs/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for source, page in SHOWN.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs' names
    """Translate the links of a page."""
    return translated(markdown, page.file.src_uri)


def translated(markdown: str, page: str) -> str:
    """Return the text of a page with its links as they are in the site.

    Raises:
        PluginError: a link leads to nothing; the message names page and link.
    """
    source = next((name for name, shown in SHOWN.items() if shown == page), DOCS + page)
    return LINK.sub(lambda found: _link(found, source, page), markdown)


def _link(found: re.Match[str], source: str, page: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
    if target.startswith("../") or not os.path.lexists(ROOT / target):
        raise PluginError(f"{source}: the link to {found['path']} leads to nothing; correct it")
    inside = _inside(target)
    if not inside:
        return found["text"][1:-1]
    path = posixpath.relpath(inside, posixpath.dirname(page))
    return f"{found['text']}({path}{found['anchor'] or ''})"


def _inside(target: str) -> str:
    """Return what the site calls a file of the repository, or nothing."""
    if target in SHOWN:
        return SHOWN[target]
    overview = f"{target}/README.md"
    target = overview if (ROOT / overview).is_file() else target
    return target.removeprefix(DOCS) if target.startswith(DOCS) else ""
