"""What the worker is told: a template of the person's, filled with the facts of one attempt (M7). Pure.

Every placeholder is filled exactly once, in one pass over the template: text that comes from a card or from a failed
attempt is never looked at for placeholders, so it cannot ask for the nonce.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from longwatch.kernel.config import Problem, nearest, refuse
from longwatch.migrate.evidence import bounded
from longwatch.migrate.queue.cards import Allowance, Card, NewTests
from longwatch.migrate.settings import Check

FAILURE_CHARACTERS = 8000
_DONE_LISTED = 200
_PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")
_OPENED = re.compile(r"\{\{.{0,30}")
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)

REQUIRED = frozenset({"card", "checks", "failure", "nonce", "owned", "result", "schema"})
"""Without these no attempt could succeed, or learn from the one before."""

_ALLOWED = {
    Allowance.CHANGE_TESTS: "You may change existing tests where this task asks for it.",
    Allowance.DELETE_TESTS: "You may remove or rename existing tests where this task asks for it.",
    Allowance.SKIP_TESTS: "You may skip existing tests where this task asks for it.",
    Allowance.WEAKEN_TESTS: "You may let existing tests assert less where this task asks for it.",
}
_FORBIDDEN = {
    Allowance.CHANGE_TESTS: "Existing tests have to pass in the form that they had before your change; put new tests beside them.",
    Allowance.DELETE_TESTS: "Do not remove or rename existing tests: every test that ran before must still run.",
    Allowance.SKIP_TESTS: "Do not skip existing tests or mark them as expected to fail.",
    Allowance.WEAKEN_TESTS: "Do not make existing tests assert less than they did.",
}
_TESTS = {
    NewTests.REQUIRED: "Bring at least one test that fails without your change and passes with it. It is run on the tree "
    "before your change too: if nothing that failed there passes now, the attempt is refused.",
    NewTests.OPTIONAL: "You need not bring a test. If you do, it must fail without your change.",
}


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the placeholders stand for; each field is one, by its name."""

    title: str
    card: str
    """The text below the card's front matter."""
    owned: tuple[str, ...]
    """Patterns; empty: all that is not protected."""
    checks: tuple[Check, ...]
    nonce: str
    """Of this attempt; the answer has to carry it."""
    schema: str
    """JSON Schema of the answer, as text."""
    result: str
    """Where the answer goes, in words: "your last message", "the file `/work/result.json`"."""
    rules: str
    """What `rules_of` returns for the card."""
    failure: str = ""
    """Why the attempt before was refused; empty on the first."""
    done: tuple[str, ...] = ()
    """Ids of finished jobs, in order."""
    protected: tuple[str, ...] = ()
    """Patterns that the worker must not touch."""
    evidence: str = "Nothing besides: the checks decide."
    """What has to be declared and shown about the source system, as `sources.told` writes it."""


def render(template: str, facts: PromptFacts, *, file: str = "prompt.md", cases: bool = False) -> str:
    """Return the prompt; `file` names the template in messages, `cases` says that the profile has any.

    Raises:
        ConfigError: the template has an unknown or malformed placeholder, or lacks a required one; all at once.
    """
    refuse(file, template_problems(template, cases=cases))
    values = _values(facts)
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def template_problems(template: str, *, cases: bool = False) -> Iterable[Problem]:
    """Yield what is wrong with a template, whatever it is filled with."""
    known = PromptFacts.__struct_fields__
    names = set(_PLACEHOLDER.findall(template))
    for name in sorted(names.difference(known)):
        yield Problem(f"{{{{ {name} }}}}", f"is no known placeholder{nearest(name, known)}")
    for opened in _OPENED.findall(_PLACEHOLDER.sub("", template)):
        yield Problem(
            opened, "is no placeholder: write it like {{ card }}, or put a space between the braces"
        )
    for name in sorted((REQUIRED | {"evidence"} if cases else REQUIRED) - names):
        yield Problem(f"{{{{ {name} }}}}", "is missing: the worker cannot do without it; add it")


def rules_of(card: Card) -> str:
    """Return the rules about tests that hold for this card, as a Markdown list."""
    tests = [(_ALLOWED if one in card.allow else _FORBIDDEN)[one] for one in Allowance]
    return "\n".join(f"- {rule}" for rule in (_TESTS[card.tests], *tests))


def _values(facts: PromptFacts) -> Mapping[str, str]:
    return {
        "title": _plain(facts.title),
        "card": facts.card,
        "owned": _listed(facts.owned, none="- everything that is not protected"),
        "checks": "\n".join(_check_line(check) for check in facts.checks),
        "nonce": facts.nonce,
        "schema": _fenced(facts.schema, "json"),
        "result": facts.result,
        "rules": facts.rules,
        "failure": _fenced(bounded(_plain(facts.failure), FAILURE_CHARACTERS))
        if facts.failure.strip()
        else "None: this is the first attempt.",
        "done": _done(facts.done),
        "evidence": facts.evidence,
        "protected": ", ".join(f"`{item}`" for item in facts.protected)
        or "none besides what git and Longwatch own",
    }


def _check_line(check: Check) -> str:
    place = "" if check.cwd in {"", "."} else f" in `{check.cwd}`"
    before = "; it must fail on the tree before your change" if check.fails_before else ""
    return f"- {check.name} ({check.kind}): `{' '.join(check.argv)}`{place}{before}"


def _listed(items: tuple[str, ...], *, none: str) -> str:
    return "\n".join(f"- `{item}`" for item in items) or none


def _done(items: tuple[str, ...]) -> str:
    """Name the last finished jobs; a long queue must not push the task out of sight."""
    left_out = len(items) - _DONE_LISTED
    earlier = f"- ({left_out} earlier ones)\n" if left_out > 0 else ""
    return earlier + _listed(items[-_DONE_LISTED:], none="- none yet")


def _fenced(text: str, language: str = "") -> str:
    """Put text between fences that it cannot close itself."""
    longest = max((len(fence) for fence in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _plain(text: str) -> str:
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n"))
