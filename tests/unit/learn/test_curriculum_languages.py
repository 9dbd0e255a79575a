"""The generated problems in the languages whose tests stand in one file with the answer: asked, tested and solved there."""

import json
import subprocess
from collections import Counter
from functools import cache
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwatch.learn import splits
from longwatch.learn.curriculum import basic, derived, pipeline
from longwatch.learn.curriculum.catalogue import FAMILIES, all_templates
from longwatch.learn.curriculum.dialects import DIALECTS
from longwatch.learn.curriculum.generated import LANGUAGES, Generated
from longwatch.learn.curriculum.literals import NoLiteralError, literal
from longwatch.learn.curriculum.parts import NUMBER_FINISHES
from longwatch.learn.curriculum.putting import UnsayableError, put
from longwatch.learn.curriculum.render import build, task
from longwatch.learn.curriculum.shapes import Shape, shape_of
from longwatch.learn.curriculum.solutions.table import SOLUTIONS, classic
from longwatch.learn.curriculum.template import LEAST_CASES, Problem
from longwatch.learn.curriculum.words import TEXT_FINISHES
from longwatch.learn.grading import grade, grade_all, screen, scripts
from longwatch.learn.grading.screening import Finding
from longwatch.learn.tasks import Case, Language, OneFile, Split, Task, Verdict

RUBY, PHP, LUA, TYPESCRIPT = Language.RUBY, Language.PHP, Language.LUA, Language.TYPESCRIPT
NASTY = (
    "",
    " ",
    'it\'s "quoted"',
    "back\\slash\\",
    "\\n is two characters",
    "#{1 + 1} #$stdout #@a ##",
    "$text {$text} ${text} $$ $",
    "`tick` %s %d @x @k",
    "a\nb\tc\rd\x00e\x07f\x1b",
    "<?php ?> */ // -- [[x]] ]]",
    "\\u{41}\\x41\\101\\0",
)
UNICODE = ("é", "Żuk \U0001d4b3", "\u2028\u00a0\ufeff", "e\u0301")


def here(language):
    lacking = scripts.missing(language)
    return pytest.mark.skipif(bool(lacking), reason=f"{', '.join(lacking)} not here")


EACH = [pytest.param(language, marks=here(language)) for language in DIALECTS]


def problem(name, parameters, sentence, **references):
    return Problem(
        name=name,
        parameters=parameters,
        sentence=sentence,
        references={Language(language): code for language, code in references.items()},
        calls=(),
    )


def as_task(asked, cases, language):
    shown = put(asked, cases, language)
    return Task(
        id=f"{asked.name}.{language}",
        problem=asked.name,
        repository=asked.name,
        family="lists",
        language=language,
        split=Split.TRAIN,
        prompt=shown.prompt,
        entry_point=shown.entry_point,
        tests=shown.tests,
        reference=shown.reference,
    )


@cache
def built_at(place):
    template = all_templates()[place]
    return build(template, place % template.size, Random(place))


def said(place, language):
    """The task of the template at a place in a language, if there is one."""
    template, built = all_templates()[place], built_at(place)
    try:
        return built and task(
            template, built, language, name=f"{template.family}.{template.name}", row=str(place)
        )
    except UnsayableError:
        return None


@cache
def chosen(language, classics, compositions):
    """In each family every so-and-so-manieth classic and composition, beginning with the first."""
    places: Counter[tuple[str, bool]] = Counter()
    found = []
    for place, template in enumerate(all_templates()):
        kind = (template.family, "." in template.name)
        if places[kind] % (compositions if kind[1] else classics) == 0:
            found.append(said(place, language))
        places[kind] += 1
    return tuple(one for one in found if one)


def not_passed(tasks):
    grades = grade_all((one.reference, one) for one in tasks)
    return [(one.task, one.why) for one in grades if one.verdict is not Verdict.PASS]


