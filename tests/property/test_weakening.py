import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.migrate.checks.weakening import Kind, findings, suspicious

EXPRESSIONS = st.sampled_from(["f(1) == 2", "g(x)", "x in y", "not z", "a.b == [1, 2]", "f(2) == 'é'"])
BODIES = st.lists(EXPRESSIONS, min_size=1, max_size=4)
FILES = st.dictionaries(st.sampled_from(["test_a", "test_b", "test_c"]), BODIES, min_size=1)


def written(tests: dict[str, list[str]]) -> str:
    return "\n".join(
        f"def {name}():\n" + "".join(f"    assert {text}\n" for text in body) for name, body in tests.items()
    )


@given(tests=FILES)
@pytest.mark.guarantee("M22")
def test_the_same_tests_written_differently_are_no_weaker(tests: dict[str, list[str]]) -> None:
    text = written(tests)
    assert findings("test_x.py", text, "# a comment\n\n" + ast.unparse(ast.parse(text))) == ()


@given(tests=FILES, data=st.data())
@pytest.mark.guarantee("M22")
def test_any_lost_assertion_is_found(tests: dict[str, list[str]], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tests)))
    at = data.draw(st.integers(0, len(tests[name]) - 1))
    fewer = {**tests, name: tests[name][:at] + tests[name][at + 1 :] or ["True"]}
    assert findings("test_x.py", written(tests), written(fewer))


@given(tests=FILES, data=st.data())
@pytest.mark.guarantee("M22")
def test_any_deleted_test_is_found(tests: dict[str, list[str]], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tests)))
    after = {other: body for other, body in tests.items() if other != name}
    assert Kind.DELETED_TEST in {
        finding.kind for finding in findings("test_x.py", written(tests), written(after))
    }


@given(tests=FILES, more=FILES)
@pytest.mark.guarantee("M22")
def test_new_tests_and_assertions_are_always_welcome(
    tests: dict[str, list[str]], more: dict[str, list[str]]
) -> None:
    after = {
        **{f"{name}_new": body for name, body in more.items()},
        **{n: [*b, "new()"] for n, b in tests.items()},
    }
    assert findings("test_x.py", written(tests), written(after)) == ()


@given(
    path=st.sampled_from(
        [
            "a_test.py",
            "a.test.ts",
            "a_test.go",
            "a.rs",
            "ATest.java",
            "a_spec.rb",
            "a.cpp",
            "a.php",
            "a.bats",
            "a.cs",
        ]
    ),
    before=st.text(max_size=80),
    after=st.one_of(st.none(), st.text(max_size=80)),
)
def test_no_text_makes_it_fail(path: str, before: str, after: str | None) -> None:
    findings(path, before, after)
    suspicious(path, before, after or "")
    assert findings(path, before, before) == ()
