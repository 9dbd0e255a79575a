"""What a test file of any other language asserts, read line by line. Pure.

There is no parser here for each language: comments are taken out, and what looks like a test, an assertion or a marker
is found by its usual form. An assertion is the whole statement, so that a changed expectation shows.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from longwatch.migrate.checks.weakening.python_assertions import Assertion
from longwatch.migrate.checks.weakening.python_model import Function


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """How tests look in one language."""

    tests: re.Pattern[str]
    """Group `name` is the test's name."""
    assertions: re.Pattern[str]
    markers: re.Pattern[str]
    comment: str = "//"
    blocks: bool = True
    """`/* */` are comments."""


class TextModel(msgspec.Struct, frozen=True):
    """One file: its tests as functions, and the marks and table rows of the whole file."""

    functions: Mapping[str, Function]
    markers: tuple[str, ...]
    rows: tuple[str, ...]
    """Lines of tables of cases."""


_STRING = r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
_MAX_STATEMENT = 4000

_JAVASCRIPT = Language(
    tests=re.compile(
        r"(?<![\w.])(?:it|test|specify|Deno\.test)(?:\.\w+)*\s*\(\s*(?P<name>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`)"
    ),
    assertions=re.compile(
        r"(?<![\w.])(?:expect|assert\w*|should|t\.(?:is|deepEqual|equal|true|ok|same|throws)|chai\.\w+)\b|\.should\b|\.rejects\b"
    ),
    markers=re.compile(
        r"(?<![\w])(?:x(?:it|test|describe|specify)|f(?:it|describe))\b|\.(?:skip|only|todo|failing|fails|skipIf|runIf|concurrent\.skip)\b"
        r"|\b(?:skip|todo|only|retries|retry)\s*:|\bthis\.(?:skip|retries)\b|\bpending\(|\bexpect\.(?:assertions\(0|hasAssertions)"
    ),
)
_GO = Language(
    tests=re.compile(
        r"\bfunc\s+(?P<name>(?:Test|Benchmark|Fuzz|Example)\w*)\s*\(|\bt\.Run\(\s*(?P<sub>\"[^\"]*\")"
    ),
    assertions=re.compile(
        r"\b(?:t|b|tb|f)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\b|\b(?:assert|require|is|qt|c)\.\w+|\bcmp\.Diff|// (?:Unordered o|O)utput:"
    ),
    markers=re.compile(
        r"\b(?:t|b|tb)\.(?:Skip|Skipf|SkipNow)\b|//go:build\b|// \+build\b|\btesting\.Short\("
    ),
)
_RUST = Language(
    tests=re.compile(
        r"#\[(?:[\w:]*test|rstest)[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)"
    ),
    assertions=re.compile(
        r"\b(?:debug_)?assert\w*!|\bpanic!|\bunreachable!|\bprop_assert\w*!|#\[should_panic[^\]]*\]|\.unwrap\(\)|\.expect\("
    ),
    markers=re.compile(r"#\[ignore\b|#\[cfg(?:_attr)?\(|#!\[cfg\("),
)
_JAVA = Language(
    tests=re.compile(
        r"@(?:\w*Test|Theory|Property|TestFactory)\b[\w\s@.,(){}=\"'<>\[\]]*?\b(?:void|fun|def)\s+(?P<name>\w+|`[^`]+`)"
    ),
    assertions=re.compile(
        r"\b(?:assert\w*|verify\w*|fail|expect\w*|shouldBe|shouldThrow|should\w*)\b\s*[({<]|\b(?:expected|thrown)\s*="
    ),
    markers=re.compile(
        r"@(?:Disabled|Ignore|EnabledIf|DisabledIf|DisabledOn|EnabledOn)\w*|\bassume\w+\s*\(|\benabled\s*=\s*false"
    ),
)
_CSHARP = Language(
    tests=re.compile(
        r"\[(?:Fact|Theory|Test|TestMethod|TestCase|DataTestMethod)[^\]]*\](?:\s*\[[^\]]*\])*\s*public\s+[\w<>\s]+?\s(?P<name>\w+)\s*\("
    ),
    assertions=re.compile(r"\bAssert\.\w+|\bShould\w*\(|\.Should\(|\.Verify\("),
    markers=re.compile(r"\bSkip\s*=|\[(?:Ignore|Explicit)|Assert\.(?:Ignore|Inconclusive)|\bSkip\.If"),
)
_RUBY = Language(
    tests=re.compile(
        r"^\s*(?:def\s+(?P<name>test_\w+)|(?:it|specify|scenario|test)\s*\(?\s*(?P<sub>'[^']*'|\"[^\"]*\"))",
        re.MULTILINE,
    ),
    assertions=re.compile(
        r"\b(?:assert\w*|refute\w*|expect|flunk|must_\w+|wont_\w+|should)\b|\braise_error\b"
    ),
    markers=re.compile(
        r"^\s*(?:x(?:it|describe|context|specify)|f(?:it|describe|context)|skip|pending)\b|\b(?:skip|pending):",
        re.MULTILINE,
    ),
    comment="#",
    blocks=False,
)
_PHP = Language(
    tests=re.compile(r"\bfunction\s+(?P<name>test\w*)\s*\(|\b(?:it|test)\(\s*(?P<sub>'[^']*'|\"[^\"]*\")"),
    assertions=re.compile(r"\b(?:assert\w*|expect\w*|fail)\s*\("),
    markers=re.compile(r"\bmarkTest(?:Skipped|Incomplete)\b|->(?:skip|todo)\(|@(?:group|requires)\b"),
)
_CPP = Language(
    tests=re.compile(
        r"\b(?P<name>(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SECTION|SCENARIO|BOOST_AUTO_TEST_CASE|START_TEST)\s*\([^)]*\))|\bvoid\s+(?P<sub>test_?\w+)\s*\("
    ),
    assertions=re.compile(
        r"\b(?:EXPECT|ASSERT|CHECK|REQUIRE|BOOST|TEST_ASSERT|ck_assert|g_assert|XCTAssert|static_assert|assert)\w*\s*\("
    ),
    markers=re.compile(
        r"\bGTEST_SKIP\b|\bDISABLED_\w+|\[!(?:mayfail|shouldfail)\]|\[\.\w*\]|\bTEST_IGNORE\b|\bXCTSkip\w*|\bdisabled\b"
    ),
)
_SWIFT = Language(
    tests=re.compile(r"\bfunc\s+(?P<name>test\w*)\s*\(|@Test\b[^{]*?\bfunc\s+(?P<sub>\w+)"),
    assertions=re.compile(r"\bXCT(?:Assert\w*|Fail|Unwrap)\b|#(?:expect|require)\b"),
    markers=re.compile(r"\bXCTSkip\w*|\.disabled\(|\bwithKnownIssue\b"),
)
_SCRIPT = Language(
    tests=re.compile(
        r"^\s*(?:@test\s+(?P<name>'[^']*'|\"[^\"]*\")|(?:test|property)\s+(?P<sub>\"[^\"]*\")|subtest\s+(?P<third>['\"]\w[^'\"]*['\"])|(?P<fourth>test_?\w+)\s*\(\))",
        re.MULTILINE,
    ),
    assertions=re.compile(
        r"^\s*(?:\[\[?\s|test\s+[-\"$!]|assert\w*|refute\w*|ok\b|is\b|isnt\b|like\b|is_deeply|cmp_ok|diff\b|cmp\b|grep\s+-q)|\|\|\s*(?:exit|fail|return)",
        re.MULTILINE,
    ),
    markers=re.compile(
        r"^\s*(?:skip|set \+e|pending)\b|@tag\s+:?skip|\bskip:|\bSKIP\b|\|\|\s*true\b", re.MULTILINE
    ),
    comment="#",
    blocks=False,
)

