"""One file of what is given, an answer and the tests: a completion goes on, a whole function takes the head's place."""

import gzip

import msgspec
import pytest
from curricula import PUBLIC

from longwatch.learn.grading import joining
from longwatch.learn.grading.known import known
from longwatch.learn.grading.languages import NONCE, SCRIPTS
from longwatch.learn.sources import multipl_e, pinned
from longwatch.learn.tasks import Language, OneFile

JAVA = OneFile(
    given="import java.util.*;\nclass Problem {\n    // It adds.\n    // >>> add((1l), (2l))\n"
    "    public static long add(long a, long b) {\n",
    code="    }\n    public static void main(String[] args) {\n    assert(add(1l, 2l) == 3l);\n    }\n\n}\n",
    stops=("\n    }\n",),
)
GO = OneFile(
    given='package add_test\n\nimport (\n    "testing"\n    "fmt"\n)\n\n// It adds.\nfunc add(a int, b int) int {\n',
    code="func TestAdd(t *testing.T) {\n}\n",
    stops=("\nfunc",),
)
RUBY = OneFile(given="# It adds.\ndef add(a, b)\n", code="require 'test/unit'\n")


def join(answer, tests, language):
    return joining.join(answer, tests, "add", SCRIPTS[language])


@pytest.mark.guarantee("L22")
def test_a_completion_goes_on_and_is_cut_where_the_benchmark_cuts_it():
    joined = join("        return a + b;\n    }\n    public static void other() {}\n", JAVA, Language.JAVA)
    assert joined == JAVA.given + "        return a + b;" + "\n" + JAVA.code


@pytest.mark.guarantee("L22")
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_whole_function_takes_the_place_of_the_head_and_keeps_its_imports(indent):
    method = f"{indent}public static long add(long x,\n{indent}        long y) {{\n{indent}    return x + y;\n{indent}}}\n"
    answer = f"import java.math.BigInteger;\nclass Solution {{\n{method}\n{indent}static int unused;\n}}\n"
    joined = join(answer, JAVA, Language.JAVA)
    assert joined.startswith("import java.math.BigInteger;\nimport java.util.*;\nclass Problem {\n")
    assert joined.count("long add(") == 1
    assert f"{method}\n    public static void main" in joined
    assert "Solution" not in joined
    assert "unused" not in joined
    assert joined.count("{") == joined.count("}")


def test_what_a_file_begins_with_already_is_not_said_again():
    answer = 'package main\n\nimport "fmt"\n\nimport (\n    "sort"\n)\n\nfunc twice(a int) int { return 2 * a }\n\nfunc add(a, b int) int {\n\treturn a + b\n}\n\nfunc main() {}\n'
    joined = join(answer, GO, Language.GO)
    assert joined.count("package") == joined.count("import") == 1
    assert "func twice" in joined
    assert "func main" not in joined
    assert joined.endswith("\treturn a + b\n}\n" + GO.code)


def test_a_function_that_is_written_at_the_margin_ends_at_its_own_end():
    body = "public static long add(long a, long b) {\nif (a > 0) {\n    return a + b;\n} else {\n    return b + a;\n}\n}"
    assert joining.definition(f"{body}\nmain();\nif (x) {{\n}}", "}") == body
    brace = body.replace("a > 0", "a > '{'")
    assert joining.definition(f"{brace}\nmain();", "}") == brace


def test_what_was_given_may_be_said_again():
    given = "#include<assert.h>\nunion U{\n    bool operator==(long f) {\n        return true;\n    }\n};\n"
    tests = OneFile(given=f"{given}// It adds.\nU add(long a, long b) {{\n", code="}\nint main() {\n}\n")
    answer = f"{tests.given}    return U();\n}}\n"
    assert joining.trick(answer, tests.given, SCRIPTS[Language.CPP]) == ""
    assert join(answer, tests, Language.CPP).count("union U") == 1
    own = answer.replace("long f", "U f")
    assert joining.trick(own, tests.given, SCRIPTS[Language.CPP]) == "operator=="


