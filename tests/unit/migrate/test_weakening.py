import textwrap

import pytest

from longwatch.migrate.checks.weakening import Finding, Kind, findings, suspicious
from longwatch.migrate.checks.weakening.form import form
from longwatch.migrate.queue.cards import Allowance

PYTHON = """
import unittest
import pytest

CASES = [(1, 2), (2, 3)]
EXPECTED = {"a": 1}

def check(value):
    assert value == 3

class TestK:
    def test_m(self):
        assert f(1) == 2
        assert f(2) == 3

class U(unittest.TestCase):
    def test_u(self):
        self.assertEqual(f(1), 2)

def test_raises():
    with pytest.raises(ValueError, match="no"):
        f(-1)

def test_expected():
    result = g()
    assert result == EXPECTED

@pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])
def test_cases(a, b):
    assert f(a) == b

@pytest.mark.parametrize("a, b", CASES)
def test_named(a, b):
    assert f(a) == b

def test_loop():
    for a, b in [(1, 2), (5, 6)]:
        assert f(a) == b

def test_smoke():
    f(1)
    f(2)

def test_helper():
    check(f(2))
"""


def changed(before: str, *pairs: tuple[str, str], path: str = "tests/test_a.py") -> set[Kind]:
    after = before
    for old, new in pairs:
        assert old in after, old
        after = after.replace(old, new, 1)
    return {finding.kind for finding in findings(path, before, after)}


