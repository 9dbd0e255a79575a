"""Answers that share a process with their tests: right ones pass, cheats and hogs fail, and the machine's load decides nothing."""

import sys

import msgspec
import pytest
from curricula import PUBLIC

from longwatch.learn import recordings
from longwatch.learn.grading import Bounds, extract, grade, grade_all, identity, scripts
from longwatch.learn.grading.identity import version
from longwatch.learn.grading.known import known
from longwatch.learn.grading.languages import RUNTIMES, SCRIPTS
from longwatch.learn.sources import multipl_e
from longwatch.learn.tasks import Language, Verdict

VERDICTS = PUBLIC.parent / "recorded/verdicts"
SMALL = Bounds(
    cpu_s=1, wall_s=1.5, memory_bytes=256 * 1024 * 1024, tmp_bytes=4 * 1024 * 1024, frame_bytes=100_000
)
EVERY_JAVA = 5
"""A Java program takes a second: all 158 are run by `make e2e`."""

CHEATS = {
    Language.BASH: [
        "exit 0\n",
        "    echo 42; exit 0 }\nexit 0\ntrue() {\n",
        "    cat <&8; exit 0\n",
        "    echo 63\n}\nset() {\n    :\n",
        "    echo 63\n}\ntrap 'exit 0' ERR\ntrue() {\n",
        "    echo 63\n}\nshopt -s extdebug\ntrue() {\n",
        "    cat program.sh >&2; kill -9 $PPID $$\n",
    ],
    Language.PERL: [
        "    return 63;\n}\nexit 0;\n",
        "    print 'ok!'; exit 0;\n}\n",
        "    return 63;\n}\nsub eq_deeply { return 1; }\n",
        "    open(my $own, '<', $0); print <$own>; exit 0;\n}\n",
    ],
    Language.RUBY: [
        "  exit!(0)\nend\n",
        "  63\nend\nat_exit { exit!(0) }\n",
        "  63\nend\nclass Test::Unit::TestCase\n  def assert_equal(*)\n  end\nend\n",
        "  puts File.read(__FILE__)\n  exit!(0)\nend\n",
    ],
    Language.PHP: [
        "    return 63;\n}\n?>\n",
        "    readfile('php://fd/8'); exit(0);\n}\n",
        "    exit(0);\n}\n",
        "    return 63;\n}\nset_exception_handler(function ($e) { exit(0); });\n",
        "    echo file_get_contents(__FILE__); exit(0);\n}\n",
    ],
    Language.LUA: [
        "  os.exit(0)\nend\n",
        "  return 63\nend\npackage.loaded['luaunit'] = { assertEquals = function() end, LuaUnit = { run = function() return 0 end } }\n",
        "  return setmetatable({}, { __eq = function() return true end })\nend\n",
    ],
    Language.CPP: [
        "    exit(0);\n",
        "    _Exit(0);\n",
        "    return 63;\n}\n#define assert(x)\nlong unused() {\n    return 0;\n",
    ],
    Language.JAVA: [
        "        System.exit(0);\n        return 63;\n",
        "        Runtime.getRuntime().halt(0);\n        return 63;\n",
    ],
    Language.RUST: ["    std::process::exit(0)\n"],
    Language.GO: ["    panic(nil)\n}\n", "    return 63\n}\n\nfunc TestMain(m *testing.M) {\n}\n"],
    Language.R: ["    quit(status = 0)\n}\n", "    return(63)\n}\nstopifnot <- function(...) NULL\n"],
    Language.TYPESCRIPT: ["  return 'no number';\n}\n", "  require('process').exit(0);\n}\n"],
    Language.CSHARP: ["        Environment.Exit(0); return 63;\n", '        return "no number";\n'],
}
HOGS = {
    Language.BASH: {
        "it loops": ("    while :; do :; done\n", ""),
        "it fills the folder": ("    yes | head -c 100000000 >full || exit 3\n    wc -c <full\n", ""),
        "it forks for ever": ("    again() { again & again & }\n    again; while :; do :; done\n", ""),
    },
    Language.PERL: {
        "it takes all memory": ("    my @all; push @all, 'x' x 10000000 while 1;\n}\n", ""),
        "it prints for ever": ("    print 'more' while 1;\n}\n", "more than 100000 bytes"),
        "it prints what is no text": ('    print "\\xff\\xfe\\x00"; return 63;\n}\n', "status 1"),
    },
}


