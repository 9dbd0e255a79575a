"""What an audit showed changes nothing but what is shown of it (L25)."""

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st
from learning import (
    BLOCKS,
    Walk,
    adopted,
    anchored,
    audited,
    confirmed,
    prepared,
    pruned,
    settings,
    trained,
)

from longwatch.learn.acceptance import FlipRate
from longwatch.learn.looks import LanguageAudit
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.standing import rows, standing
from longwatch.learn.steps import Adopt, Anchor, Audit, Confirm, Prepare, Prune, Train

AUDITED = settings(audit=AuditSettings(humaneval="file"))
SOURCES = Path(__file__).parents[3] / "src/longwatch/learn"
NAMES = st.lists(st.sampled_from([f"HumanEval.{n}" for n in range(164)]), unique=True, max_size=20)
COUNTS = st.integers(0, 164)
LOOKS = st.fixed_dictionaries(
    {
        "base_passed": COUNTS,
        "champion_passed": COUNTS,
        "gained": NAMES.map(tuple),
        "lost": NAMES.map(tuple),
        "p": st.floats(0, 1),
        "answer_s": st.floats(0, 1e6),
        "reused": st.booleans(),
        "void": st.sampled_from(["", "its references do not pass"]),
        "flips": st.builds(FlipRate, st.integers(0, 9), st.integers(9, 99)),
    }
)
"""All that an audit can say."""
LIFE = st.lists(
    st.fixed_dictionaries(
        {
            "nominates": st.booleans(),
            "kind": st.sampled_from(sorted(BLOCKS)),
            "last_block": st.booleans(),
            "worse": st.booleans(),
        }
    ),
    min_size=30,
    max_size=30,
)
"""What everything else says."""


def on(walk, said, look):
    """Do the step that is due."""
    match walk.step:
        case Prepare():
            walk.do(prepared)
        case Prune():
            walk.do(pruned)
        case Train():
            walk.do(trained, nominates=said["nominates"])
        case Confirm():
            walk.do(confirmed, kind=said["kind"], last_block=said["last_block"])
        case Anchor():
            walk.do(anchored, worse_than=walk.step.rivals[:1] if said["worse"] else ())
        case Adopt():
            walk.do(adopted)
        case Audit():
            walk.do(audited, **look)


def without_looks(state):
    return msgspec.structs.replace(state, audited=None, looks=0)


@pytest.mark.guarantee("L25")
@trying(deadline=None, max_examples=50)  # a loaded machine is no failure
@given(life=LIFE, looks=st.tuples(LOOKS, LOOKS))
def test_two_watches_that_differ_only_in_what_their_audits_say_do_the_same_for_ever(life, looks):
    one, other = (Walk(AUDITED) for _ in looks)
    for said in life:
        on(one, said, looks[0])
        on(other, said, looks[1])
        assert msgspec.json.encode(one.step) == msgspec.json.encode(other.step)
        assert without_looks(one.state) == without_looks(other.state)


@pytest.mark.guarantee("L25")
def test_without_audits_the_same_adapters_are_accepted():
    one, other = Walk(AUDITED), Walk(settings())
    while len(one.state.history) < 6:
        on(
            one,
            {"nominates": True, "kind": "gain", "last_block": False, "worse": False},
            {"base_passed": 164},
        )
    while len(other.state.history) < 6:
        on(other, {"nominates": True, "kind": "gain", "last_block": False, "worse": False}, {})
    assert one.state.champion == other.state.champion
    assert [found.decision for found in one.state.history] == [
        found.decision for found in other.state.history
    ]
    assert one.state.looks > 0 == other.state.looks


@pytest.mark.guarantee("L25")
def test_each_look_is_counted_and_said_and_a_void_one_is_none():
    walk = Walk(AUDITED)
    for void in ("", "no references", ""):
        while not isinstance(walk.step, Audit):
            on(walk, {"nominates": False, "kind": "gain", "last_block": False, "worse": False}, {})
        walk.do(audited, void=void)
    assert walk.state.looks == 2
    assert [text.split(" at ")[0] for text in walk.said("audit.looked")] == ["Look 1", "Look 2"]
    assert walk.said("audit.void") == ["No score: python: void, no references."]
    assert all(text.endswith("Reporting only.") for text in walk.said("audit.reported"))
    shown = dict(rows(standing(AUDITED, walk.state)))
    assert "reporting only" in shown["HumanEval, look 2"]


@pytest.mark.guarantee("L24", "L15")
def test_status_and_events_show_the_whole_last_look():
    walk = Walk(AUDITED)
    while not isinstance(walk.step, Audit):
        on(walk, {"nominates": False, "kind": "gain", "last_block": False, "worse": False}, {})
    walk.do(audited, flips=FlipRate(1, 10), answer_s=3.25, reused=True)
    shown = dict(rows(standing(AUDITED, walk.state)))["HumanEval, look 1"]
    for part in (
        "champion 12 of 164 (7.3 %, 95 %: 4.2 to 12.4)",
        "base 10 (6.1 %",
        "3 gained, 1 lost, p = 0.6",
        "3.2 s an answer, nothing asked anew",
        "1 of 10 passed answers failed when asked again",
    ):
        assert part in shown
    (note,) = [one for one in walk.notes if one.kind == "audit.reported"]
    assert (note.data["gained"], note.data["lost"]) == ("HumanEval.1 HumanEval.2 HumanEval.3", "HumanEval.9")


def readers(attribute: str) -> set[str]:
    """The modules that mention an attribute of this name."""
    return {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == attribute
    }


@pytest.mark.guarantee("L25")
def test_nothing_that_trains_or_decides_so_much_as_mentions_them():
    # The audits of `windows` are the texts of benchmarks, which are kept out of the curriculum (L4).
    shown = {"board.py", "line.py", "outcomes.py", "standing.py", "state.py", "history.py"}
    assert readers("audits") <= {"auditing/running.py", "windows.py"}
    assert readers("looks") <= shown
    assert readers("audited") <= shown
    line = ast.parse((SOURCES / "line.py").read_text())
    (watch,) = [node for node in line.body if isinstance(node, ast.ClassDef)]
    methods = {node.name: ast.unparse(node) for node in watch.body if isinstance(node, ast.FunctionDef)}
    assert {name for name, code in methods.items() if ".audited" in code or ".looks" in code} <= {"summary"}


def test_a_void_language_shows_no_number():
    assert "0 of" not in LanguageAudit(language="python", void="no node").sentence
