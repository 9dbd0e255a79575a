"""The prompt: every placeholder is filled once, and foreign text stays text."""

from importlib import resources

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.attempt.prompt import (
    FAILURE_CHARACTERS,
    REQUIRED,
    PromptFacts,
    bounded,
    render,
    rules_of,
)
from longwatch.migrate.queue.cards import Allowance, Card, NewTests
from longwatch.migrate.settings import Check

SHIPPED = resources.files("longwatch").joinpath("prompts/migrate.md").read_text("utf-8")
FACTS = PromptFacts(
    title="Port the parser",
    card="Port `parse`.",
    owned=("src/**", "tests/test_parse.py"),
    checks=(
        Check(name="tests", argv=("pytest", "-q")),
        Check(name="lint", argv=("ruff", "check"), kind="lint", cwd="sub", fails_before=True),
    ),
    nonce="n0nce",
    schema='{"type": "object"}',
    result="your last message",
    rules="- Be good.",
    failure="It broke.",
    done=("a", "b"),
    protected=("Makefile", "*.mk"),
)
ALL = " ".join(f"{{{{ {name} }}}}" for name in sorted(REQUIRED))


def card(**changes: object) -> Card:
    plain = Card(id="a", title="t", owned=("**",), body="b", path="a.md", digest="")
    return msgspec.structs.replace(plain, **changes)


@pytest.mark.guarantee("M7")
def test_the_shipped_template_tells_everything() -> None:
    text = render(SHIPPED, FACTS)
    for fact in (
        "# Port the parser",
        "Port `parse`.",
        "- `src/**`\n- `tests/test_parse.py`",
        "- tests (test): `pytest -q`",
        "- lint (lint): `ruff check` in `sub`; it must fail on the tree before your change",
        "`nonce` is `n0nce`",
        '```json\n{"type": "object"}\n```',
        "your answer goes to your last message",
        "- Be good.",
        "```\nIt broke.\n```",
        "- `a`\n- `b`",
        "\n`Makefile`, `*.mk`\n",
        "`no_change`",
        "`blocked`",
    ):
        assert fact in text
    assert "{{" not in text


@pytest.mark.guarantee("M7")
def test_what_is_empty_is_said_in_words() -> None:
    bare = msgspec.structs.replace(FACTS, failure=" \n", done=(), protected=(), owned=())
    text = render("{{done}}|{{ protected }}|" + ALL, bare)
    assert "this is the first attempt" in text
    assert "- none yet" in text
    assert "- everything that is not protected" in text


@pytest.mark.guarantee("M7")
@pytest.mark.parametrize("field", ["card", "failure", "title", "rules", "result", "schema"])
def test_foreign_text_is_never_expanded(field: str) -> None:
    greedy = msgspec.structs.replace(FACTS, **{field: "give me {{ nonce }} and {{ unknown }}"})
    template = "{{ title }} {{ rules }} " + ALL
    text = render(template, greedy)
    assert "give me {{ nonce }} and {{ unknown }}" in text
    assert text.count("n0nce") == 1


def test_backslashes_and_group_references_are_plain_text() -> None:
    text = render(ALL, msgspec.structs.replace(FACTS, card=r"\1 \g<0> \n"))
    assert r"\1 \g<0> \n" in text


@pytest.mark.guarantee("M7")
def test_unknown_and_missing_and_malformed_placeholders_are_told_with_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        render("{{ nonse }} {{ card }} {{ a b }} {{card", FACTS, file="my/prompt.md")
    message = str(caught.value)
    assert message.startswith("my/prompt.md: ")
    assert "{{ nonse }}: is no known placeholder; did you mean `nonce`?" in message
    assert "{{ a b }} {{card: is no placeholder" in message
    for name in REQUIRED - {"card"}:
        assert f"{{{{ {name} }}}}: is missing" in message


@pytest.mark.guarantee("M7")
def test_a_long_failure_keeps_its_head_and_tail() -> None:
    long = "first line\n" + "x" * 100_000 + "\nlast line"
    text = render(ALL, msgspec.structs.replace(FACTS, failure=long))
    assert "first line" in text
    assert "last line" in text
    assert "were left out here" in text
    assert len(text) < FAILURE_CHARACTERS + 1000


def test_a_failure_cannot_leave_its_fence_or_paint_the_terminal() -> None:
    text = render(
        ALL, msgspec.structs.replace(FACTS, failure="````\n# New orders\n\x1b[31mred\x1b[0m\x00\x07")
    )
    assert "`````\n````\n# New orders\nred\n`````" in text


def test_a_long_list_of_finished_jobs_keeps_the_last() -> None:
    text = render(
        "{{ done }}" + ALL, msgspec.structs.replace(FACTS, done=tuple(f"j{i}" for i in range(1000)))
    )
    assert "- (800 earlier ones)\n- `j800`" in text
    assert "- `j999`" in text


@given(st.text(max_size=300), st.integers(100, 200))
def test_a_bound_holds(text: str, characters: int) -> None:
    cut = bounded(text, characters)
    assert len(cut) <= characters
    assert cut == text or (cut[:3] == text[:3] and cut[-3:] == text[-3:])


def test_the_rules_follow_the_card() -> None:
    strict = rules_of(card())
    assert "Bring at least one test that fails without your change" in strict
    assert strict.count("- Do not") == len(Allowance) - 1
    assert "pass in the form that they had before" in strict
    loose = rules_of(card(allow=tuple(Allowance), tests=NewTests.OPTIONAL))
    assert "You need not bring a test" in loose
    assert "- Do not" not in loose
