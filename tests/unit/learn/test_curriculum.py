import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from random import Random

import msgspec
import pytest
import references

from longwatch.kernel.errors import ConfigError
from longwatch.learn import registry, splits
from longwatch.learn.curriculum.catalogue import FAMILIES, all_templates
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.curriculum.render import build, task
from longwatch.learn.curriculum.template import LEAST_CASES
from longwatch.learn.tasks import Cases, Language, Split, Task

BOTH = (Language.PYTHON, Language.JAVASCRIPT)
SIDES = {Split.TRAIN, Split.DEV, Split.CONFIRM, Split.SEALED}


def some_tasks(
    seed: int = 1, rows: int = 400, languages: tuple[Language, ...] = BOTH, **choice
) -> list[Task]:
    return [task for row in Generated(seed, languages, **choice).rows(0, rows) for task in row.tasks]


@cache
def of_templates() -> tuple[Task, ...]:
    """A problem of every classic and of every seventeenth composition, with other constants each time."""
    classics = sum(map(len, FAMILIES.values()))
    found = []
    for place, template in enumerate(all_templates()):
        if place < classics or place % 17 == 0:
            built = build(template, place % template.size, Random(place))
            name = f"{template.family}.{template.name}"
            found += [task(template, built, one, name=name, row=str(place)) for one in BOTH if built]
    return tuple(found)


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("language", BOTH)
def test_every_reference_is_right_in_both_languages(language):
    assert references.wrong(of_templates(), language) == []


@pytest.mark.parametrize("language", BOTH)
def test_a_wrong_reference_would_be_seen(language):
    right = next(one for one in of_templates() if one.language is language)
    body = {Language.PYTHON: "def {}(*a):\n    return 'no'\n", Language.JAVASCRIPT: "const {} = () => 'no';"}
    bad = msgspec.structs.replace(right, reference=body[language].format(right.entry_point))
    assert len(references.wrong([right, bad], language)) == 1


@pytest.mark.guarantee("L1")
def test_there_are_twelve_families_with_six_templates_and_all_levels():
    templates = all_templates()
    assert len(FAMILIES) >= 12
    assert min(Counter(one.family for one in templates).values()) >= 6
    assert {(one.family, one.level) for one in templates} == {
        (name, level) for name in FAMILIES for level in (1, 2, 3)
    }


def test_template_names_are_unique():
    assert max(Counter((one.family, one.name) for one in all_templates()).values()) == 1


@pytest.mark.guarantee("L4")
def test_each_family_has_templates_on_every_side_at_every_level_that_is_drawn_by_default():
    found = {(one.family, one.split) for one in all_templates() if one.level <= 2}
    assert found == {(name, side) for name in FAMILIES for side in SIDES}


@pytest.mark.guarantee("L4")
def test_a_composition_of_steps_is_on_one_side_in_every_family():
    sides: dict[str, set[Split]] = {}
    for one in all_templates():
        if "." in one.name and one.family in {"lists", "matrices", "dates", "recursion"}:
            sides.setdefault(one.name.partition(".")[2], set()).add(one.split)
    assert len(sides) > 500
    assert {len(found) for found in sides.values()} == {1}


@pytest.mark.guarantee("L4")
def test_no_problem_and_no_template_is_on_two_sides():
    tasks = some_tasks(rows=1500, languages=BOTH)
    splits.check(tasks)
    sides: dict[str, set[Split]] = {}
    for one in tasks:
        sides.setdefault(one.repository, set()).add(one.split)
    assert {len(found) for found in sides.values()} == {1}
    assert {one.split for one in tasks} == SIDES


@pytest.mark.guarantee("L1")
def test_ten_thousand_rows_never_repeat_a_template_with_the_same_constants():
    walk = Generated(5).walk
    seen = set()
    for row in range(10_000):
        template, number = walk.at(row)
        seen.add((template.family, template.name, number))
    assert len(seen) == 10_000
    assert walk.size > 100_000