CHAT = {
    Language.JAVASCRIPT: "function add(x, y) {\n  return x + y;\n}",
    Language.TYPESCRIPT: "export const add = (x: number, y: number): number => {\n    return x + y;\n};\nconsole.log(add(2, 3));",
    Language.JAVA: "import java.util.*;\n\npublic class Main {\n    public static long add(long x, long y) {\n        return x + y;\n    }\n\n    public static void main(String[] args) {\n        System.out.println(add(2, 3));\n    }\n}",
    Language.CPP: "#include <iostream>\n\nlong add(long x, long y) {\n    return x + y;\n}\n\nint main() {\n    return 0;\n}",
    Language.GO: 'package main\n\nimport "fmt"\n\nfunc add(x int, y int) int {\n    return x + y\n}\n\nfunc main() {\n    fmt.Println(add(1, 2))\n}',
    Language.RUST: "fn add(x: isize, y: isize) -> isize {\n    x + y\n}\n\nfn main() {\n}",
    Language.RUBY: "def add(x, y)\n  x + y\nend\n\nputs add(2, 3)",
    Language.PHP: "<?php\nfunction add($x, $y) {\n    return $x + $y;\n}\n\necho add(2, 3);\n?>",
    Language.PERL: "use strict;\nsub add {\n    my ($x, $y) = @_;\n    return $x + $y;\n}\nprint add(2, 3);",
    Language.LUA: "function add(x, y)\n  return x + y\nend\n\nprint(add(2, 3))",
    Language.BASH: "#!/bin/bash\n\nadd() {\n  echo $(($1 + $2))\n}\n\nadd 2 3",
    Language.R: "add <- function(x, y) {\n  return(x + y)\n}\nprint(add(2, 3))",
    Language.CSHARP: "using System;\n\npublic class Program\n{\n    public static long Add(long x, long y)\n    {\n        return x + y;\n    }\n}",
}
"""How chat models answer a task that asks for `add`: with a whole program, its own imports and a call of it."""
HELPED = {
    Language.TYPESCRIPT: "function add(x: number, y: number): number {\n  return plus(x, y);\n}\n\nfunction plus(a: number, b: number): number {\n  return a + b;\n}\n\nconsole.log(add(1, 2));",
    Language.JAVA: "public class Main {\n    private static long plus(long a, long b) {\n        return minus(a, -b);\n    }\n\n    public static long add(long x, long y) {\n        return plus(x, y);\n    }\n\n    private static long minus(long a, long b) {\n        return a - b;\n    }\n\n    public static void main(String[] args) {\n        System.out.println(add(2, 3));\n    }\n}",
    Language.CPP: "#include <iostream>\nusing namespace std;\n\nlong plus_(long a, long b);\n\nlong add(long x, long y) {\n    return plus_(x, y);\n}\n\nlong plus_(long a, long b) {\n    return a + b;\n}\n\nint main() {\n    cout << add(2, 3) << endl;\n}",
    Language.GO: 'package main\n\nimport (\n\t"fmt"\n\t"math"\n\t"os"\n)\n\nfunc add(x int, y int) int {\n\treturn plus(x, y)\n}\n\nfunc plus(a int, b int) int {\n\treturn int(math.Round(float64(a + b)))\n}\n\nfunc main() {\n\tfmt.Println(add(1, 2))\n\tos.Exit(0)\n}',
    Language.RUST: 'fn add(x: isize, y: isize) -> isize {\n    plus(x, y)\n}\n\nfn plus(a: isize, b: isize) -> isize {\n    a + b\n}\n\nfn main() {\n    println!("{}", add(1, 2));\n}',
    Language.RUBY: "def add(x, y)\n  plus(x, y)\nend\n\ndef plus(a, b)\n  a + b\nend\n\nif __FILE__ == $0\n  puts add(2, 3)\nend",
    Language.PHP: "<?php\nfunction add($x, $y) {\n    return plus($x, $y);\n}\n\nfunction plus($a, $b) {\n    return $a + $b;\n}\n\nassert(add(2, 3) === 5);",
    Language.PERL: "sub add {\n    my ($x, $y) = @_;\n    return plus($x, $y);\n}\n\nsub plus {\n    return $_[0] + $_[1];\n}\n1;",
    Language.LUA: "function add(x, y)\n  return plus(x, y)\nend\n\nfunction plus(a, b)\n  return a + b\nend\n\nprint(add(2, 3))",
    Language.BASH: '#!/bin/bash\n\nadd() {\n  plus "$1" "$2"\n}\n\nplus() {\n  echo $(($1 + $2))\n}\n\nadd "$@"',
    Language.R: "add <- function(x, y) {\n  return(plus(x, y))\n}\n\nplus <- function(a, b) {\n  a + b\n}\n\ncat(add(2, 3))",
    Language.CSHARP: "using System;\n\nclass Problem\n{\n    static long Plus(long a, long b)\n    {\n        return Minus(a, -b);\n    }\n\n    public static long Add(long x, long y)\n    {\n        return Plus(x, y);\n    }\n\n    static long Minus(long a, long b) { return a - b; }\n\n    static void Main()\n    {\n        Console.WriteLine(Add(2, 3));\n    }\n}",
}
"""The same with functions beside it, before it and after it."""


def here(language):
    lacking = scripts.missing(language)
    return pytest.mark.skipif(bool(lacking), reason=f"{', '.join(lacking)} not here")


def each(cases):
    return [
        pytest.param(language, value, marks=here(language)) for language in cases for value in cases[language]
    ]