@pytest.mark.guarantee("L1", "L2")
@pytest.mark.parametrize("language", EACH)
def test_references_of_every_family_pass_in_the_sandbox(language):
    found = chosen(language, 100, 4000)
    families = [[one for one in found if one.family == family] for family in FAMILIES]
    assert all(len(some) == 2 for some in families)
    # A compiler takes seconds: there a classic and a composition by turns, and all in the long test.
    by_turns = [some[place % 2] for place, some in enumerate(families)]
    assert not_passed(by_turns if language is TYPESCRIPT else found) == []


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.guarantee("L1", "L2")
@pytest.mark.parametrize("language", EACH)
def test_every_classic_and_many_compositions_pass_in_the_sandbox(language):
    tasks = chosen(language, 1, 100)
    assert len(tasks) > 300
    assert not_passed(tasks) == []


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("language", SOLUTIONS)
def test_every_part_and_every_classic_has_a_solution(language):
    solutions = SOLUTIONS[language]
    items = (*basic.ITEMS, *derived.ITEMS)
    kinds = {"number", "word", "character"}
    assert set(solutions.items) == {f"{one.family}.{one.name}" for one in items}
    assert set(solutions.keeps) == {f"{kind}.{one.name}" for kind in kinds for one in pipeline._KEEPS[kind]}
    assert set(solutions.eaches) == {f"{kind}.{one.name}" for kind in kinds for one in pipeline._EACHES[kind]}
    assert set(solutions.finishes) == {
        *(f"number.{one.name}" for one in NUMBER_FINISHES),
        *(f"text.{one.name}" for one in TEXT_FINISHES),
    }
    hand_written = [one for one in all_templates() if "." not in one.name]
    assert len(hand_written) == sum(map(len, FAMILIES.values()))
    assert [one.name for one in hand_written if language not in classic(one.name, one.constants(0))] == []


@pytest.mark.guarantee("L1")
def test_how_much_of_the_curriculum_there_is_in_each_language():
    places = [place for place in range(0, len(all_templates()), 47) if built_at(place)]
    share = {
        language: sum(bool(said(place, language)) for place in places) / len(places) for language in DIALECTS
    }
    assert share[TYPESCRIPT] == share[RUBY] == 1
    assert share[PHP] > 0.95
    assert share[LUA] > 0.85


ADD_ONE = problem(
    "add_one",
    ("numbers",),
    "Return the list of `numbers`, each greater by one.",
    javascript="function addOne(numbers) {\n  return numbers.map(n => n + 1);\n}\n",
    ruby="def add_one(numbers)\n  numbers.map { |n| n + 1 }\nend\n",
    php="function addOne($numbers) {\n    return array_map(fn($n) => $n + 1, $numbers);\n}\n",
    lua="local function add_one(numbers)\n  local all = {}\n  for i, n in ipairs(numbers) do\n    all[i] = n + 1\n  end\n  return all\nend\n",
)
ADDED = tuple(
    Case(([*call],), [n + 1 for n in call]) for call in ([1], [], [-5, 0], [2, 2], [7, 8, 9], [10**6])
)
WRONG = {
    TYPESCRIPT: [
        "function addOne(numbers: number[]): number[] {\n  return numbers.map(n => n + 2);\n}\n",
        "function addOne(numbers: number[]): number[] {\n  return [2];\n}\n",
        "function addOne(numbers: number[]): number[] {\n  numbers.push(1);\n  return numbers;\n}\n",
        "function addOne(numbers: number[]): any {\n  return numbers.map(n => String(n + 1));\n}\n",
        "function addOne(numbers: number[]): string {\n  return numbers.map(n => n + 1);\n}\n",
        "const seen: number[] = [];\nfunction addOne(numbers: number[]): number[] {\n  numbers.forEach(n => seen.push(n + 1));\n  return seen;\n}\n",
    ],
    RUBY: [
        "def add_one(numbers)\n  numbers.map { |n| n + 2 }\nend\n",
        "def add_one(numbers)\n  [2]\nend\n",
        "def add_one(numbers)\n  numbers << 1\nend\n",
        "def add_one(numbers)\n  numbers.map { |n| (n + 1).to_s }\nend\n",
        "def add_one(numbers)\n  numbers.lazy.map { |n| n + 1 }\nend\n",
        "def add_one(numbers)\n  puts numbers.map { |n| n + 1 }\nend\n",
        "$seen = []\ndef add_one(numbers)\n  $seen.concat(numbers.map { |n| n + 1 })\nend\n",
    ],
    PHP: [
        "function addOne($numbers) {\n    return array_map(fn($n) => $n + 2, $numbers);\n}\n",
        "function addOne($numbers) {\n    return [2];\n}\n",
        "function addOne($numbers) {\n    $numbers[] = 1;\n    return $numbers;\n}\n",
        "function addOne($numbers) {\n    return array_map(fn($n) => (string) ($n + 1), $numbers);\n}\n",
        "function addOne($numbers) {\n    return array_reverse(array_map(fn($n) => $n + 1, $numbers), true);\n}\n",
        "function addOne($numbers) {\n    return array_map(fn($n) => $n > 0 ? $n + 1 : true, $numbers);\n}\n",
        "function addOne($numbers) {\n    static $seen = [];\n    foreach ($numbers as $n) {\n        $seen[] = $n + 1;\n    }\n    return $seen;\n}\n",
    ],
    LUA: [
        "local function add_one(numbers)\n  for i, n in ipairs(numbers) do\n    numbers[i] = n + 2\n  end\n  return numbers\nend\n",
        "local function add_one(numbers)\n  return {2}\nend\n",
        "local function add_one(numbers)\n  table.insert(numbers, 1)\n  return numbers\nend\n",
        "local function add_one(numbers)\n  for i, n in ipairs(numbers) do\n    numbers[i] = tostring(n + 1)\n  end\n  return numbers\nend\n",
        "local seen = {}\nlocal function add_one(numbers)\n  for _, n in ipairs(numbers) do\n    table.insert(seen, n + 1)\n  end\n  return seen\nend\n",
    ],
}
RIGHT = {
    TYPESCRIPT: [
        "const addOne = (numbers: number[]): number[] => {\n  numbers.forEach((n, i) => { numbers[i] = n + 1; });\n  return numbers;\n};\n",
        "function addOne(numbers) {\n  return numbers.map(n => n === 0 ? 1 : n + 1.0);\n}\n",
    ],
    RUBY: [
        "def add_one(numbers)\n  numbers.map!(&:succ)\nend\n",
        "def add_one(numbers)\n  numbers.map { |n| n + 1.0 }\nend\n",
    ],
    PHP: [
        "function addOne(array $numbers): array {\n    foreach ($numbers as &$n) {\n        $n += 1.0;\n    }\n    return $numbers;\n}\n",
        "<?php\nfunction addOne($numbers) {\n    return array_map(fn($n) => $n + 1, $numbers);\n}\n?>\n",
    ],
    LUA: [
        "local function add_one(numbers)\n  for i, n in ipairs(numbers) do\n    numbers[i] = n + 1.0\n  end\n  return numbers\nend\n",
    ],
}


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", EACH)
def test_wrong_answers_fail_and_right_ones_pass_whatever_they_do_to_their_arguments(language):
    asked = as_task(ADD_ONE, ADDED, language)
    answers = [asked.reference, *RIGHT[language], *WRONG[language], ""]
    seen = [one.verdict for one in grade_all((answer, asked) for answer in answers)]
    right = 1 + len(RIGHT[language])
    assert seen == [Verdict.PASS] * right + [Verdict.FAIL] * (len(answers) - right)


