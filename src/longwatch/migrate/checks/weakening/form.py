"""The form of an assertion: what it does, with which values left out. Pure, and the same for every language.

A job that changes behaviour has to change what tests expect. `assert total([]) == 1` in the place of `assert total([])
== 0` asks as much as before; `assert total([]) is not None` does not.
"""

import re

_STRING = re.compile(r"""[bBrRuUfF]{0,2}("(?:[^"\\]|\\.)+"|'(?:[^'\\]|\\.)+'|`(?:[^`\\]|\\.)+`)""")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\w.]*")
_VALUES = re.compile(r"#(?:\s*,\s*#)+")
# Kept: words of the language, what asserts, and types, which begin with a capital letter: Exception is less than ValueError.
_NAME = re.compile(
    r"(?<![\w.])(?!(?:not|is|in|and|or|if|else|for|lambda|await|new|None|nil|null|undefined|true|false|assert|expect)\b)"
    r"[a-z_]\w*(?:\.[a-z_]\w*)*(?=\s*[(.\[,)\]=!<>+*/%-]|\s*$|\s+(?:==|!=|is|in|not|and|or)\b)",
)
_ASSERTING = re.compile(
    r"(?i)(?:.*\.)?_?(?:assert|expect|should|check|verify|ensure|fail|must|raises|warns)\w*"
)


def form(text: str) -> str:
    """Return the assertion with `#` for values, and `x1`, `x2` for the names of what is tested, equal ones alike."""
    values = _VALUES.sub("#", _NUMBER.sub("#", _STRING.sub("#", text)))
    seen: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        name = match[0]
        return name if _ASSERTING.fullmatch(name) else seen.setdefault(name, f"x{len(seen) + 1}")

    return _NAME.sub(named, values)
