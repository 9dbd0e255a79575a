"""How a task is put to the student. Small chat models answer this form, and hardly any other."""

import re
from collections.abc import Sequence

from longwatch.learn.grading.languages import RUNTIMES
from longwatch.learn.tasks import Language

_CLOSING = re.compile(r"^Reply with only the code in a ```\w+ block\.$", re.MULTILINE)


def ask(language: Language, signature: str, sentence: str, examples: Sequence[str]) -> str:
    """The prompt for one function. `examples` are clauses, such as *`f(1)` returns `2`*."""
    shown = f"\nFor example, {' and '.join(examples)}." if examples else ""
    return f"Write a {RUNTIMES[language].name} function `{signature}`. {sentence}{shown}\n{closing(language)}"


def complete(language: Language, head: str) -> str:
    """The prompt for the rest of a function whose head and comment are given as code."""
    return f"Complete this {RUNTIMES[language].name} function:\n```{language}\n{head.strip()}\n```\n{closing(language)}"


def closing(language: Language) -> str:
    """The last line of every prompt."""
    return f"Reply with only the code in a ```{language} block."


def without_closing(prompt: str) -> str:
    """What is said about the problem itself."""
    return _CLOSING.sub("", prompt)
