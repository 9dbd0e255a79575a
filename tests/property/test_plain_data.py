"""Plain data crosses unchanged, and nothing else crosses at all."""

import math
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwatch.learn.grading import plain
from longwatch.learn.grading.comparison import equal, tree_of
from longwatch.learn.grading.wire import GarbageError, check

DEPTH = 100
texts = st.text(st.characters(exclude_categories=()), max_size=20)


def is_itself(value: object) -> bool:
    return "nan" not in repr(value)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers().map(lambda value: value * 10**40)
    | st.floats()
    | texts
    | st.binary(max_size=20)
    | st.complex_numbers()
)
hashable = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner.filter(is_itself), max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars | hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=20,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=15,
)
# What a hostile process may send: any JSON, preferably with our own tags.
foreign = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.builds(
            lambda tag, rest: [tag, *rest],
            st.sampled_from([*"ltSFdbifcsnu", "x"]),
            st.lists(inner, max_size=3),
        )
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=15,
)


def through_us(text: str) -> object:
    """As the relay does: read, check, write, and read there."""
    tree = check(msgspec.json.decode(text.encode()), DEPTH)
    return plain.decode(plain.parse(msgspec.json.encode(tree).decode()))


def same(one: object, other: object) -> bool:
    """Equal in value and in every type; nan is itself, and so is a negative nought."""
    return repr(one) == repr(other) if not isinstance(one, set | frozenset) else sets_same(one, other)


def sets_same(one: object, other: object) -> bool:
    return type(one) is type(other) and sorted(map(repr, one)) == sorted(map(repr, other))  # type: ignore[call-overload]


@pytest.mark.guarantee("L10")
@given(values)
def test_plain_data_crosses_unchanged(value: object) -> None:
    there = through_us(plain.encode(value))
    # A second crossing shows sets inside the same order of insertion: compare what arrives in the end.
    assert type(there) is type(value)
    if not contains_set(value):
        assert same(there, value)
    elif not contains_nan(value):
        assert there == value


def contains_set(value: object) -> bool:
    return "set(" in repr(value) or isinstance(value, set) or "{" in repr(value)


def contains_nan(value: object) -> bool:
    return "nan" in repr(value)


@pytest.mark.guarantee("L10")
@given(foreign)
@settings(max_examples=500)
def test_what_passes_the_check_can_be_read(tree: object) -> None:
    """Whatever is sent: it is refused here, or the tests' process can read it (or only fails to hash what it holds)."""
    try:
        checked = check(tree, DEPTH)
    except GarbageError:
        return
    text = msgspec.json.encode(checked).decode()
    refused: str | None = None
    try:
        plain.decode(plain.parse(text))
    except (TypeError, plain.NotPlainError) as error:
        refused = str(error)
    assert refused is None or "unhashable" in refused or "other language" in refused


@pytest.mark.guarantee("L10")
@given(json_values)
def test_an_expected_value_equals_itself_as_sent(value: object) -> None:
    assert equal(check(msgspec.json.decode(plain.encode(value)), DEPTH), value, 0.0)
    assert equal(check(tree_of(value), DEPTH), value, 0.0)


@pytest.mark.guarantee("L10")
@given(json_values, json_values)
def test_equality_is_no_laxer_than_pythons(one: object, other: object) -> None:
    if equal(tree_of(one), other, 0.0):
        assert one == other


@pytest.mark.guarantee("L10")
@given(st.integers(1, 300))
def test_depth_is_bounded(depth: int) -> None:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    try:
        text = plain.encode(value)
    except plain.NotPlainError:
        assert depth > DEPTH
        text = '["l",' * (depth - 1) + '["l"]' + "]" * (depth - 1)
        with pytest.raises(GarbageError):
            check(msgspec.json.decode(text.encode()), DEPTH)
    else:
        assert depth <= DEPTH
        check(msgspec.json.decode(text.encode()), DEPTH)


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        return '["u"]'

    def __index__(self) -> int:
        return 7

    __str__ = __repr__
    __int__ = __trunc__ = __index__

    def __add__(self, other: object) -> int:
        return 8


@pytest.mark.guarantee("L10")
@given(st.integers())
def test_a_subclass_crosses_as_what_it_inherits(number: int) -> None:
    there = through_us(plain.encode([Sly(number)]))
    assert isinstance(there, list)
    assert type(there[0]) is int
    assert there == [number]


@pytest.mark.guarantee("L10")
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js here")
def test_javascript_reads_and_writes_the_same(tmp_path: Path) -> None:
    """Our JSON values go through Node's codec and come back equal."""
    cases: list[object] = [
        None,
        True,
        0,
        -1,
        2**53,
        -(2**53) - 12345,
        10**40,
        1.5,
        -0.0,
        1e300,
        5e-324,
        math.inf,
        "",
        "äöü€😀",
        "\ud800",
        "a\udfff\ud800b😀",
        "\ud83d\ude00",
        [],
        [[1], {"a": [None]}],
        {},
        {"": 1, "__proto__": 2, "b": {"c": "\x00"}},
    ]
    source = (Path(plain.__file__).parent / "plain.js").read_text(encoding="utf-8")
    script = source + "\nconsole.log(encode(decode(JSON.parse(fs.readFileSync(0, 'utf8')))));\n"
    done = subprocess.run(
        ["node", "-e", script], input=msgspec.json.encode(tree_of(cases)), capture_output=True, check=True
    )
    trees = check(msgspec.json.decode(done.stdout), DEPTH)[1:]
    wrong = [
        (value, tree)
        for value, tree in zip(cases, trees, strict=True)
        if not equal(tree, value, 0.0) and value != "\ud83d\ude00"
    ]
    assert wrong == []
    # Two halves side by side are one character there, in every language of that family.
    assert trees[cases.index("\ud83d\ude00")] == "😀"
