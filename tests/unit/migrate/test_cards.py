"""Cards: what is right is read as it was written, what is wrong is told all at once."""

import hashlib

import pytest

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.names import bad_id
from longwatch.migrate.queue.cards import (
    CARD_BYTES,
    Allowance,
    Card,
    NewTests,
    against_settings,
    checks_of,
    parse_card,
    parse_cards,
)
from longwatch.migrate.settings import Check

HEAD = "id: a\ntitle: Port a\nowned: ['src/**']\n"


def card(head: str = "", *, whole: str = HEAD, body: str = "Do it.\n") -> bytes:
    return f"---\n{whole}{head}---\n\n{body}".encode()


def refusal(raw: bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_card("tasks/a.md", raw)
    message = str(caught.value)
    assert "tasks/a.md" in message
    return message


@pytest.mark.guarantee("M2")
def test_a_card_is_read_with_all_its_keys() -> None:
    raw = b"""---
id: port-2.b
title: "Port: the parser"
after: [port-1]
owned:
  - src/parser/**
  - "**/test_parser.py"
checks:
  - tests
  - {name: cases, argv: [python3, tools/cases.py], fails_before: true, timeout_s: 60}
allow: [change-tests, skip-tests]
priority: -3
tests: optional
---

# What to do

---
A line of three hyphens belongs to the text.
"""
    read = parse_card("tasks/b.md", raw)
    assert read == Card(
        id="port-2.b",
        title="Port: the parser",
        after=("port-1",),
        owned=("src/parser/**", "**/test_parser.py"),
        checks=(
            "tests",
            Check(name="cases", argv=("python3", "tools/cases.py"), fails_before=True, timeout_s=60),
        ),
        allow=(Allowance.CHANGE_TESTS, Allowance.SKIP_TESTS),
        priority=-3,
        tests=NewTests.OPTIONAL,
        body="# What to do\n\n---\nA line of three hyphens belongs to the text.",
        path="tasks/b.md",
        digest=hashlib.sha256(raw).hexdigest(),
    )


def test_what_is_not_said_is_the_careful_choice() -> None:
    read = parse_card("a.md", card(whole="id: a\ntitle: t\n"))
    assert (read.after, read.checks, read.allow, read.owned, read.priority) == ((), (), (), (), 0)
    assert read.tests is NewTests.REQUIRED


def test_plain_text_keeps_its_spelling() -> None:
    read = parse_card("a.md", card(whole="id: 007\ntitle: no\nowned: [1.10]\nafter: [0x10, 1e3]\n"))
    assert (read.id, read.title, read.owned, read.after) == ("007", "no", ("1.10",), ("0x10", "1e3"))


def test_a_byte_order_mark_and_windows_lines_are_read_and_digested_as_they_are() -> None:
    raw = b"\xef\xbb\xbf" + card().replace(b"\n", b"\r\n")
    read = parse_card("a.md", raw)
    assert (read.id, read.body) == ("a", "Do it.")
    assert read.digest == hashlib.sha256(raw).hexdigest()


@pytest.mark.guarantee("M2")
def test_all_problems_of_all_cards_are_told_at_once() -> None:
    wrong = card("allow: [trust-me]\npriority: soon\ntitel: x\ntests: maybe\n", whole="id: a\n", body="")
    with pytest.raises(ConfigError) as caught:
        parse_cards([("a.md", wrong), ("b.md", card()), ("c.md", card("after: ['../x', 'Y']\n"))])
    lines = str(caught.value).splitlines()[1:]
    assert [line.strip() for line in lines] == [
        'a.md: titel = "x": is no known key; did you mean `title`?',
        "a.md: title: is missing: add it",
        f'a.md: allow[0] = "trust-me": is none of the choices; known are {", ".join(sorted(Allowance))}',
        'a.md: priority = "soon": must be a whole number',
        'a.md: tests = "maybe": is none of the choices; known are optional, required',
        "a.md: text: is missing: say below the front matter what is to be done",
        f'c.md: after = "../x": {bad_id("../x")}',
        f'c.md: after = "Y": {bad_id("Y")}',
    ]


@pytest.mark.guarantee("M3", "K34")
@pytest.mark.parametrize(
    "ident",
    [
        "..",
        ".a",
        "a/b",
        "a..b",
        "a.",
        "-a",
        "A",
        "a b",
        "",
        "ä",
        "a" * 65,
        "a\\tb",
        "~",
        "$x",
        "a\\u0000",
        "a\\n",
    ],
)
def test_an_id_that_is_not_path_safe_is_refused(ident: str) -> None:
    assert "id = " in refusal(card(whole=f'id: "{ident}"\ntitle: t\nowned: [x]\n'))


@pytest.mark.guarantee("K34")
@pytest.mark.parametrize(
    "pattern",
    [
        "//etc/passwd",
        "../x",
        "a/../../b",
        "~/x",
        "",
        ".git/config",
        "a/.git/hooks/*",
        ".longwatch/x",
        "!x",
        "a\\u0000",
        "[a",
        "a/./b",
        "a\\\\*",
    ],
)
def test_an_owned_pattern_never_leaves_the_repository(pattern: str) -> None:
    assert "owned = " in refusal(card(whole=f'id: a\ntitle: t\nowned: ["ok/**", "{pattern}"]\n'))


@pytest.mark.guarantee("K34")
@pytest.mark.parametrize("cwd", ["/", "..", "a/../..", "~"])
def test_the_folder_of_an_own_check_never_leaves_the_repository(cwd: str) -> None:
    assert "checks[0].cwd" in refusal(card(f'checks: [{{name: n, argv: [x], cwd: "{cwd}"}}]\n'))


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("title: again\n", "line 5: the key `title` stands twice"),
        ("after: &x [b]\n", "line 5: anchors"),
        ("after: *x\n", "line 5: aliases"),
        ("owned2: [*.py]\n", "a value that begins with `*` needs quotes"),
        ("after: !!python/object/apply:os.system [id]\n", "line 5: tags"),
        ("after: !x b\n", "line 5: tags"),
        ("after: [[[[[[[[b]]]]]]]]\n", "nested deeper"),
        ("after: " + "[" * 30000 + "\n", "nested deeper"),
        ("after: [b\n", "is no valid YAML"),
        ("? [a, b]\n: c\n", "a key must be a word"),
        ("...\nid: b\n", "line 6: is no valid YAML"),
        ("--- b\n", "line 5: a second document"),
        ("after: \x07\n", "a character that YAML does not allow"),
        ("after:\n", 'after = "": must be a list'),
        ("allow: [no-new-tests]\n", "is written as `tests: optional`"),
        ("checks: [{nam: n, argv: [x]}]\n", "did you mean `name`?"),
        ("checks: [{name: n, argv: []}]\n", "must begin with a program"),
        ("checks: [{name: n, argv: [x], timeout_s: nan}]\n", "must be a finite number"),
        ("checks: [{name: n, argv: [x], timeout_s: -1}]\n", "must be more than 0"),
        ("checks: [{name: n, argv: [x], census: none}]\n", "must count its tests"),
        ("checks: [{name: n, argv: [x], fails_before: maybe}]\n", "must be true or false"),
        ("checks: [tests, tests]\n", "stands more than once"),
        ("priority: 99999999999\n", "must lie between"),
        ("x: " + "y" * 70_000 + "\n", "longer than 65536 bytes"),
    ],
)
def test_a_wrong_head_is_told_with_its_place(head: str, told: str) -> None:
    assert told in refusal(card(head))


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "the first line must be `---`"),
        (b"# Title\n", "the first line must be `---`"),
        (b"---\nid: a\n", "has no end"),
        (b"---\n---\nText", "id: is missing"),
        (b"---\n- a\n---\nText", "lines of the form"),
        (b"---\nid: \xff\n---\n", "line 2: is not UTF-8"),
        (b"---\n" + b"x" * CARD_BYTES, "more than 262144"),
        (card(body="\0"), "NUL"),
        (card(whole='id: a\ntitle: "a\\nb"\nowned: [x]\n'), "one line"),
        (card(whole="id: a\ntitle: ' '\nowned: [x]\n"), "one line"),
        (card(whole="id: a\ntitle: t\nowned: []\n"), "owned: is empty"),
    ],
)
def test_what_is_no_card_is_told_with_its_mend(raw: bytes, told: str) -> None:
    assert told in refusal(raw)


