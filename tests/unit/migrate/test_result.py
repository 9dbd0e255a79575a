"""What a worker hands over as its answer, and everything that can be wrong with it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.migrate.attempt.result import (
    MAX_RESULT_BYTES,
    RESULT_SCHEMA,
    Result,
    Status,
    _fits,
    _validator,
    read_result,
)

NONCE = "a1b2c3"
DONE = {"nonce": NONCE, "status": "done", "summary": "Ported it.", "changed": ["src/a.py"], "reason": ""}


def read(**changes: object) -> Result | tuple[str, ...]:
    return read_result(json.dumps({**DONE, **changes}).encode(), NONCE)


def wrong(**changes: object) -> tuple[str, ...]:
    found = read(**changes)
    assert isinstance(found, tuple)
    return found


@pytest.mark.guarantee("M12")
def test_a_good_answer() -> None:
    assert read() == Result(status=Status.DONE, summary="Ported it.", changed=("src/a.py",))
    unchanged = read(status="no_change", changed=[], reason="It is there already.")
    assert isinstance(unchanged, Result)
    assert unchanged.reason == "It is there already."
    assert isinstance(read(status="blocked", changed=[], reason="The card contradicts itself."), Result)


@pytest.mark.guarantee("M13")
def test_everything_wrong_is_said_at_once() -> None:
    raw = b'{"nonce":"old","status":"finished","summary":" ","changed":["/etc/passwd","../x","a","a",7],"more":1,"more":2}'
    found = read_result(raw, NONCE)
    assert isinstance(found, tuple)
    text = "\n".join(found)
    for word in ("twice", "finished", "'reason' is a required", "'more' was unexpected", "earlier attempt", "summary: it is empty",
                 "'/etc/passwd' must be relative", "'../x' must not have", "'a' stands there twice", "changed.4: 7"):  # fmt: skip
        assert word in text


@pytest.mark.guarantee("M12")
def test_a_result_of_an_earlier_attempt_is_named_so() -> None:
    (only,) = wrong(nonce="a1b2c4")
    assert "earlier attempt" in only
    assert wrong(nonce=None)
    assert wrong(nonce="")


@pytest.mark.guarantee("M13", "K34")
@pytest.mark.parametrize(
    "path",
    [
        "/abs",
        "~/x",
        "..",
        "a/../../b",
        "",
        ".",
        "./a",
        "a//b",
        "a/",
        "a\0b",
        "a\nb",
        "\x1b[2J",
        ".git/config",
        "sub/.GIT/hooks/pre-commit",
        ".longwatch/state.db",
        "\ud800",
        "x" * 2000,
        "a\u202eb",
    ],
)
def test_unsafe_paths(path: str) -> None:
    (only,) = wrong(changed=[path])
    assert only.startswith("changed: ")
    assert only.isprintable()


@pytest.mark.guarantee("M13", "M25")
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"status": "no_change", "changed": [], "reason": " "}, "needs one"),
        ({"status": "no_change", "reason": "x"}, "empty list"),
        ({"status": "blocked", "changed": [], "reason": ""}, "needs one"),
        ({"changed": []}, "no_change"),
        ({"summary": "x" * 5000}, "5000 characters"),
        ({"summary": "\x1b]0;owned\x07"}, "control characters"),
        ({"summary": 3}, "3 is not of type"),
        ({"changed": "a"}, "not of type 'array'"),
        ({"changed": [str(number) for number in range(20_000)]}, "20000 paths"),
    ],
)
def test_rules(changes: dict[str, object], word: str) -> None:
    assert word in "\n".join(wrong(**changes))


@pytest.mark.guarantee("M13")
@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "not JSON"),
        (b"I am done!", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "not of type 'object'"),
        (b"null", "not of type 'object'"),
        (b'{"nonce":' + b"9" * 10_000 + b"}", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (MAX_RESULT_BYTES + 1), "larger than"),
        (b'{"status":"done","status":"no_change"}', "status: stands there twice"),
    ],
)
def test_what_is_no_answer(raw: bytes, word: str) -> None:
    found = read_result(raw, NONCE)
    assert isinstance(found, tuple)
    assert word in "\n".join(found)


def test_violations_are_bounded() -> None:
    found = wrong(changed=[f"/{number}" for number in range(9000)], **{"k" * 400_000: 1})
    assert len(found) == 51
    assert found[-1].startswith("and ")
    assert all(len(line) < 400 for line in found)


@pytest.mark.guarantee("M13")
def test_the_schema_is_closed_and_asks_for_everything() -> None:
    schema = msgspec.json.decode(RESULT_SCHEMA)
    assert schema["additionalProperties"] is False
    assert sorted(schema["required"]) == sorted(schema["properties"])
    assert "$schema" not in schema, "Claude Code drops a schema that names its draft"


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=8), max_size=4)
)


@pytest.mark.guarantee("M13")
@given(st.dictionaries(st.sampled_from([*DONE, "x"]), VALUES, max_size=6), st.booleans())
def test_any_object_is_judged(changes: dict[str, object], whole: bool) -> None:
    value = {**DONE, **changes} if whole else changes
    found = read_result(json.dumps(value).encode(), NONCE)
    if isinstance(found, Result):
        assert value["nonce"] == NONCE
        assert set(value) == set(DONE)
        assert all(".." not in path.split("/") and not path.startswith("/") for path in found.changed)
    else:
        assert found


@given(
    st.dictionaries(st.sampled_from([*DONE, "declared", "x"]), st.one_of(VALUES, st.characters()), max_size=3)
)
def test_what_is_not_put_to_the_schema_fits_it(changes: dict[str, object]) -> None:
    value = {**DONE, **changes}
    assert _fits(value) == _validator(cases=False).is_valid(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(raw: bytes) -> None:
    assert read_result(raw, NONCE)