@pytest.mark.guarantee("L1")
def test_a_small_choice_repeats_nothing_before_everything_came_once_and_never_ends():
    walk = Generated(5, families=("machines",), levels=(1,)).walk
    first = {(template.name, number) for template, number in map(walk.at, range(walk.size))}
    assert len(first) == walk.size
    again = {(template.name, number) for template, number in map(walk.at, range(walk.size, 2 * walk.size))}
    assert again == first


@pytest.mark.guarantee("L1")
def test_rows_are_the_same_in_another_process_and_from_any_start():
    program = (
        "import sys, msgspec\n"
        "from longwatch.learn.curriculum.generated import Generated\n"
        "from longwatch.learn.tasks import Language\n"
        "rows = Generated(7, (Language.PYTHON, Language.JAVASCRIPT)).rows(90, 120)\n"
        "sys.stdout.buffer.write(msgspec.json.encode(list(rows)))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=120
    ).stdout
    assert other == msgspec.json.encode(list(Generated(7, BOTH).rows(0, 120))[90:])


def test_seeds_differ():
    assert [one.reference for one in some_tasks(1, 30)] != [one.reference for one in some_tasks(2, 30)]


def test_the_digest_depends_on_everything_that_chooses():
    digests = {
        Generated(1).digest,
        Generated(2).digest,
        Generated(1, BOTH).digest,
        Generated(1, levels=(1, 2)).digest,
        Generated(1, families=("lists",)).digest,
    }
    assert len(digests) == 5
    assert Generated(1).digest in digests


def test_levels_and_families_come_in_equal_shares():
    counts = Counter((one.family, one.level) for one in some_tasks(rows=720, languages=(Language.PYTHON,)))
    assert len(counts) == 36
    assert max(counts.values()) <= 20
    assert min(counts.values()) >= 12


def test_level_one_is_short():
    tasks = some_tasks(rows=400, languages=(Language.PYTHON,), levels=(1,))
    lengths = [len(ast.parse(one.reference).body[-1].body) for one in tasks]
    assert sum(length <= 2 for length in lengths) / len(lengths) > 0.8


def test_tests_are_plain_data_that_tell_right_from_constant_answers():
    for one in some_tasks(rows=500):
        assert isinstance(one.tests, Cases)
        assert len(one.tests.cases) >= LEAST_CASES
        assert len({msgspec.json.encode(case.expected) for case in one.tests.cases}) > 1
        assert len({msgspec.json.encode(case.arguments) for case in one.tests.cases}) == len(one.tests.cases)


def test_languages_of_a_problem_have_the_same_tests():
    versions: dict[str, list[Task]] = {}
    for one in some_tasks(rows=100):
        versions.setdefault(one.problem, []).append(one)
    assert {tuple(one.language for one in some) for some in versions.values()} == {BOTH}
    assert all(left.tests == right.tests for left, right in versions.values())


def test_prompts_say_what_is_asked():
    for one in some_tasks(rows=400):
        assert one.prompt.startswith("Write a ")
        assert f"`{one.entry_point}(" in one.prompt
        assert "For example, " in one.prompt
        assert one.prompt.endswith(f"Reply with only the code in a ```{one.language} block.")
        assert "$" not in one.prompt
        assert len(one.prompt) < 1600


def test_texts_outside_ascii_are_in_the_tests():
    assert any(
        not one.prompt.isascii() or "é" in str(one.tests)
        for one in some_tasks(rows=200, families=("strings",))
    )


def test_ids_are_unique_and_can_be_file_names():
    registry.check_ids(some_tasks(rows=1000))


def test_few_rows_are_left_out_and_say_why():
    rows = list(Generated(3).rows(0, 1000))
    out = [row for row in rows if row.left_out]
    assert len(out) < 50
    assert all(row.left_out[0].why and not row.tasks for row in out)


@pytest.mark.guarantee("L5")
def test_its_provenance_says_that_no_persons_files_are_read():
    assert "no person's prompts, files or conversations are read" in Generated(1).provenance


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"levels": (4,)}, "levels: 4"),
        ({"families": ("poems",)}, "'poems'"),
        ({"languages": ()}, "at least one"),
        ({"levels": ()}, "at least one"),
    ],
)
def test_what_does_not_exist_is_named(choice, said):
    with pytest.raises(ConfigError, match=said):
        Generated(1, **choice)