M = "        assert f(1) == 2\n        assert f(2) == 3\n"
WEAKER = {
    "assertion deleted": (M, "        assert f(1) == 2\n", Kind.LOST_ASSERTION),
    "assertion loosened": ("assert f(1) == 2", "assert f(1)", Kind.LOST_ASSERTION),
    "assertion or true": ("assert f(1) == 2", "assert f(1) == 2 or True", Kind.LOST_ASSERTION),
    "expectation changed": ("assert f(1) == 2", "assert f(1) == 5", Kind.CHANGED_ASSERTION),
    "assertion commented out": (
        "        assert f(2) == 3",
        "        # assert f(2) == 3",
        Kind.LOST_ASSERTION,
    ),
    "assertion in a string": ("        assert f(2) == 3", '        "assert f(2) == 3"', Kind.LOST_ASSERTION),
    "unittest loosened": ("self.assertEqual(f(1), 2)", "self.assertTrue(f(1))", Kind.LOST_ASSERTION),
    "raises widened": (
        'pytest.raises(ValueError, match="no")',
        "pytest.raises(Exception)",
        Kind.LOST_ASSERTION,
    ),
    "raises without a match": (
        'pytest.raises(ValueError, match="no")',
        "pytest.raises(ValueError)",
        Kind.LOST_ASSERTION,
    ),
    "constant changed": ('EXPECTED = {"a": 1}', 'EXPECTED = {"a": 2}', Kind.CHANGED_ASSERTION),
    "result replaced": ("result = g()", 'result = {"a": 1}', Kind.LOST_ASSERTION),
    "helper loosened": ("assert value == 3", "assert value", Kind.LOST_ASSERTION),
    "helper call lost": ("    check(f(2))", "    f(2)", Kind.LOST_ASSERTION),
    "smoke lost": ("    f(1)\n    f(2)", "    f(1)", Kind.LOST_ASSERTION),
    "emptied": (M, "        pass\n", Kind.EMPTIED_TEST),
    "emptied to a docstring": (M, '        """Nothing."""\n', Kind.EMPTIED_TEST),
    "emptied to assert True": (M, "        assert True\n", Kind.EMPTIED_TEST),
    "emptied to an ellipsis": (M, "        ...\n", Kind.EMPTIED_TEST),
    "emptied smoke": ("    f(1)\n    f(2)", "    pass", Kind.EMPTIED_TEST),
    "deleted": ("    def test_m(self):\n" + M, "    x = 1\n", Kind.DELETED_TEST),
    "renamed away": ("def test_m(self)", "def m(self)", Kind.DELETED_TEST),
    "class renamed away": ("class TestK", "class K", Kind.DELETED_TEST),
    "base lost": ("class U(unittest.TestCase)", "class U", Kind.DELETED_TEST),
    "early return": (M, "        return\n" + M, Kind.UNREACHABLE),
    "early raise": (M, "        raise ValueError\n" + M, Kind.UNREACHABLE),
    "early skip": (M, "        pytest.skip('no')\n" + M, Kind.UNREACHABLE),
    "early exit": (M, "        os._exit(0)\n" + M, Kind.UNREACHABLE),
    "early return in both branches": (
        M,
        "        if x:\n            return\n        else:\n            return\n" + M,
        Kind.UNREACHABLE,
    ),
    "endless loop": (M, "        while True:\n            f(1)\n" + M, Kind.UNREACHABLE),
    "if False": (M, "        if False:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "if 0": (M, "        if 0:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "if not True": (M, "        if not True:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "if False and x": (M, "        if x and False:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "if TYPE_CHECKING": (M, "        if TYPE_CHECKING:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "else of True": (
        M,
        "        if True:\n            pass\n        else:\n" + textwrap.indent(M, "    "),
        Kind.UNREACHABLE,
    ),
    "while False": (M, "        while False:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "loop over nothing": (M, "        for _ in []:\n" + textwrap.indent(M, "    "), Kind.UNREACHABLE),
    "try and pass": (
        M,
        "        try:\n" + textwrap.indent(M, "    ") + "        except AssertionError:\n            pass\n",
        Kind.UNREACHABLE,
    ),
    "bare except": (
        M,
        "        try:\n" + textwrap.indent(M, "    ") + "        except:\n            pass\n",
        Kind.UNREACHABLE,
    ),
    "except several": (
        M,
        "        try:\n"
        + textwrap.indent(M, "    ")
        + "        except (KeyError, Exception):\n            print()\n",
        Kind.UNREACHABLE,
    ),
    "suppressed": (
        M,
        "        with contextlib.suppress(AssertionError):\n" + textwrap.indent(M, "    "),
        Kind.UNREACHABLE,
    ),
    "expected to fail": (
        M,
        "        with pytest.raises(AssertionError):\n" + textwrap.indent(M, "    "),
        Kind.UNREACHABLE,
    ),
    "return in finally": (
        M,
        "        try:\n            return\n        finally:\n            pass\n" + M,
        Kind.UNREACHABLE,
    ),
    "condition": (M, "        if os.environ.get('X'):\n" + textwrap.indent(M, "    "), Kind.CONDITIONAL),
    "loop over unknown": (M, "        for _ in y():\n" + textwrap.indent(M, "    "), Kind.CONDITIONAL),
    "inner function": (M, "        def inner():\n" + textwrap.indent(M, "    "), Kind.CONDITIONAL),
    "skip": ("    def test_m", "    @pytest.mark.skip\n    def test_m", Kind.SKIPPED_TEST),
    "skipif": (
        "    def test_m",
        "    @pytest.mark.skipif(True, reason='')\n    def test_m",
        Kind.SKIPPED_TEST,
    ),
    "xfail": ("    def test_m", "    @pytest.mark.xfail\n    def test_m", Kind.SKIPPED_TEST),
    "unittest skip": ("    def test_u", "    @unittest.skip('')\n    def test_u", Kind.SKIPPED_TEST),
    "expected failure": (
        "    def test_u",
        "    @unittest.expectedFailure\n    def test_u",
        Kind.SKIPPED_TEST,
    ),
    "flaky": ("    def test_m", "    @pytest.mark.flaky(reruns=9)\n    def test_m", Kind.SKIPPED_TEST),
    "class skip": ("class TestK", "@pytest.mark.skip\nclass TestK", Kind.SKIPPED_TEST),
    "module skip": ("CASES =", "pytestmark = pytest.mark.skip\nCASES =", Kind.SKIPPED_TEST),
    "module skip call": ("CASES =", "pytest.skip(allow_module_level=True)\nCASES =", Kind.SKIPPED_TEST),
    "importorskip": ("CASES =", "pytest.importorskip('nothing')\nCASES =", Kind.SKIPPED_TEST),
    "class mark": ("class TestK:", "class TestK:\n    pytestmark = pytest.mark.skip", Kind.SKIPPED_TEST),
    "class not collected": ("class TestK:", "class TestK:\n    __test__ = False", Kind.SKIPPED_TEST),
    "class with a constructor": (
        "class TestK:",
        "class TestK:\n    def __init__(self): pass",
        Kind.SKIPPED_TEST,
    ),
    "test rebound": ("CASES =", "test_smoke = None\nCASES =", Kind.SKIPPED_TEST),
    "test deleted later": ("    check(f(2))", "    check(f(2))\n\ndel test_smoke", Kind.SKIPPED_TEST),
    "load_tests": ("CASES =", "def load_tests(*_): return []\nCASES =", Kind.SKIPPED_TEST),
    "hook": ("CASES =", "def pytest_runtest_makereport(item): pass\nCASES =", Kind.SKIPPED_TEST),
    "redefined": ("def test_helper", "def test_smoke():\n    pass\n\ndef test_helper", Kind.EMPTIED_TEST),
    "case lost": ("[(1, 2), (3, 4)]", "[(1, 2)]", Kind.FEWER_CASES),
    "case changed": ("[(1, 2), (3, 4)]", "[(1, 2), (3, 5)]", Kind.FEWER_CASES),
    "case skipped": (
        "[(1, 2), (3, 4)]",
        "[(1, 2), (3, 4), pytest.param(5, 6, marks=pytest.mark.skip)]",
        Kind.SKIPPED_TEST,
    ),
    "cases computed": ("[(1, 2), (3, 4)]", "make()", Kind.FEWER_CASES),
    "named case lost": ("CASES = [(1, 2), (2, 3)]", "CASES = [(1, 2)]", Kind.FEWER_CASES),
    "parametrize lost": ('@pytest.mark.parametrize("a, b", CASES)\n', "", Kind.FEWER_CASES),
    "loop case lost": ("[(1, 2), (5, 6)]", "[(1, 2)]", Kind.FEWER_CASES),
    "mocked": (M, "        monkeypatch.setattr(m, 'f', lambda x: x + 1)\n" + M, Kind.MOCKED),
    "mocked by a decorator": ("    def test_m", "    @mock.patch('m.f')\n    def test_m", Kind.MOCKED),
    "wrapped": ("    def test_m", "    @noop\n    def test_m", Kind.WRAPPED),
    "generator": (M, M + "        yield\n", Kind.WRAPPED),
    "async": ("    def test_m", "    async def test_m", Kind.WRAPPED),
    "does not parse": ("def test_smoke():", "def test_smoke(:", Kind.UNPARSABLE),
    "null byte": ("def test_smoke():", "\0def test_smoke():", Kind.UNPARSABLE),
    "ends the run": ("    check(f(2))", "    check(f(2))\n    os._exit(0)", Kind.REACHES_INTO_TESTS),
    "atexit": ("CASES =", "atexit.register(x)\nCASES =", Kind.REACHES_INTO_TESTS),
}


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_python_test_is_found(name: str) -> None:
    old, new, kind = WEAKER[name]
    assert kind in changed(PYTHON, (old, new))


HARMLESS = {
    "nothing": ("", ""),
    "assertion added": (M, M + "        assert f(9)\n"),
    "assertions swapped": (M, "        assert f(2) == 3\n        assert f(1) == 2\n"),
    "message added": ("assert f(1) == 2", "assert f(1) == 2, 'why'"),
    "formatting": ("assert f(1) == 2", "assert (f( 1 )\n            == 2)"),
    "comment": (M, "        # why\n" + M),
    "docstring": (M, '        """Why."""\n' + M),
    "test added": ("def test_helper", "def test_new():\n    return\n\ndef test_helper"),
    "skipped test added": (
        "def test_helper",
        "@pytest.mark.skip\ndef test_new():\n    assert f(0)\n\ndef test_helper",
    ),
    "test renamed": ("def test_smoke", "def test_smoke_of_f"),
    "class renamed": ("class TestK", "class TestKey"),
    "helper renamed": (
        "def test_helper():\n    check(f(2))",
        "def test_helper():\n    check(f(2))\n    other()",
    ),
    "case added": ("[(1, 2), (3, 4)]", "[(1, 2), (3, 4), (5, 6)]"),
    "named case added": ("CASES = [(1, 2), (2, 3)]", "CASES = [(1, 2), (2, 3), (3, 4)]"),
    "loop case added": ("[(1, 2), (5, 6)]", "[(1, 2), (5, 6), (7, 8)]"),
    "import added": ("import pytest\n", "import pytest\nimport json\n"),
    "marker that runs": ("    def test_m", "    @pytest.mark.timeout(5)\n    def test_m"),
    "if True": (M, "        if True:\n" + textwrap.indent(M, "    ")),
    "with": (M, "        with open('x'):\n" + textwrap.indent(M, "    ")),
    "try and raise": (
        M,
        "        try:\n" + textwrap.indent(M, "    ") + "        except Exception:\n            raise\n",
    ),
    "name for an expectation": ("assert f(1) == 2", "two = 2\n        assert f(1) == two"),
    "result by another name": (
        "    result = g()\n    assert result == EXPECTED",
        "    setup()\n    result = g()\n    assert result == EXPECTED",
    ),
    "setup changed": ("    result = g()", "    result = g(cache=None)"),
    "raise in a with, then more": ("        f(-1)", "        raise ValueError('no')\n    assert 1 < f(2)"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_change_of_a_python_test_is_none(name: str) -> None:
    assert changed(PYTHON, HARMLESS[name]) == set()


@pytest.mark.guarantee("M22")
def test_a_deleted_file_is_found_and_a_new_one_is_not() -> None:
    assert findings("tests/test_a.py", PYTHON, None) == (
        Finding(Kind.DELETED_FILE, "tests/test_a.py", "", "the file is gone"),
    )
    assert findings("tests/test_a.py", None, "def test_a(): pass") == ()
    assert findings("tests/data.json", "{}", None)[0].kind is Kind.DELETED_FILE
    assert findings("tests/test_a.py", None, None) == ()


@pytest.mark.guarantee("M22")
def test_one_renamed_test_does_not_stand_for_two_deleted_ones() -> None:
    before = "def test_a():\n    assert f(1)\n\ndef test_b():\n    assert f(1)\n"
    after = "def test_c():\n    assert f(1)\n"
    assert [finding.kind for finding in findings("test_x.py", before, after)] == [Kind.DELETED_TEST]


@pytest.mark.guarantee("M22")
def test_a_finding_names_the_test_and_quotes_the_assertion() -> None:
    after = PYTHON.replace("assert f(2) == 3", "assert f(2)")
    (finding,) = findings("tests/test_a.py", PYTHON, after)
    assert finding.test == "TestK.test_m"
    assert "f(2) == 3" in finding.quote
    assert str(finding) == "tests/test_a.py: TestK.test_m: lost assertion: assert f(2) == 3"
    assert finding.allowed_by is Allowance.WEAKEN_TESTS


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(
    "text", ["(" * 100_000, "x = " + "-" * 50_000 + "1", "a" + ".b" * 30_000, "if 1:\n" * 5]
)
def test_a_file_too_deep_to_read_is_a_finding_and_no_crash(text: str) -> None:
    kinds = {finding.kind for finding in findings("test_x.py", "def test_a():\n    assert f(1)\n", text)}
    assert kinds & {Kind.UNPARSABLE, Kind.DELETED_TEST}


def test_an_old_version_that_nobody_could_read_proves_nothing() -> None:
    assert findings("test_x.py", "def (", "def test_a(): pass") == ()


JS = """
import { add } from '../src/add.js';
describe('add', () => {
  it('adds', () => {
    expect(add(1, 2)).toBe(3);
    expect(add(2, 2))
      .toBe(4);
  });
  it('throws', async () => {
    await expect(add('x')).rejects.toThrow('no (');
  });
  test.each([
    [1, 2],
    [3, 4],
  ])('each', (a, b) => { expect(a).toBeLessThan(b); });
});
"""
GO = """
package a

import "testing"

func TestAdd(t *testing.T) {
	tests := []struct{ a, b int }{
		{1, 2},
		{3, 4},
	}
	for _, c := range tests {
		if got := Add(c.a, 1); got != c.b {
			t.Errorf("got %d", got)
		}
	}
}

func TestOther(t *testing.T) {
	assert.Equal(t, 1, Other())
}
"""
RUST = """
#[test]
fn adds() {
    assert_eq!(
        add(1, 2),
        3,
    );
}

#[test]
#[should_panic(expected = "no")]
fn panics() {
    add(-1, 0);
}
"""
JAVA = """
class AddTest {
    @Test
    void adds() {
        assertEquals(3, Add.add(1, 2));
    }
    @Test(expected = IllegalStateException.class)
    public void throwsIt() {
        Add.add(-1, 0);
    }
}
"""
RUBY = """
describe Add do
  it "adds" do
    expect(add(1, 2)).to eq(3)
  end
  it "more" do
    expect(add(2, 2)).to eq(4)
  end
end
"""
CPP = """
TEST(Add, Adds) {
    EXPECT_EQ(add(1, 2), 3);
}
TEST(Add, More) {
    EXPECT_EQ(add(2, 2), 4);
}
"""
PHP = """<?php
class AddTest extends TestCase {
    public function testAdds() {
        $this->assertSame(3, add(1, 2));
    }
}
"""
BATS = """
@test "adds" {
  run add 1 2
  [ "$output" = 3 ]
}
"""

OTHERS = [
    ("a.test.js", JS, "    expect(add(1, 2)).toBe(3);\n", "", Kind.LOST_ASSERTION),
    ("a.test.js", JS, "toBe(3)", "toBeDefined()", Kind.LOST_ASSERTION),
    ("a.test.js", JS, ".toBe(4)", ".toBe(5)", Kind.CHANGED_ASSERTION),
    ("a.test.js", JS, "expect(add(1, 2)).toBe(3);", "// expect(add(1, 2)).toBe(3);", Kind.LOST_ASSERTION),
    ("a.test.js", JS, "expect(add(1, 2)).toBe(3);", "/* expect(add(1, 2)).toBe(3); */", Kind.LOST_ASSERTION),
    ("a.test.js", JS, "'no ('", "'yes ('", Kind.CHANGED_ASSERTION),
    ("a.test.js", JS, "expect(add(1, 2)).toBe(3);", "if (x) expect(add(1, 2)).toBe(3);", Kind.LOST_ASSERTION),
    ("a.test.js", JS, "    expect(add(1, 2))", "    return;\n    expect(add(1, 2))", Kind.UNREACHABLE),
    (
        "a.test.js",
        JS,
        "    expect(add(1, 2))",
        "    process.exit(0);\n    expect(add(1, 2))",
        Kind.UNREACHABLE,
    ),
    (
        "a.test.js",
        JS,
        "    expect(add(1, 2)).toBe(3);",
        "    try { expect(add(1, 2)).toBe(3); } catch (e) {}",
        Kind.UNREACHABLE,
    ),
    (
        "a.test.js",
        JS,
        "    expect(add(1, 2)).toBe(3);",
        "    if (false) {\n    expect(add(1, 2)).toBe(3);\n}",
        Kind.UNREACHABLE,
    ),
    ("a.test.js", JS, "it('adds'", "it.skip('adds'", Kind.SKIPPED_TEST),
    ("a.test.js", JS, "it('adds'", "xit('adds'", Kind.SKIPPED_TEST),
    ("a.test.ts", JS, "it('adds'", "it.only('adds'", Kind.SKIPPED_TEST),
    ("a.test.ts", JS, "describe('add'", "describe.skip('add'", Kind.SKIPPED_TEST),
    ("a.test.ts", JS, "it('throws', async", "it.todo('throws'); void (async", Kind.SKIPPED_TEST),
    ("a.test.ts", JS, "it('adds', () =>", "it('adds', { skip: true }, () =>", Kind.SKIPPED_TEST),
    ("a.test.ts", JS, "    [3, 4],\n", "", Kind.FEWER_CASES),
    ("a.test.js", JS, "it('adds', () => {", "const x = (() => {", Kind.DELETED_TEST),
    ("a_test.go", GO, "got != c.b", "got < 0", Kind.LOST_ASSERTION),
    ("a_test.go", GO, '			t.Errorf("got %d", got)\n', "", Kind.LOST_ASSERTION),
    (
        "a_test.go",
        GO,
        "	assert.Equal(t, 1, Other())",
        "	assert.NotNil(t, Other())",
        Kind.LOST_ASSERTION,
    ),
    ("a_test.go", GO, "	assert.Equal", "	return\n	assert.Equal", Kind.UNREACHABLE),
    ("a_test.go", GO, "	assert.Equal", '	t.Skip("no")\n	assert.Equal', Kind.SKIPPED_TEST),
    ("a_test.go", GO, "package a", "//go:build never\npackage a", Kind.SKIPPED_TEST),
    ("a_test.go", GO, "func TestOther", "func testOther", Kind.DELETED_TEST),
    ("a_test.go", GO, "		{3, 4},\n", "", Kind.FEWER_CASES),
    ("tests/a.rs", RUST, "        3,\n", "        4,\n", Kind.CHANGED_ASSERTION),
    ("tests/a.rs", RUST, "#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds", Kind.SKIPPED_TEST),
    ("tests/a.rs", RUST, "#[test]\nfn adds", "fn adds", Kind.DELETED_TEST),
    ("tests/a.rs", RUST, '#[should_panic(expected = "no")]', "#[should_panic]", Kind.LOST_ASSERTION),
    ("tests/a.rs", RUST, "    assert_eq!(", "    return;\n    assert_eq!(", Kind.UNREACHABLE),
    (
        "AddTest.java",
        JAVA,
        "assertEquals(3, Add.add(1, 2))",
        "assertNotNull(Add.add(1, 2))",
        Kind.LOST_ASSERTION,
    ),
    ("AddTest.java", JAVA, "    @Test\n    void", "    @Disabled\n    @Test\n    void", Kind.SKIPPED_TEST),
    ("AddTest.java", JAVA, "    @Test\n    void", "    void", Kind.DELETED_TEST),
    ("AddTest.java", JAVA, "expected = IllegalStateException", "expected = Exception", Kind.LOST_ASSERTION),
    ("add_spec.rb", RUBY, "to eq(3)", "to be_truthy", Kind.LOST_ASSERTION),
    ("add_spec.rb", RUBY, '  it "adds"', '  xit "adds"', Kind.SKIPPED_TEST),
    ("add_spec.rb", RUBY, "    expect(add(1", "    skip\n    expect(add(1", Kind.SKIPPED_TEST),
    ("add_spec.rb", RUBY, "    expect(add(1", "    # expect(add(1", Kind.EMPTIED_TEST),
    ("add_test.cpp", CPP, "EXPECT_EQ(add(1, 2), 3)", "EXPECT_TRUE(add(1, 2))", Kind.LOST_ASSERTION),
    ("add_test.cpp", CPP, "TEST(Add, Adds)", "TEST(Add, DISABLED_Adds)", Kind.SKIPPED_TEST),
    ("add_test.cpp", CPP, "    EXPECT_EQ(add(1", "    GTEST_SKIP();\n    EXPECT_EQ(add(1", Kind.SKIPPED_TEST),
    ("AddTest.php", PHP, "assertSame(3, add(1, 2))", "assertTrue(true)", Kind.LOST_ASSERTION),
    (
        "AddTest.php",
        PHP,
        "        $this->assert",
        "        $this->markTestSkipped();\n        $this->assert",
        Kind.SKIPPED_TEST,
    ),
    ("add.bats", BATS, '[ "$output" = 3 ]', '[ -n "$output" ]', Kind.LOST_ASSERTION),
    ("add.bats", BATS, "  run add", "  skip\n  run add", Kind.SKIPPED_TEST),
    (
        "tests/__snapshots__/a.snap",
        "exports[`a`] = `1`;\n\nexports[`b`] = `2`;\n",
        "`2`",
        "`3`",
        Kind.LOST_ASSERTION,
    ),
]


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(("path", "before", "old", "new", "kind"), OTHERS)
def test_a_weaker_test_of_another_language_is_found(
    path: str, before: str, old: str, new: str, kind: Kind
) -> None:
    assert kind in changed(before, (old, new), path=path)


@pytest.mark.parametrize(
    ("path", "before", "old", "new"),
    [
        ("a.test.js", JS, "describe('add'", "// why\ndescribe('add'"),
        ("a.test.js", JS, "  it('throws'", "  it('new', () => { return; });\n  it('throws'"),
        (
            "a.test.js",
            JS,
            "  it('throws'",
            "  it('new', () => {\n    if (x) {\n      return;\n    }\n    expect(1).toBe(1);\n  });\n  it('throws'",
        ),
        ("a.test.js", JS, "    expect(add(1, 2)).toBe(3);", "    expect(\n      add(1, 2)\n    ).toBe(3);"),
        ("a.test.js", JS, "it('adds'", "it('adds numbers'"),
        ("a.test.js", JS, "    [3, 4],\n", "    [3, 4],\n    [5, 6],\n"),
        ("a_test.go", GO, "func TestOther", "func TestNew(t *testing.T) {\n}\n\nfunc TestOther"),
        ("a_test.go", GO, "func TestOther", "func TestOtherThing"),
        ("tests/a.rs", RUST, "fn adds", "fn adds_numbers"),
        ("AddTest.java", JAVA, "void adds", "void addsNumbers"),
        ("add_spec.rb", RUBY, '  it "more"', '  it "new" do\n    expect(1).to eq(1)\n  end\n  it "more"'),
        ("add_test.cpp", CPP, "TEST(Add, More)", "TEST(Add, New) { EXPECT_EQ(1, 1); }\nTEST(Add, More)"),
        ("tests/data.json", '{"a": 1}', "1", "2"),
    ],
)
def test_a_harmless_change_of_another_language_is_none(path: str, before: str, old: str, new: str) -> None:
    assert changed(before, (old, new), path=path) == set()


REACHING = [
    ("a.py", "import pytest"),
    ("a.py", "from _pytest import runner"),
    ("a.py", "import unittest.mock"),
    ("a.py", "def f():\n    import pytest"),
    ("a.py", "importlib.import_module('pytest')"),
    ("a.py", "__import__('_pytest.runner')"),
    ("a.py", "def f():\n    os._exit(0)"),
    ("a.py", "atexit.register(f)"),
    ("a.py", "sys.exit(0)"),
    ("a.py", "raise SystemExit"),
    ("a.py", "if x:\n    exit()"),
    ("a.py", "sys.modules['x'] = y"),
    ("a.py", "sys.modules.pop('pytest')"),
    ("a.py", "sys.excepthook = f"),
    ("a.py", "builtins.len = f"),
    ("a.py", "setattr(builtins, 'len', f)"),
    ("a.py", "if os.environ.get('PYTEST_CURRENT_TEST'): x = 1"),
    ("a.py", "class A:\n    def __eq__(self, other):\n        return True"),
    ("a.py", "signal.signal(9, f)"),
    ("a.py", "from os import _exit as leave\nleave(0)"),
    ("a.py", "import os as system\nsystem._exit(0)"),
    ("a.py", "import posix\nposix._exit(0)"),
    ("a.py", "import os as system\ngetattr(system, '_ex' + 'it')(0)"),
    ("a.py", "vars(os)[name](0)"),
    ("a.py", "def pytest_runtest_makereport(item, call):\n    return forged"),
    ("a.py", "def load_tests(loader, tests, pattern):\n    return nothing"),
    ("a.py", "from _pytest import reports\nreports.TestReport.passed = True"),
    ("a.py", "os.__dict__['_ex' 'it'](0)"),
    ("a.py", "__import__('o' + 's')"),
    ("a.py", "exec(text)"),
    ("a.py", "for one in gc.get_objects(): pass"),
    ("a.py", "sys._getframe(3)"),
    ("a.py", "open('/proc/self/cmdline')"),
    ("a.py", "path.startswith('--junitxml=')"),
    ("a.py", "os.environ['LONGWATCH_CHECK']"),
    ("a.js", "process.exit(0);"),
    ("a.js", "process.on('exit', () => {});"),
    ("a.ts", "import { expect } from 'vitest';"),
    ("a.js", "const t = require('node:test');"),
    ("a.js", "if (process.env.JEST_WORKER_ID) x();"),
    ("a.js", "globalThis.expect = () => {};"),
    ("a.js", "assert.equal = () => {};"),
    ("a.go", 'import "testing"'),
    ("a.go", "if testing.Testing() {"),
    ("a.rs", "std::panic::set_hook(Box::new(|_| {}));"),
    ("a.rs", "if cfg!(test) {"),
    ("A.java", "import org.junit.jupiter.api.Test;"),
    ("A.java", "Runtime.getRuntime().halt(0);"),
    ("a.rb", "at_exit { exit! 0 }"),
    ("a.php", "register_shutdown_function('x');"),
    ("a.c", "_exit(0);"),
]


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(("path", "text"), REACHING)
def test_code_that_reaches_into_the_runner_is_found(path: str, text: str) -> None:
    (finding, *_) = suspicious(path, None, text)
    assert finding.kind is Kind.REACHES_INTO_TESTS


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "a.py",
            "import os\n\ndef main():\n    sys.exit(1)\n\nif __name__ == '__main__':\n    sys.exit(main())",
        ),
        ("a.py", "def __eq__(self, other):\n    return self.x == other.x"),
        ("a.py", "from . import unittest"),
        ("a.py", "getattr(self, f'on_{name}')()"),
        ("a.py", "getattr(os, 'sched_yield', None)"),
        ("a.py", "__import__('json')"),
        ("a.py", "from pathlib import Path as P\nP('x').exists()"),
        ("a.py", "def ("),
        ("a.js", "function main() {\n  process.exit(1);\n}"),
        ("a.js", "// process.exit(0)\nconst a = require('fs');"),
        ("a.rs", "#[cfg(test)]\nmod tests {}"),
        ("a.go", 'import "fmt"'),
        ("a.txt", "import pytest"),
    ],
)
def test_ordinary_code_reaches_into_nothing(path: str, text: str) -> None:
    assert suspicious(path, None, text) == ()


def test_what_was_there_before_is_not_reported() -> None:
    assert suspicious("a.py", "import pytest", "import pytest\nx = 1") == ()
    assert suspicious("a.py", "import pytest", "import pytest\nos._exit(0)") != ()


@pytest.mark.guarantee("M22")
def test_each_kind_says_what_a_card_must_allow() -> None:
    allowed = {kind: Finding(kind, "a", "", "").allowed_by for kind in Kind}
    assert allowed[Kind.DELETED_TEST] is allowed[Kind.DELETED_FILE] is Allowance.DELETE_TESTS
    assert allowed[Kind.SKIPPED_TEST] is Allowance.SKIP_TESTS
    assert allowed[Kind.CHANGED_ASSERTION] is Allowance.CHANGE_TESTS
    assert allowed[Kind.LOST_ASSERTION] is allowed[Kind.REACHES_INTO_TESTS] is Allowance.WEAKEN_TESTS


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("assert f(1) == 2", "assert f(1) == 3", True),
        ("assert shop.total([1]) == 2", "assert prices.total([1, 2]) == 3", True),
        ("self.assertEqual(f('a'), 2)", "self.assertEqual(f('b'), 2)", True),
        ("expect(add(1, 2)).toBe(3)", "expect(add(1, 2)).toBe(4)", True),
        ("assert f(1) == 2", "assert f(1) is not None", False),
        ("assert f(1) == 2", "assert f(1) in (2, 3)", False),
        ("assert f(1) == 2", "assert 2 == 2", False),
        ("assert f(1) == 2", "assert f(1) == f(1)", False),
        ("assert result == expected", "assert result == result", False),
        ("assert f(1) == [1]", "assert f(1) == []", False),
        ("assert f(1) == 'a'", "assert f(1) == ''", False),
        ("pytest.raises(ValueError)", "pytest.raises(Exception)", False),
        ("self.assertEqual(f(1), 2)", "self.assertTrue(f(1))", False),
        ("expect(add(1, 2)).toBe(3)", "expect(add(1, 2)).toBeDefined()", False),
    ],
)
def test_a_changed_expectation_is_told_from_a_lost_one(before: str, after: str, same: bool) -> None:
    assert (form(before) == form(after)) is same


