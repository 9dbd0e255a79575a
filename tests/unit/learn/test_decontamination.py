import ast

import msgspec
import pytest
from curricula import PUBLIC, generated, task

from longwatch.learn.decontamination import Index, Near
from longwatch.learn.normalised import code_key, words
from longwatch.learn.sources import humaneval, mbpp
from longwatch.learn.tasks import Language, Split

pytestmark = pytest.mark.skipif(not PUBLIC.exists(), reason="the public data are not here")

CLOSE = """
def any_near_pair(values: list, limit: float) -> bool:
    # another comment
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            if i != j:
                gap = abs(left - right)
                if gap < limit:
                    return True
    return False
"""
SUM_BELOW = "function sumBelow(list, bound) {\n  let sum = 0;\n  for (const x of list) if (x < bound) sum += x;\n  return sum;\n}"
RENAMED = "function total(xs, k) { /* all */ let t = 0; for (const v of xs) if (v < k) t += v; return t }"


@pytest.fixture(scope="module")
def audits():
    return humaneval.load(PUBLIC)


@pytest.fixture(scope="module")
def index(audits):
    return Index(audits)


def only(audits, name):
    return next(one for one in audits if one.id == name)


@pytest.mark.guarantee("L4")
def test_a_paraphrased_task_with_renamed_variables_is_found_by_its_solution(index):
    found = task(
        "x", prompt="Tell whether some two values lie nearer together than a limit.", reference=CLOSE
    )
    assert index.near(found) == Near("HumanEval.0", "solution")


@pytest.mark.guarantee("L4")
def test_a_changed_line_does_not_hide_a_solution(index):
    longer = CLOSE.replace("    return False", "    print(len(values))\n    return False")
    near = index.near(task("x", prompt="Near?", reference=longer))
    assert near == Near("HumanEval.0", "solution in part")


@pytest.mark.guarantee("L4")
def test_every_prompt_is_found_without_its_solution_in_another_case_and_frame(audits, index):
    for one in audits:
        shouted = one.prompt.upper().replace(",", " ; ").replace("_", " ")
        assert index.near(task("x", prompt=f"Please solve this!\n{shouted}", reference="")) is not None, (
            one.id
        )


@pytest.mark.guarantee("L4")
def test_every_solution_with_other_names_is_found(audits, index):
    missed = [
        one.id
        for one in audits
        if index.near(task("x", prompt="Do it.", reference=renamed(one.reference))) is None
    ]
    assert len(missed) <= 12, missed  # programs of one short expression, which are in every program


def renamed(code: str) -> str:
    tree = ast.parse(code)
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in own:
            node.arg = f"other_{node.arg}"
        if isinstance(node, ast.Name) and node.id in own:
            node.id = f"other_{node.id}"
    return ast.unparse(tree)


@pytest.mark.guarantee("L4")
def test_a_renamed_javascript_solution_is_found():
    index = Index(
        [task("audit", Split.AUDIT, language=Language.JAVASCRIPT, prompt="Sum them.", reference=SUM_BELOW)]
    )
    near = index.near(task("x", language=Language.JAVASCRIPT, prompt="Add.", reference=RENAMED))
    assert near == Near("audit", "solution")
    other = (
        RENAMED.replace("v < k", "v > k").replace("t += v", "t *= v - 1").replace("let t = 0", "let t = 1")
    )
    assert index.near(task("x", language=Language.JAVASCRIPT, prompt="Add.", reference=other)) is None


def test_the_generated_curriculum_is_not_swept_away(index):
    tasks = generated(300)
    assert sum(index.near(one) is not None for one in tasks) < 6


@pytest.mark.guarantee("L4")
def test_repeated_problems_inside_mbpp_are_seen():
    index = Index(mbpp.evaluation(PUBLIC))
    rows = [one for row in mbpp.Mbpp(PUBLIC).rows(0, 974) for one in row.tasks]
    near = {one.id: index.near(one) for one in rows}
    assert near["mbpp.4.python"] == Near("mbpp.496.python", "prompt")
    assert 50 < sum(one is not None for one in near.values()) < 150


def test_code_that_says_nothing_is_nobodys():
    index = Index(
        [task("audit", Split.AUDIT, prompt="Add two.", reference="def size(x):\n    return len(x)\n")]
    )
    assert index.near(task("x", prompt="Other words.", reference="def f(a):\n    return len(a)\n")) is None
    assert index.near(task("x", prompt="add: TWO", reference="")) == Near("audit", "prompt")


def test_rows_of_numbers_in_examples_are_nobodys():
    numbers = ", ".join(map(str, range(30)))
    index = Index(
        [task("audit", Split.AUDIT, prompt=f"Sort [{numbers}] upwards and say how long it took you to do so")]
    )
    assert index.near(task("x", prompt=f"Reverse this: [{numbers}]", reference="")) is None


def test_a_reference_that_does_not_parse_is_compared_as_words(index):
    assert index.near(task("x", prompt="Broken.", reference="def broken(:\n")) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("def f(a):\n    return a[0]", "def g(b: list) -> int:\n    'Says.'\n    return b[0]", True),
        ("def f(a):\n    return len(a)", "def f(a):\n    return sum(a)", False),
        ("def f(a):\n    return a > 1", "def f(a):\n    return a > 2", False),
        ("def f(a, b):\n    return a - b", "def f(a, b):\n    return b - a", False),
        ("def f(a):\n    return a.x", "def f(a):\n    return a.y", False),
        ("import re\ndef f(a):\n    return a", "def f(a):\n    return a", True),
    ],
)
def test_code_keys(one, other, same):
    assert (code_key(Language.PYTHON, one) == code_key(Language.PYTHON, other)) is same


def test_words():
    assert words("Write `sumOf_all(x1)`!\nReply with only the code in a ```python block.") == (
        "write", "sum", "of", "all", "x1",
    )  # fmt: skip


def test_the_digest_is_of_prompts_and_solutions_in_any_order(audits):
    assert Index(audits).digest == Index(audits[::-1]).digest
    changed = msgspec.structs.replace(audits[0], prompt="other")
    assert Index([changed, *audits[1:]]).digest != Index(audits).digest