CHEATS = {
    TYPESCRIPT: [
        (
            "Array.prototype.every = () => true;\nObject.keys = () => [];\nArray.isArray = (a: any): a is any[] => false;\n"
            "function addOne(numbers: number[]): any {\n  return {};\n}\n"
        ),
        "function longwatchSame(found: any, wanted: any): boolean {\n  return true;\n}\nfunction addOne(numbers: number[]): any {\n  return 0;\n}\n",
        "function addOne(numbers: number[]): any {\n  return new Proxy([], { get: () => 2 });\n}\n",
    ],
    RUBY: [
        "class Array\n  def ==(other)\n    true\n  end\nend\ndef add_one(numbers)\n  [0]\nend\n",
        "def add_one(numbers)\n  exit!(0)\nend\n",
    ],
    PHP: [
        "function longwatch_same($found, $wanted) {\n    return true;\n}\nfunction addOne($numbers) {\n    return 0;\n}\n",
        "function longwatch_check($found, $wanted) {\n}\nfunction addOne($numbers) {\n    return 0;\n}\n",
        "function addOne($numbers) {\n    exit(0);\n}\n",
    ],
    LUA: [
        (
            "require = function()\n  return { assertEquals = print, LuaUnit = { run = function() return 0 end } }\nend\n"
            "local function add_one(numbers)\n  return 0\nend\n"
        ),
        "local function add_one(numbers)\n  os.exit(0)\nend\n",
    ],
}


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", EACH)
def test_what_disarms_the_comparison_or_ends_early_fails(language):
    asked = as_task(ADD_ONE, ADDED, language)
    seen = [one.verdict for one in grade_all((answer, asked) for answer in CHEATS[language])]
    assert seen == [Verdict.FAIL] * len(CHEATS[language])