def graded(answer, task, bounds=None):
    (seen,) = grade_all([(answer, task)], bounds=bounds)
    return seen


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(("language", "answer"), each(CHEATS))
def test_no_cheat_passes(language, answer):
    seen = grade(answer, known(language)[0].task)
    assert (seen.verdict, bool(seen.why)) == (Verdict.FAIL, True), seen


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(("language", "name"), each(HOGS))
def test_a_hog_fails_within_its_bounds(language, name):
    answer, why = HOGS[language][name]
    seen = graded(answer, known(language)[0].task, SMALL)
    assert seen.verdict is Verdict.FAIL, seen
    assert why in seen.why


@pytest.mark.guarantee("L10")
def test_many_short_processes_have_one_limit_together():
    one = "bash -c 'for ((i = 0; i < 150000; i++)); do :; done'"
    answer = f"    for n in 1 2 3 4 5 6 7 8; do {one}; done\n    echo 42\n"
    task = known(Language.BASH)[0].task
    assert grade(answer, task, bounds=Bounds(cpu_s=60, wall_s=120.0)).verdict is Verdict.PASS
    seen = grade(answer, task, bounds=Bounds(cpu_s=1, wall_s=120.0))
    assert seen.verdict is Verdict.FAIL
    assert "its 1 s of CPU time" in seen.why


@pytest.mark.skipif(not (PUBLIC / "multipl-e").exists(), reason="MultiPL-E is not here")
@pytest.mark.guarantee("L22")
@pytest.mark.parametrize(
    ("language", "answer"),
    each({one: [CHAT[one], *([HELPED[one]] if one in HELPED else [])] for one in CHAT}),
)
def test_what_a_chat_model_says_passes_the_tests_of_the_benchmark(language, answer):
    (task,) = (one for one in multipl_e.load(language, PUBLIC) if one.problem == "HumanEval.53")
    seen = grade(extract(f"Sure:\n```{language}\n{answer}\n```\nIt adds.", language), task)
    assert seen.verdict is Verdict.PASS, seen


@pytest.mark.guarantee("L10", "L23")
def test_what_is_not_installed_is_our_own_trouble_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr(scripts, "BIN", "/nowhere")
    seen = grade(known(Language.GO)[0].answer, known(Language.GO)[0].task)
    assert seen.verdict is Verdict.INFRA
    assert "apt-get install golang-go" in seen.why


@pytest.mark.guarantee("L10")
def test_tests_that_nobody_knows_are_our_own_trouble():
    task = known(Language.LUA)[0].task
    odd = msgspec.structs.replace(task, tests=msgspec.structs.replace(task.tests, code="print('done')"))
    seen = grade("  return 42\nend\n", odd)
    assert seen.verdict is Verdict.INFRA
    assert "do not end as the benchmark's do" in seen.why


def test_no_answer_depends_on_a_program_that_the_authors_did_not_have():
    task = known(Language.BASH)[0].task
    assert grade('    echo "2 * $1" | bc\n', task).verdict is Verdict.FAIL
    assert grade('    awk "BEGIN { print 2 * $1 }"\n', task).verdict is Verdict.PASS


@pytest.mark.guarantee("L22", "L29")
def test_a_toolchains_version_is_part_of_the_binding(monkeypatch):
    before = identity([Language.BASH]), identity([Language.PERL])
    module = sys.modules["longwatch.learn.grading.identity"]
    monkeypatch.setattr(module, "version", lambda one: "6.0" if one is Language.BASH else version(one))
    assert identity([Language.BASH]) != before[0]
    assert identity([Language.PERL]) == before[1]


def test_every_language_names_what_it_needs():
    assert set(RUNTIMES) == set(Language)
    assert set(SCRIPTS) == set(Language) - {Language.PYTHON, Language.JAVASCRIPT}
    assert all(runtime.packages and runtime.programs for runtime in RUNTIMES.values())


def recorded(language, name):
    """Answers of a 7B model and what its authors saw of them."""
    path = VERDICTS / f"qwen2.5-coder-7b-{name}.json"
    return recordings.read(path.read_bytes(), path.name, multipl_e.load(language, PUBLIC))


@pytest.mark.skipif(not VERDICTS.exists(), reason="the recorded verdicts are not here")
@pytest.mark.guarantee("L10", "L22")
@pytest.mark.parametrize(
    ("language", "name", "every", "count"),
    [
        (Language.JAVASCRIPT, "js", 1, 161),
        pytest.param(Language.JAVA, "java", EVERY_JAVA, 158, marks=here(Language.JAVA)),
        pytest.param(
            Language.JAVA,
            "java",
            1,
            158,
            marks=[here(Language.JAVA), pytest.mark.long, pytest.mark.timeout(1500)],
        ),
    ],
)
def test_the_verdicts_on_recorded_answers_are_those_that_were_recorded(language, name, every, count):
    items = recorded(language, name)
    assert len(items) == count
    chosen = items[::every]
    found = list(grade_all([(one.answer, one.task) for one in chosen]))
    wrong = [
        one for one, was in zip(found, chosen, strict=True) if (one.verdict is Verdict.PASS) != was.passed
    ]
    assert wrong == []
    assert {one.verdict for one in found} == {Verdict.PASS, Verdict.FAIL}
