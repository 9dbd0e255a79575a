"""What the scripts that write a page have in common: write it, or with `--check` say whether it is fresh."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ScriptError(Exception):
    """The sources of a generated page are wrong; the message names the place and the mend."""


def settle(page: Path, text: str, *, check: bool) -> int:
    """Write `text` to `page`, or only compare them. Return the exit code."""
    old = page.read_text(encoding="utf-8") if page.exists() else None
    if old == text:
        return 0
    if check:
        print(f"{page.name} is stale: run `make docs` and commit it", file=sys.stderr)
        return 1
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print(f"wrote {page.name}")
    return 0
