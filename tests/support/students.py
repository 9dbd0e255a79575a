"""Learn watches without a model, with what an experiment leaves in state and log: enough for whoever only looks."""

from pathlib import Path

import msgspec

from longwatch.cli import beginning
from longwatch.kernel.journal import Note
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import history
from longwatch.learn.looks import Audited, LanguageAudit
from longwatch.learn.state import Decided, LearnState
from longwatch.learn.steps import RoundResult

ROUND = RoundResult(
    round=1,
    collected=8,
    passed=4,
    examples=4,
    steps=9,
    loss_first=2.0,
    loss_last=1.0,
    dev_passed=5,
    dev_total=10,
    adapter="a" * 64,
)
DECIDED = Decided(
    number=1,
    decision="accepted",
    sentences=("better than the champion", "<b>no worse</b> in any family"),
    rounds=(ROUND,),
    dev_before=3,
    dev_total=10,
    receipt="b" * 64,
)
BLOCKS = tuple(
    Note("block.confirmed", "x", {"experiment": 1, "judged": 20 * n, "evidence": 8.0**n, "needed": 45.7})
    for n in (1, 2)
)
LOOK = Audited(
    benchmark="HumanEval",
    languages=(
        LanguageAudit(language="python", total=164, base_passed=9, champion_passed=12),
        LanguageAudit(language="perl", void="no toolchain"),
    ),
)


def learn(root: Path) -> Watch:
    root.mkdir()
    beginning.learn(root)
    watch = Watch(root)
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "Process 1 supervises."))
    state = msgspec.json.decode(store.snapshot().line, type=LearnState)
    line = msgspec.json.encode(msgspec.structs.replace(state, history=(DECIDED,), looks=1))
    store.commit(generation, notes=(*BLOCKS, history.note(DECIDED), *history.notes(LOOK, 1)), line=line)
    store.close()
    return watch