@pytest.mark.guarantee("L2")
@pytest.mark.parametrize("language", EACH)
def test_a_task_proves_itself_as_any_other(language):
    assert screen(as_task(ADD_ONE, ADDED, language)).finding is Finding.USABLE
    bad = msgspec.structs.replace(as_task(ADD_ONE, ADDED, language), reference=WRONG[language][0])
    assert screen(bad, repeats=1).finding is Finding.REFERENCE_FAILS


CODES = problem(
    "codes_of",
    ("text",),
    "Return the list of the codes of the characters of `text`.",
    javascript="function codesOf(text) {\n  return [...text].map(char => char.codePointAt(0));\n}\n",
    ruby="def codes_of(text)\n  text.codepoints\nend\n",
    php="function codesOf($text) {\n    return array_map('ord', preg_split('//', $text, -1, PREG_SPLIT_NO_EMPTY));\n}\n",
    lua="local function codes_of(text)\n  return { text:byte(1, -1) }\nend\n",
)


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("language", EACH)
def test_every_character_of_a_text_reaches_the_answer_as_it_is(language):
    texts = NASTY if DIALECTS[language].literals.bytewise else (*NASTY, *UNICODE)
    asked = as_task(CODES, [Case((text,), [*map(ord, text)]) for text in (*NASTY, *UNICODE)], language)
    assert isinstance(asked.tests, OneFile)
    assert asked.tests.code.count("\n") >= len(texts)
    seen = grade(asked.reference, asked)
    assert seen.verdict is Verdict.PASS, seen.why


LOOK_UPS = {
    TYPESCRIPT: "function codesOf(text: string): any {{\n  return {}[text];\n}}\n",
    RUBY: "def codes_of(text)\n  {}[text]\nend\n",
    PHP: "function codesOf($text) {{\n    return {}[$text];\n}}\n",
    LUA: "local function codes_of(text)\n  return ({})[text]\nend\n",
}


@pytest.mark.guarantee("L1", "L10")
@pytest.mark.parametrize("language", EACH)
def test_a_text_that_comes_back_is_compared_to_its_last_character(language):
    told = {f"k{number}": text for number, text in enumerate(NASTY)}
    asked = as_task(CODES, [Case((key,), text) for key, text in told.items()], language)
    answers = [told, *({**told, key: told[key] + " "} for key in ("k0", "k5", "k8"))]
    texts = [LOOK_UPS[language].format(literal(one, DIALECTS[language].literals)) for one in answers]
    seen = [one.verdict for one in grade_all((text, asked) for text in texts)]
    assert seen == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL, Verdict.FAIL]


PRINTERS = {
    TYPESCRIPT: (["node", "-"], "", "console.log(JSON.stringify({}));\n"),
    RUBY: (["ruby", "-"], "# encoding: utf-8\nrequire 'json'\n", "puts JSON.generate([{}])\n"),
    PHP: (
        ["php"],
        "<?php\n",
        'echo json_encode({}, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\\n";\n',
    ),
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(NASTY),
    lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=4), some, max_size=4),
    max_leaves=8,
)


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("language", [one for one in EACH if one.values[0] in PRINTERS])
@settings(max_examples=8, deadline=None)
@given(values=st.lists(VALUES, min_size=5, max_size=20))
def test_the_literal_of_any_value_is_that_value_or_there_is_none(language, values):
    command, before, line = PRINTERS[language]
    lines, wanted = [], []
    for value in values:
        try:
            lines.append(line.replace("{}", literal(value, DIALECTS[language].literals)))
            wanted.append(value)
        except NoLiteralError:
            continue
    done = subprocess.run(
        command, input=before + "".join(lines), capture_output=True, check=True, encoding="utf-8"
    )
    # JavaScript has one kind of numbers, and writes large ones with zeros at their end.
    whole = float if language is TYPESCRIPT else int
    found = [json.loads(one, parse_int=whole) for one in done.stdout.split("\n") if one]
    found = [one[0] for one in found] if language is RUBY else found
    assert [without_kinds(one) for one in found] == [without_kinds(one) for one in wanted]


def without_kinds(value):
    """A value in which an empty dictionary is an empty list, and keys have no order: PHP knows no difference."""
    if isinstance(value, dict):
        return sorted((key, without_kinds(part)) for key, part in value.items()) if value else []
    return (
        [without_kinds(part) for part in value] if isinstance(value, list) else (type(value) is bool, value)
    )


