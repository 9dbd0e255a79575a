"""Known programs of each language, by which a runtime proves itself here before it judges (L23): one passes, two fail.

They are built as the benchmark's are and load the libraries that its tests load, so that what is missing shows.
"""

from collections.abc import Mapping

import msgspec

from longwatch.learn.tasks import Case, Cases, Language, OneFile, Program, Split, Task, Verdict

NAME = "double"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, its task, and the verdict on it."""

    answer: str
    task: Task
    verdict: Verdict


class _Text(msgspec.Struct, frozen=True):
    """Parts of a program in one language. `{}` in the body is what the value is multiplied by."""

    given: str
    body: str
    code: str


_TEXTS: Mapping[Language, _Text] = {
    Language.TYPESCRIPT: _Text(
        "// It doubles.\nfunction double(value: number): number {\n",
        "  const factor: number = {};\n  return factor * value;\n}\n",
        "declare var require: any;\nconst assert = require('node:assert');\n\n"
        "function test() {\n  let candidate = double;\n  assert.deepEqual(candidate(21),42);\n}\n\ntest();",
    ),
    Language.JAVA: _Text(
        "import java.util.*;\nimport org.javatuples.*;\nclass Problem {\n    // It doubles.\n"
        "    public static long double_(long value) {\n",
        "        return {} * value;\n",
        "    }\n    public static void main(String[] args) {\n    assert(double_(21l) == (42l));\n"
        "    assert(Pair.with(1, 2).equals(Pair.with(1, 2)));\n    }\n\n}\n",
    ),
    Language.CPP: _Text(
        "#include<assert.h>\n#include<bits/stdc++.h>\n// It doubles.\nlong double_(long value) {\n",
        "    return {} * value;\n",
        "}\nint main() {\n    auto candidate = double_;\n    assert(candidate((21)) == (42));\n}\n",
    ),
    Language.GO: _Text(
        'package double_test\n\nimport (\n    "testing"\n    "fmt"\n)\n\n// It doubles.\nfunc double(value int) int {\n',
        "    return {} * value\n}\n",
        "func TestDouble(t *testing.T) {\n  candidate := double\n"
        '  if fmt.Sprintf("%v", candidate(21)) != "42" {\n    t.Errorf("got %v", candidate(21))\n  }\n}\n',
    ),
    Language.RUST: _Text(
        "/// It doubles.\nfn double(value: isize) -> isize {\n",
        "    {} * value\n",
        "}\n\nfn main() {\n    let candidate = double;\n    assert_eq!(candidate(21), 42);\n}\n",
    ),
    Language.RUBY: _Text(
        "# It doubles.\ndef double(value)\n",
        "  {} * value\nend\n",
        "require 'test/unit'\nclass TestHumanEval < Test::Unit::TestCase\n  def test_double\n"
        "    candidate = method(:double)\n    assert_equal(42, candidate.call(21))\n  end\nend\n",
    ),
    Language.PHP: _Text(
        "<?php\n// It doubles.\nfunction double($value) {\n",
        "    return {} * (ctype_digit(strval($value)) ? $value : 0);\n}\n",
        "function candidate(...$args) {\n    return double(...$args);\n}\n\nfunction test(): void {\n"
        '    if (candidate(21) !== 42) { throw new Exception("Test failed!"); }\n}\n\ntest();',
    ),
    Language.PERL: _Text(
        "# It doubles.\nsub double {\n    my($value) = @_;\n",
        "    return {} * $value;\n}\n",
        "use Test::Deep;\n\n\nsub testhumaneval {\n    my $candidate = \\&double;\n"
        '        if(eq_deeply($candidate->(21),42)) {\n        print "ok!" }else{\n        exit 1;\n        }\n}\n\n'
        "testhumaneval();",
    ),
    Language.LUA: _Text(
        "-- It doubles.\nlocal function double(value)\n",
        "  return {} * value\nend\n",
        "lu = require('luaunit')\n\nfunction test_humaneval()\nlocal candidate = double\n"
        "    lu.assertEquals(candidate(21), 42)\nend\n\nos.exit(lu.LuaUnit.run())",
    ),
    Language.BASH: _Text(
        "#!/bin/bash\n# It doubles.\n#\n# $1 is an integer\ndouble() {\n",
        "    echo \"$1\" | awk '{ print {} * $1 }'\n",
        '}\n\ncandidate() {\n    double "$@"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate "21") = "42" ]]\n}\n\nrun_test',
    ),
    Language.R: _Text(
        "# It doubles.\ndouble_ <- function(value) {\n",
        "    return({} * value)\n}\n",
        "test_humaneval <- function() {\n    candidate <- double_\n"
        "    stopifnot(isTRUE(all.equal(candidate(21), 42)))\n}\ntest_humaneval()",
    ),
    Language.CSHARP: _Text(
        "using System;\nusing System.Numerics;\nusing System.Diagnostics;\nusing System.Collections.Generic;\n"
        "using System.Linq;\nclass Problem {\n    // It doubles.\n    public static long Double_(long value) {\n",
        "        return (long)(new BigInteger({}) * value);\n",
        "    }\n    public static void Main(string[] args) {\n    Debug.Assert(Double_((21L)) == (42L));\n    }\n\n}\n",
    ),
}
_NAMES = {
    Language.JAVA: "double_",
    Language.CPP: "double_",
    Language.R: "double_",
    Language.CSHARP: "Double_",
}
_FUNCTIONS = {
    Language.PYTHON: "def double(value):\n    return {} * value\n",
    Language.JAVASCRIPT: "const double = (value) => {} * value;\n",
}
_PROGRAMS = {
    Language.PYTHON: "def check(candidate):\n    assert candidate(21) == 42\n",
    Language.JAVASCRIPT: "require('assert').strictEqual(candidate(21), 42);\n",
}


def known(language: Language) -> tuple[Known, ...]:
    """Return the known programs of a language: right ones, wrong ones and empty ones."""
    text = _TEXTS.get(language)
    body = text.body if text else _FUNCTIONS[language]
    tests: tuple[Cases | Program | OneFile, ...] = (
        (OneFile(given=text.given, code=text.code),)
        if text
        else (Cases(cases=(Case((21,), 42),)), Program(code=_PROGRAMS[language]))
    )
    answers = ((body.replace("{}", "2"), Verdict.PASS), (body.replace("{}", "3"), Verdict.FAIL))
    return tuple(
        Known(answer=answer, task=_task(language, one), verdict=verdict)
        for one in tests
        for answer, verdict in (*answers, ("", Verdict.FAIL))
    )


def _task(language: Language, tests: Cases | Program | OneFile) -> Task:
    return Task(
        id=f"built-in-{language}",
        problem="built-in",
        repository="built-in",
        family="built-in",
        language=language,
        split=Split.AUDIT,
        prompt=f"Write a function {NAME}(value).",
        entry_point=_NAMES.get(language, NAME),
        tests=tests,
    )