_BY_SUFFIX: Mapping[str, Language] = {
    **dict.fromkeys(
        ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "coffee"), _JAVASCRIPT
    ),
    "go": _GO,
    "rs": _RUST,
    **dict.fromkeys(("java", "kt", "kts", "scala", "groovy"), _JAVA),
    "cs": _CSHARP,
    "rb": _RUBY,
    "php": _PHP,
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "h", "hh", "hpp", "m", "mm", "zig", "d"), _CPP),
    "swift": _SWIFT,
    **dict.fromkeys(("sh", "bash", "bats", "t", "pl", "pm", "ex", "exs", "lua", "r", "jl"), _SCRIPT),
}

_DEAD = re.compile(
    r"\bif\s*\(?\s*(?:false|0|!1|!true|nil|null|1\s*==\s*0)\s*\)?\s*(?:\{|then|$)|^\s*#if\s+(?:0|false)\b"
    r"|\bwhile\s*\(?\s*(?:false|0)\s*\)?\s*(?:\{|$)|\bfalse\s*&&|\bprocess\.(?:exit|reallyExit|abort)\b|\bos\.Exit\b"
    r"|\bprocess::(?:exit|abort)\b|\bSystem\.exit\b|\b_exit\s*\(|\bexit!|\bexit\s*\(?\s*0\b|\bEnvironment\.Exit\b",
    re.MULTILINE,
)
"""What stands before an assertion that is never reached."""
_SWALLOWING = re.compile(
    r"\bcatch\s*(?:\([^)]*\))?\s*\{\s*\}|\.catch\(\s*\(?\w*\)?\s*=>\s*(?:\{\s*\}|null|undefined)\s*\)"
    r"|\brescue\b[^\n]*\n\s*(?:nil\s*\n\s*)?end\b|\bexcept\b[^\n]*pass\b|\brecover\(\)|\bcatch_unwind\b"
)
"""What stands behind an assertion whose failure is swallowed."""
_RETURN = re.compile(r"^([ \t]*)return\s*(?:0|nil|null|true|undefined|Ok\(\(\)\))?\s*;?[ \t]*$", re.MULTILINE)
_HEADER = re.compile(r"(?:if|for|unless|while|\}\s*else|match|switch)\b.*[{:]|.*\bthen|(?:if|unless)\b.*")
_ROW = re.compile(r"[{\[(].*[}\])],?|[\w\"'].*=>.*,")
_CALL = re.compile(r"\b(?!async\b|function\b|fn\b|func\b|if\b)\w+!?\s*\(")
_CONTINUES = re.compile(r"\s*[.?&|]")
_PIECE = re.compile(rf"{_STRING}|[()\[\]{{}};\n]")
FILE = "<file>"


