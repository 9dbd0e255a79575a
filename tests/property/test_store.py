"""The database against a model in memory, under any order of commits, refusals, deaths of a connection and readers."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support import stores

from longwatch.kernel.errors import StateError
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Beat, Ended, Store

NAMES = st.sampled_from("abcdef")


class StoreMachine(RuleBasedStateMachine):
    """What was committed is there, whole and in order; what was refused left no trace."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "watch.db"
        self.store, self.generation = stores.new(self.path)
        self.kinds = ["supervisor.began"]
        self.line = b'{"n":0}'
        self.open: dict[str, float] = {}
        self.closed: dict[str, float] = {}
        self.wishes: list[Request] = []

    def teardown(self):
        self.store.close()
        self.folder.cleanup()

    @rule(name=NAMES)
    def intend(self, name):
        if name in self.open or name in self.closed:
            with pytest.raises(StateError):
                stores.intend(self.store, self.generation, name)
            return
        stores.intend(self.store, self.generation, name)
        self.open[name] = 0.0
        self.kinds.append("step.started")

    @rule(name=NAMES, active_s=st.floats(0, 100))
    def end(self, name, active_s):
        if name not in self.open:
            with pytest.raises(StateError):
                stores.end(self.store, self.generation, name, active_s)
            return
        stores.end(self.store, self.generation, name, active_s)
        self.closed[name] = max(active_s, self.open.pop(name))
        self.line = b'{"last":"%b"}' % name.encode()
        self.kinds.append("step.ended")

    @precondition(lambda self: self.open)
    @rule(active_s=st.floats(0, 100))
    def beat(self, active_s):
        name = min(self.open)
        self.store.commit(self.generation, changes=(Beat(name, None, active_s),))
        self.open[name] = max(self.open[name], active_s)

    @rule(name=NAMES)
    def half_a_move(self, name):
        changes = (
            *(Beat(known, None, 1e9) for known in self.open),
            Ended(id="?", outcome=stores.DONE, active_s=1),
        )
        with pytest.raises(StateError):
            self.store.commit(
                self.generation,
                notes=(Note("never", name),),
                lifecycle=Lifecycle(phase=Phase.BLOCKED),
                line=b"{}",
                changes=changes,
            )

    @rule(verb=st.sampled_from(Verb))
    def wish(self, verb):
        self.wishes.append(Request(verb=verb))
        assert self.store.request(self.wishes[-1]) == len(self.wishes)

    @rule()
    def die_and_be_opened_again(self):
        old, stale = self.store, self.generation
        self.store = Store.open(self.path)
        self.generation = self.store.begin_generation(Note("supervisor.began", "again"))
        self.kinds.append("supervisor.began")
        with pytest.raises(StateError):
            old.commit(stale, notes=(Note("never", "stale"),), line=b"{}")
        old.close()

    @rule()
    def be_closed_well(self):
        self.store.close()
        self.store = Store.open(self.path)

    @invariant()
    def all_of_it_is_there(self):
        reader = Store.read(self.path)
        assert reader.chain() is None
        assert [event.kind for event in reader.events()] == self.kinds
        assert reader.snapshot().line == self.line
        assert {left.id: left.active_s for left in reader.open_steps()} == self.open
        assert reader.active_s() == pytest.approx(sum(self.open.values()) + sum(self.closed.values()))
        assert [request for _, request in reader.requests(after=0)] == self.wishes
        assert len(reader.spans()) == len(self.closed)
        reader.close()


TestStore = pytest.mark.guarantee("K1", "K5", "K6", "K11", "K33", "K35")(StoreMachine.TestCase)
TestStore.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


@pytest.mark.guarantee("K33")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seq=st.integers(1, 10),
    column=st.sampled_from(["at", "kind", "body", "hash"]),
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0'"), max_size=40),
)
def test_no_value_in_any_column_can_take_an_events_place(seq, column, value, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "watch.db"
    stores.filled(path, 4)
    text = f"'{value}'" if column in {"at", "kind"} else f"CAST('{value}' AS BLOB)"
    stores.tamper(path, f"UPDATE events SET {column} = {text} WHERE seq = {seq}")
    store = Store.read(path)
    assert store.chain() is not None
    store.close()