@pytest.mark.parametrize(
    ("language", "value"),
    [
        (RUBY, float("nan")),
        (RUBY, "\ud800"),
        (PHP, float("inf")),
        (PHP, 2**63),
        (PHP, "é"),
        (PHP, {"é": 1}),
        (PHP, {"0": 1, "1": 2}),
        (LUA, [1, None]),
        (LUA, {"a": None}),
        (LUA, ["ü"]),
        (TYPESCRIPT, 2**53 + 1),
        (TYPESCRIPT, {"__proto__": 1}),
        (TYPESCRIPT, {"constructor": 1}),
    ],
)
def test_what_a_language_cannot_hold_has_no_literal(language, value):
    with pytest.raises(NoLiteralError):
        literal([value], DIALECTS[language].literals)


SORTS = (
    [1],
    [True],
    [False],
    [None],
    ["1"],
    [[1]],
    [[]],
    [0],
    [""],
    [{"a": 1}],
    [{"a": [1, 2]}],
    [{"a": [2, 1]}],
    [{"a": 1, "b": 2}],
    [-(10**15)],
    [1.5],
)


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", EACH)
def test_values_of_another_kind_are_never_equal(language):
    """One answer returns whatever the place names; each wanted value is held against all others."""
    dialect = DIALECTS[language]
    values = [one for one in SORTS if language is not LUA or one != [None]]
    asked = {
        TYPESCRIPT: "function f(i: number): any {{\n  return {}[i];\n}}\n",
        RUBY: "def f(i)\n  {}[i]\nend\n",
    }
    asked |= {
        PHP: "function f($i) {{\n    return {}[$i];\n}}\n",
        LUA: "local function f(i)\n  return ({})[i + 1]\nend\n",
    }
    own = asked[language].format(literal(values, dialect.literals))
    cases = [Case((place,), value) for place, value in enumerate(values)]
    one = problem(
        "f", ("i",), "", **{str(dialect.like or language): own.replace(": number", "").replace(": any", "")}
    )
    right = as_task(one, cases, language)
    moved = values[1:] + values[:1]
    some = range(0, len(values), 3 if language is TYPESCRIPT else 1)
    wrong = [
        as_task(one, [Case((place,), moved[place]), *cases[:3], *cases[-3:]], language) for place in some
    ]
    seen = [each.verdict for each in grade_all([(own, right), *((own, each) for each in wrong)])]
    assert seen == [Verdict.PASS] + [Verdict.FAIL] * len(wrong)


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", EACH)
def test_the_order_of_keys_does_not_matter_and_whole_numbers_may_be_written_with_a_point(language):
    dialect = DIALECTS[language]
    forms = {TYPESCRIPT: "function f(i: number): any {{\n  return {};\n}}\n", RUBY: "def f(i)\n  {}\nend\n"}
    forms |= {PHP: "function f($i) {{\n    return {};\n}}\n", LUA: "local function f(i)\n  return {}\nend\n"}
    one = problem("f", ("i",), "", **{str(dialect.like or language): "f(\n"})
    cases = [
        Case((place,), {"a": 1, "b": [2.0, -3]} if place else {"a": 1, "b": []})
        for place in range(LEAST_CASES)
    ]
    asked = as_task(one, cases, language)
    tests = asked.tests.code
    only = msgspec.structs.replace(
        asked, tests=msgspec.structs.replace(asked.tests, code=without_call_of_zero(tests))
    )
    answer = forms[language].format(literal({"b": [2, -3.0], "a": 1.0}, dialect.literals))
    assert grade(answer, asked).verdict is Verdict.FAIL
    assert grade(answer, only).verdict is Verdict.PASS


def without_call_of_zero(code):
    lines = code.split("\n")
    kept = [line for line in lines if "(0)" not in line]
    assert len(kept) == len(lines) - 1
    return "\n".join(kept)


def test_a_student_asked_in_ruby_sees_ruby():
    place = next(place for place, one in enumerate(all_templates()) if one.name == "days_between")
    prompt = said(place, RUBY).prompt
    assert prompt.startswith(
        "Write a Ruby function `def days_between(start, end_)`. Return the number of days from "
    )
    assert "the date `end_`" in prompt
    assert "`end`" not in prompt
    assert prompt.endswith("Reply with only the code in a ```ruby block.")


