"""Finds processes by their command line: they can hide their environment and their parents, not this."""

from pathlib import Path

from longwatch.kernel.identity import read_stat


def living(token: str) -> list[int]:
    """Pids of living processes that carry the token as a word."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        stat = read_stat(int(entry.name)) if token.encode() in words else None
        if stat is not None and not stat.dead:
            found.append(stat.pid)
    return found