TESTS = Check(name="tests", argv=("pytest",))
LINT = Check(name="lint", argv=("ruff",), kind="lint")


def test_the_checks_of_a_card_are_all_or_the_named_ones_and_its_own() -> None:
    own = Check(name="own", argv=("x",))
    assert checks_of(parse_card("a", card()), (TESTS, LINT)) == (TESTS, LINT)
    assert checks_of(parse_card("a", card("checks: [lint]\n")), (TESTS, LINT)) == (LINT,)
    mixed = parse_card("a", card("checks: [{name: own, argv: [x]}]\n"))
    assert checks_of(mixed, (TESTS, LINT)) == (TESTS, LINT, own)


@pytest.mark.guarantee("M20")
def test_a_card_cannot_choose_the_required_checks_away_or_replace_them() -> None:
    cards = parse_cards(
        [
            ("a", card("checks: [lint]\n")),
            ("b", card("checks: [test]\n")),
            ("c", card("checks: [{name: tests, argv: ['true']}]\n")),
            ("d", card()),
        ]
    )
    told = [
        f"{problem.where}: {problem.mend}" for problem in against_settings(cards, (TESTS, LINT), ("test",))
    ]
    assert told == [
        'a: checks: none has the required kind "test": name one',
        'b: checks = "test": is no configured check; did you mean `tests`?',
        'b: checks: none has the required kind "test": name one',
        'c: checks.name = "tests": is also the name of a configured check: give it its own',
    ]