def test_heads_are_in_the_languages_own_words():
    cases = [Case(({"a": [1, 2.5]}, [["x"], []], None), {"k": [number]}) for number in range(LEAST_CASES)]
    code = dict.fromkeys(["javascript", "ruby", "php", "lua"], "")
    asked = problem("two_words", ("end", "rows", "none"), "Use `end` and `rows`.", **code)
    said_of = {
        language: put(asked, cases, language).prompt.split("\n")[0] for language in (TYPESCRIPT, RUBY, PHP)
    }
    assert said_of == {
        TYPESCRIPT: "Write a TypeScript function `function twoWords(end: {[key: string]: number[]}, rows: string[][], none: null): "
        "{[key: string]: number[]}`. Use `end` and `rows`.",
        RUBY: "Write a Ruby function `def two_words(end_, rows, none)`. Use `end_` and `rows`.",
        PHP: "Write a PHP function `function twoWords($end, $rows, $none)`. Use `$end` and `$rows`.",
    }
    example = put(asked, cases, RUBY).prompt.split("\n")[1]
    assert example.startswith(
        'For example, `two_words({"a" => [1, 2.5]}, [["x"], []], nil)` returns `{"k" => [0]}`'
    )


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([[], [1], [-2]], Shape("list", Shape("int"))),
        ([1, 2.5], Shape("float")),
        ([1, True], Shape("mixed")),
        ([[1], [[1]]], Shape("list", Shape("mixed"))),
        ([{}, {"a": ["x"]}], Shape("dict", Shape("list", Shape("text")))),
        ([[], {}], Shape("mixed")),
        ([], Shape("nothing")),
    ],
)
def test_the_shape_of_values(values, shape):
    assert shape_of(values) == shape


@pytest.mark.guarantee("L4")
def test_all_languages_of_a_problem_are_on_one_side_and_have_the_same_calls():
    rows = list(Generated(3, LANGUAGES).rows(0, 400))
    tasks = [one for row in rows for one in row.tasks]
    splits.check(tasks)
    assert {one.language for one in tasks} == set(LANGUAGES)
    for row in rows:
        assert len({one.problem for one in row.tasks}) <= 1
        assert len({one.language for one in row.tasks}) == len(row.tasks)
    assert {one.split for one in tasks if one.language is RUBY} == {
        Split.TRAIN,
        Split.DEV,
        Split.CONFIRM,
        Split.SEALED,
    }


@pytest.mark.guarantee("L6")
def test_a_draw_is_balanced_over_six_languages_and_twelve_families():
    tasks = [
        one for row in Generated(4, LANGUAGES).rows(0, 720) for one in row.tasks if one.split is Split.TRAIN
    ]
    drawn = splits.draw(tasks, 216, 1)
    counts = Counter((one.language, one.family) for one in drawn)
    assert len(counts) == 6 * 12
    assert set(counts.values()) == {3}


@pytest.mark.guarantee("L1")
def test_rows_in_python_and_javascript_are_the_same_whatever_else_is_asked_in():
    both = (Language.PYTHON, Language.JAVASCRIPT)
    alone = [one for row in Generated(5, both).rows(0, 60) for one in row.tasks]
    among = [one for row in Generated(5, LANGUAGES).rows(0, 60) for one in row.tasks if one.language in both]
    assert sorted(alone, key=lambda one: one.id) == sorted(among, key=lambda one: one.id)


@pytest.mark.guarantee("L3")
def test_what_a_language_lacks_is_left_out_by_name_and_counted():
    rows = list(Generated(1, (LUA,), families=("dictionaries",)).rows(0, 300))
    why = Counter(one.why for row in rows for one in row.left_out)
    assert why["no reference in lua"] > 50
    assert sum(bool(row.tasks) for row in rows) > 50


@pytest.mark.parametrize(
    ("command", "before", "line", "language"),
    [
        pytest.param(["php"], "<?php\n", "if (function_exists('{0}')) echo '{0} ';\n", PHP, marks=here(PHP)),
        pytest.param(
            ["ruby", "-"],
            "require 'test/unit'\nTest::Unit::AutoRunner.need_auto_run = false\nall = Test::Unit::TestCase.instance_methods"
            " + Test::Unit::TestCase.private_instance_methods\n",
            "print '{0} ' if all.include?(:{0})\n",
            RUBY,
            marks=here(RUBY),
        ),
    ],
)
def test_no_function_has_a_name_that_is_taken(command, before, line, language):
    found = (said(place, language) for place in range(0, len(all_templates()), 31))
    names = {one.entry_point for one in found if one}
    assert len(names) > 500
    program = before + "".join(line.format(name) for name in sorted(names))
    done = subprocess.run(command, input=program, capture_output=True, check=True, text=True)
    assert done.stdout == ""