def language_of(path: str) -> Language | None:
    """Return the language by the file's suffix; `None` for data and for what isn't known."""
    return _BY_SUFFIX.get(path.rpartition(".")[2].lower())


def read(text: str, language: Language) -> TextModel:
    """Return the model. Never fails: what it doesn't understand it doesn't see."""
    code = _without_comments(text, language)
    return TextModel(
        functions={found.name: found for found in _functions(code, language)},
        markers=tuple(_line_of(code, match) for match in language.markers.finditer(code)),
        rows=tuple(line.strip() for line in code.split("\n") if _ROW.fullmatch(line.strip())),
    )


def _functions(code: str, language: Language) -> Iterator[Function]:
    """Yield a function a test: its code goes to the beginning of the next one."""
    matches = list(language.tests.finditer(code))
    first = matches[0].start() if matches else len(code)
    yield _function(FILE, code[:first], "", language)
    seen: Counter[str] = Counter()
    ends = (*(match.start() for match in matches), len(code))[1:]
    for match, end in zip(matches, ends, strict=False):  # without a match there is one end too many
        name = _name(match)
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} #{seen[name]}"
        yield _function(unique, code[match.end() : end], match[0], language)


def _function(name: str, body: str, header: str, language: Language) -> Function:
    return Function(
        name=name,
        is_test=name != FILE,
        assertions=tuple(_assertions(body, header, language)),
        calls=(),
        body="".join(body.split()),
        trivial=name != FILE and _CALL.search(body) is None,
        decorators=(),
        parameters={},
        loops=(),
        mocks=(),
        form=frozenset(),
    )


def _name(match: re.Match[str]) -> str:
    return next(
        " ".join(group.split()).strip("'\"`") for group in match.groupdict().values() if group is not None
    )


def _line_of(code: str, match: re.Match[str]) -> str:
    at = match.end() - 1
    begin, end = code.rfind("\n", 0, at) + 1, code.find("\n", at)
    return code[begin : end if end >= 0 else len(code)].strip()[:_MAX_STATEMENT]


def _without_comments(text: str, language: Language) -> str:
    block = r"/\*.*?(?:\*/|\Z)" if language.blocks else r"(?!)"
    # Go's build tags and expected outputs are comments that count.
    slashes = r"//(?!go:build| (?:\+build|Output:|Unordered output:))[^\n]*"
    line = slashes if language.comment == "//" else r"(?<![\w$\{\\])#(?![\[!{])[^\n]*"
    token = re.compile(rf"(?P<string>{_STRING}|`(?:\\.|[^`\\])*`)|(?P<comment>{block}|{line})", re.DOTALL)
    return token.sub(lambda match: match[0] if match["string"] is not None else " ", text)


def _assertions(body: str, header: str, language: Language) -> Iterator[Assertion]:
    dead = min((match.start() for match in _DEAD.finditer(body)), default=len(body))
    dead = min(dead, _first_return(body))
    swallowed = max((match.start() for match in _SWALLOWING.finditer(body)), default=-1)
    for mark in re.finditer(r"#\[should_panic[^\]]*\]|\bexpected\s*=\s*[\w.]+", header):
        yield Assertion("".join(mark[0].split()), 0, effective=True)
    end = 0
    for match in language.assertions.finditer(body):
        if match.start() >= end:
            end = _end_of_statement(body, match.end())
            text = "".join(body[_begin_of_statement(body, match.start()) : end].split())
            yield Assertion(text, 0, effective=swallowed < match.start() < dead)


def _first_return(body: str) -> int:
    """Return where the test itself returns; a deeper `return` belongs to a condition or an inner function."""
    lines = [line for line in body.split("\n")[1:] if line.strip()]
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return min(
        (match.start() for match in _RETURN.finditer(body) if len(match[1]) <= indent), default=len(body)
    )


def _begin_of_statement(body: str, at: int) -> int:
    """Return the start of the statement, and of the condition right above it: Go's assertions are conditions."""
    line = body.rfind("\n", 0, at) + 1
    inner = max(body.rfind(letter, line, at) for letter in "{};")
    if inner >= 0 or line == 0:
        return max(inner + 1, line)
    above = body.rfind("\n", 0, line - 1) + 1
    return above if _HEADER.fullmatch(body[above:line].strip()) else line


def _end_of_statement(body: str, at: int) -> int:
    depth = 0
    limit = min(len(body), at + _MAX_STATEMENT)
    for piece in _PIECE.finditer(body, at, limit):
        letter = piece[0]
        if letter in {"(", "[", "{"}:
            depth += 1
        elif letter in {")", "]", "}"}:
            depth -= 1
        if depth < 0 or (depth == 0 and _stops(letter, body, piece.end())):
            return piece.start()
    return limit


def _stops(letter: str, body: str, after: int) -> bool:
    return letter == ";" or (letter == "\n" and not _CONTINUES.match(body, after))
