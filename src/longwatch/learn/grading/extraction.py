"""The answer in a model's text."""

import re

from longwatch.learn.grading.languages import RUNTIMES
from longwatch.learn.tasks import Language

_OPENING = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#-]*)[^\n`]*$", re.MULTILINE)


def extract(text: str, language: Language) -> str:
    """Return the code: the first fenced block that names the language, else the first one, else the whole text.

    A block ends at a line that begins with its own fence, or with the text if generation stopped before. Line ends
    become line feeds. A pure function of the text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = _blocks(text)
    if not blocks:
        return text
    named = (code for name, code in blocks if name.lower() in RUNTIMES[language].fences)
    return next(named, blocks[0][1])


def _blocks(text: str) -> list[tuple[str, str]]:
    blocks = []
    at = 0
    while opening := _OPENING.search(text, at):
        start = min(opening.end() + 1, len(text))
        closing = re.compile(rf"^[ \t]*{re.escape(opening[1])}", re.MULTILINE).search(text, start)
        end, at = (closing.start(), closing.end()) if closing else (len(text), len(text))
        blocks.append((opening[2], text[start:end]))
    return blocks
