"""What ids, paths, patterns and branches may look like. Pure; each rule returns the mend, or "" when all is well."""

import re

ID = r"[a-z0-9][a-z0-9._-]{0,63}"
_ID = re.compile(ID)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REMOTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_PATH_BYTES = 1024
_OURS = frozenset({".git", ".longwatch"})


def bad_id(text: str) -> str:
    """Return why a card's id is refused; good ones are path-safe and tell a person apart at a glance."""
    if not _ID.fullmatch(text):
        return f"must look like {ID}: small letters, digits, dots, hyphens, underscores"
    return _bad_file_name(text)


def bad_name(text: str) -> str:
    """Return why the name of a check is refused; it becomes a part of file names."""
    if not _NAME.fullmatch(text):
        return "must be up to 64 letters, digits, dots, hyphens or underscores, the first a letter or digit"
    return _bad_file_name(text)


def bad_path(text: str) -> str:
    """Return why a relative path is refused (specification K34); links are looked at where files are opened."""
    if not text or "\0" in text or len(text.encode("utf-8", "surrogatepass")) > _PATH_BYTES:
        return "must be a path of 1 to 1024 bytes without NUL"
    if text.startswith(("/", "~")):
        return "must be relative: write it without its first part"
    if ".." in text.split("/"):
        return "must not have a `..`: nothing outside may be named"
    return ""


def bad_pattern(text: str) -> str:
    """Return why a pattern is refused: it would leave the repository, reach into what git or Longwatch own, or negate.

    One slash in front means the repository's root, as in a `.gitignore`. `patterns` knows the rest of the grammar.
    """
    if text.startswith("!"):
        return "must not negate: list what is meant instead"
    if _OURS & set(text.split("/")):
        return "must not name .git or .longwatch: they are never the worker's"
    return bad_path(text.removeprefix("/"))


def bad_branch(text: str) -> str:
    """Return why this is no branch that git would accept (git-check-ref-format(1)); `HEAD` is none either."""
    parts = text.split("/")
    if (
        text in {"", "@", "HEAD"}
        or _NOT_IN_REF.search(text)
        or text.startswith("-")
        or text.endswith(".")
        or any(not part or part.startswith(".") or part.endswith(".lock") for part in parts)
    ):
        return "must be the short name of a branch, as `git branch --show-current` prints it"
    return ""


def bad_remote(text: str) -> str:
    """Return why the name of a git remote is refused: an address or an option is none."""
    if not _REMOTE.fullmatch(text) or bad_branch(text):
        return "must be the name of a remote, as `git remote` prints it"
    return ""


def _bad_file_name(text: str) -> str:
    return "must not have two dots in a row or end with a dot" if ".." in text or text.endswith(".") else ""