@pytest.mark.guarantee("M22")
def test_one_new_assertion_takes_the_place_of_one_old_one_only() -> None:
    before = "def test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n"
    after = "def test_a():\n    assert f(1) == 5\n"
    kinds = [finding.kind for finding in findings("test_a.py", before, after)]
    assert sorted(kinds) == [Kind.CHANGED_ASSERTION, Kind.LOST_ASSERTION]


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_b.py", "def test_b():\n    os._exit(0)"),
        ("tests/test_b.py", "import atexit\natexit.register(f)"),
        ("tests/test_b.py", "raise SystemExit(0)"),
        ("tests/test_b.py", "pytest_plugins = ['shop.plugin']"),
        ("tests/__init__.py", "def load_tests(loader, tests, pattern):\n    return tests"),
        ("tests/test_b.py", "from _pytest import reports\nreports.TestReport.passed = True"),
        ("tests/test_b.py", "import _pytest.runner\n_pytest.runner.x = 1"),
        ("test/b.test.js", "process.exit(0);"),
    ],
)
def test_a_new_test_must_not_end_the_run(path: str, text: str) -> None:
    (finding, *_) = findings(path, None, text)
    assert finding.kind is Kind.REACHES_INTO_TESTS


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_b.py", "import pytest\nimport signal\nsignal.signal(2, f)\nos.kill(pid, 9)"),
        ("test/b.test.js", "const test = require('node:test');\nconst assert = require('node:assert');"),
    ],
)
def test_a_new_test_may_use_its_runner_and_signals(path: str, text: str) -> None:
    assert findings(path, None, text) == ()