def test_a_function_in_one_line_and_one_that_never_ends():
    assert join("def add(a, b) a + b end\nputs add(1, 2)\n", RUBY, Language.RUBY) == (
        "# It adds.\ndef add(a, b) a + b end\nrequire 'test/unit'\n"
    )
    cut = "def add(a, b)\n  if a then\n    b\n  end\n"
    assert cut in join(cut, RUBY, Language.RUBY)


@pytest.mark.parametrize("language", SCRIPTS)
def test_whole_answers_and_completions_make_the_same_program_in_every_language(language):
    right = known(language)[0]
    tests, script = right.task.tests, SCRIPTS[language]
    head = tests.given[tests.given.rstrip().rfind("\n", 0, len(tests.given.rstrip())) + 1 :]
    if language is Language.PERL:
        head = "sub double {\n    my($value) = @_;\n"
    closed = (
        "" if right.answer.rstrip().endswith(("}", "end")) else " " * (len(head) - len(head.lstrip())) + "}\n"
    )
    whole = joining.join(f"Of course.\n{head}{right.answer}{closed}", tests, right.task.entry_point, script)
    going_on = joining.join(right.answer, tests, right.task.entry_point, script)
    # The words of the model stand where nothing is dropped; but for those, and for empty lines, nothing differs.
    lines = [line.strip() for line in whole.replace("Of course.", "").split("\n") if line.strip()]
    assert lines == [line.strip() for line in going_on.split("\n") if line.strip()]


@pytest.mark.guarantee("L10")
def test_the_nonce_stands_in_the_tests_and_never_where_an_answer_asks_for_it():
    told = joining.witnessed(JAVA, SCRIPTS[Language.JAVA], "secret")
    assert told.code.count("secret") == 1
    joined = join(f'System.out.println("{NONCE}");', told, Language.JAVA)
    assert joined.count("secret") == 1
    with pytest.raises(joining.UnknownTestsError, match="do not end"):
        joining.witnessed(OneFile(given="", code="nothing"), SCRIPTS[Language.JAVA], "secret")
    with pytest.raises(joining.UnknownTestsError, match="no head of add"):
        join("", OneFile(given="class Problem {", code=""), Language.JAVA)


@pytest.mark.skipif(not (PUBLIC / "multipl-e").exists(), reason="MultiPL-E is not here")
@pytest.mark.guarantee("L22")
@pytest.mark.parametrize("language", SCRIPTS)
def test_every_task_of_the_benchmark_is_understood(language):
    tasks = multipl_e.load(language, PUBLIC)
    assert len(tasks) == len({task.id for task in tasks}) > 150
    for task in tasks:
        told = joining.witnessed(task.tests, SCRIPTS[language], "secret")
        assert (
            "secret" in joining.join("", told, task.entry_point, SCRIPTS[language])
            or NONCE in SCRIPTS[language].run
        )
        assert joining.trick(task.tests.given, task.tests.given, SCRIPTS[language]) == ""
        assert task.prompt.startswith("Complete this ")
    assert set(pinned.MULTIPL_E) == {Language.JAVASCRIPT, *SCRIPTS}


@pytest.mark.skipif(not (PUBLIC / "humaneval-x").exists(), reason="HumanEval-X is not here")
@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", [Language.CPP, Language.GO, Language.JAVA, Language.RUST])
def test_no_honest_solution_is_taken_for_a_trick(language):
    rows = gzip.decompress((PUBLIC / f"humaneval-x/humaneval_{language}.jsonl.gz").read_bytes()).splitlines()
    assert len(rows) == 164
    for row in map(msgspec.json.decode, rows):
        solution = row["prompt"] + row["canonical_solution"]
        assert joining.trick(solution, row["prompt"], SCRIPTS[language]) == "", row["task_id"]
