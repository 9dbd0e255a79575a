"""`init learn --adopt`: a finished session becomes a new watch, or everything that is wrong with it is named (L28)."""

import json
import os
import re
import shutil
import signal

import msgspec
import pytest
import tomlkit
from tests.support import tiny_watch
from tests.support.learn_forks import ended, forked
from tests.support.learn_misfortunes import at_writes
from tests.support.tiny_watch import call, configure, kinds, running, state, wait_for

from longwatch.cli import beginning
from longwatch.kernel import digest, lease
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import sessions
from longwatch.learn.steps import BASE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny_watch.finished(tmp_path_factory)


@pytest.fixture
def session(tmp_path, finished):
    return tiny_watch.copy(finished, tmp_path / "session").root


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    return folder


def contents(root):
    """The digest of each file; what SQLite shares between its readers is none of ours."""
    paths = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(root)): digest.of_file(path) for path in paths}


def adopter(root, session, *more):
    return call(root, "init", "learn", "--adopt", str(session), *more)


@pytest.mark.guarantee("L28", "L26", "L29", "K31", "K32")
def test_a_finished_session_is_taken_over_and_gone_on_with(root, session):
    before = contents(session)
    made = adopter(root, session, "--json")
    assert made.returncode == 0, made.stderr
    told, theirs, ours = json.loads(made.stdout), state(session), state(root)
    assert told["adapter"] == ours.champion == ours.best == theirs.champion
    assert (told["base_passed"], told["base_total"]) == (
        theirs.history[0].dev_base,
        theirs.history[0].dev_total,
    )
    assert told["examples"] > 0
    assert (ours.replay, ours.next_row, ours.schedule) == (theirs.replay, theirs.next_row, theirs.schedule)
    assert contents(session) == before, "it was only read"
    assert {path.name for path in root.iterdir()} == {"longwatch.toml", ".longwatch"}
    shutil.rmtree(session / ".longwatch")
    verified = call(root, "verify")
    assert verified.returncode == 0, verified.stdout
    assert "session: decision PASSED" in verified.stdout
    shown = dict(json.loads(call(root, "status", "--json", check=True).stdout)["summary"])
    assert shown["champion"] == f"{ours.champion[:12]}, taken over from {session}"
    # The session used all rows of its small source.
    change(root, next_row=0)
    with running(root) as supervisor:
        wait_for(lambda: any((root / ".longwatch/steps").glob("train.*/step.json")), supervisor)
        call(root, "stop", check=True)
        assert supervisor.wait(120) == 0
    (path,) = (root / ".longwatch/steps").glob("train.*/step.json")
    step = json.loads(path.read_bytes())
    assert (step["champion"], step["replay"]) == (ours.champion, ours.replay)
    assert step["generation"] == state(root).experiment.generation
    assert kinds(root)[0] == "session.adopted"


@pytest.mark.guarantee("L28")
def test_a_watch_is_never_adopted_over(root, session):
    beginning.learn(root)
    before = contents(root)
    told = adopter(root, session)
    assert told.returncode == 2
    assert f"{root / 'longwatch.toml'} exists" in told.stderr
    assert contents(root) == before
    (root / "longwatch.toml").unlink()
    assert "holds the state of an earlier watch" in adopter(root, session).stderr
    assert f"{session / 'longwatch.toml'} exists" in adopter(session, session).stderr
    assert {**contents(root), "longwatch.toml": before["longwatch.toml"]} == before


# -- what is missing or wrong


def change(session, **fields):
    """Write another state into the session's database, as its own program would."""
    watch = Watch(session)
    store = Store.open(watch.database)
    known = msgspec.structs.replace(state(session), **fields)
    store.commit(store.snapshot().generation, line=msgspec.json.encode(known))
    store.close()


def adapter_of(session):
    return session / ".longwatch/adapters" / state(session).champion


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


def unfinished_base(session):
    (decided,) = state(session).history
    change(session, history=(msgspec.structs.replace(decided, dev_total=0, dev_base=0),))


def other_lineage(session):
    (decided,) = state(session).history
    change(session, history=(msgspec.structs.replace(decided, receipt="0" * 64),))


def other_data(session):
    (path,) = (session / ".longwatch/replay").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    fewer = b"".join(lines[:-1])
    name = digest.of_bytes(fewer)
    path.with_name(f"{name}.jsonl").write_bytes(fewer)
    change(session, replay=name)


def no_model(session):
    configure(session, student={"model": str(session / "gone")})


def another_model(session):
    folder = session.parent / "model"
    shutil.copytree(state_model(session), folder)
    flipped(folder / "model.safetensors")
    configure(session, student={"model": str(folder)})


def state_model(session):
    return tomlkit.parse((session / "longwatch.toml").read_text())["student"]["model"]


def edited_log(session):
    store = Store.open(Watch(session).database)
    store._sql.execute("UPDATE events SET kind = 'experiment.won' WHERE seq = 2")
    store.close()


WRONG = {
    "no_config": (lambda s: (s / "longwatch.toml").unlink(), ("longwatch.toml",)),
    "wrong_config": (lambda s: configure(s, training={"rank": 9}), ("training.rank = 9: must be 8 or 16",)),
    "other_kind": (lambda s: (s / "longwatch.toml").write_text('kind = "migrate"\n'), ('must be "learn"',)),
    "no_state": (lambda s: (s / ".longwatch/watch.db").unlink(), ("watch.db: there is no such file",)),
    "edited_log": (edited_log, ("watch.db: event 2 was edited", "is not what was written")),
    "no_adapter": (
        lambda s: change(s, champion=BASE),
        ("its champion is base", "until a challenger is accepted"),
    ),
    "adapter_gone": (lambda s: shutil.rmtree(adapter_of(s)), ("holds no adapter", "restore it from a copy")),
    "adapter_damaged": (
        lambda s: flipped(adapter_of(s) / "adapter_model.safetensors"),
        ("adapter_model.safetensors", "is not what its manifest lists", "subject_mismatch"),
    ),
    "no_receipt": (lambda s: shutil.rmtree(s / ".longwatch/receipts"), ("evidence_missing",)),
    "other_policy": (lambda s: configure(s, acceptance={"margin_slice": 0.2}), ("policy_changed",)),
    "no_data": (lambda s: change(s, replay=""), ("replay: it has no verified training data",)),
    "data_gone": (
        lambda s: shutil.rmtree(s / ".longwatch/replay"),
        (".jsonl is gone", "restore it from a copy"),
    ),
    "data_damaged": (lambda s: flipped(next((s / ".longwatch/replay").iterdir())), ("has digest",)),
    "other_data": (other_data, ("lineage.json: data", "is not the window and the training data")),
    "no_base": (unfinished_base, ("no completed base evaluation: base passed 0 of 0",)),
    "other_lineage": (other_lineage, ("lineage.json: decision", "evidence_missing")),
    "no_model": (no_model, ("no such folder", "[student] model")),
    "another_model": (another_model, ("lineage.json: trained on base", "an adapter fits one base only")),
}


@pytest.mark.guarantee("L28")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_missing_or_wrong_is_refused_by_name_and_nothing_is_written(name, root, session):
    spoil, said = WRONG[name]
    spoil(session)
    with pytest.raises(RefusedError) as told:
        beginning.adopt(root, session)
    assert "nothing was written" in str(told.value)
    assert all(words in str(told.value) for words in said), str(told.value)
    assert list(root.iterdir()) == []


@pytest.mark.guarantee("L28", "K15")
def test_all_of_it_is_told_at_once(root, session):
    flipped(adapter_of(session) / "adapter_model.safetensors")
    flipped(next((session / ".longwatch/replay").iterdir()))
    unfinished_base(session)
    held = lease.acquire(Watch(session).lease)
    told = adopter(root, session)
    held.close()
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    for said in (
        "adapter_model.safetensors",
        "has digest",
        "no completed base evaluation",
        f"process {os.getpid()}",
    ):
        assert said in told.stderr
    assert list(root.iterdir()) == []


# -- whole or not at all


@pytest.mark.guarantee("L28", "K5", "K8")
def test_killed_between_any_two_writes_it_is_a_watch_or_none(root, session, tmp_path):
    """Killed once before and once after each kind of file or folder that gets its name, and after each commit."""
    ledger = tmp_path / "ledger"
    ledger.touch()
    while True:
        assert not (root / "longwatch.toml").exists(), "before its end it is no watch"
        code = ended(forked(lambda: dies_adopting(root, session, ledger)))
        if (root / "longwatch.toml").exists():
            break
        assert code == -signal.SIGKILL
        assert {path.name for path in root.iterdir()} <= {".longwatch", ".longwatch-adopting"}
    moments = ledger.read_text().split()
    assert {path.name for path in root.iterdir()} == {".longwatch", "longwatch.toml"}
    assert len(moments) > 30, moments
    assert {".longwatch:before", ".longwatch:after", "longwatch.toml:before", "commit:after"} <= set(moments)
    verified = call(root, "verify")
    assert verified.returncode == 0, verified.stdout
    assert state(root).champion == state(session).champion
    assert kinds(root) == ["session.adopted"]


def dies_adopting(root, session, ledger) -> int:
    def die(name: str, when: str) -> None:
        moment = f"{re.sub('[0-9a-f]{16,}', '*', name)}:{when}"
        if moment not in ledger.read_text().split():
            with ledger.open("a") as file:
                file.write(f"{moment}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    at_writes(die)
    real = Store.commit

    def commit(store, *arguments, **named):
        die("commit", "before")
        real(store, *arguments, **named)
        die("commit", "after")

    Store.commit = commit
    beginning.adopt(root, session)
    return 0


@pytest.mark.guarantee("L28")
def test_an_adoption_that_was_cut_is_finished_for_its_own_session_only(root, session, tmp_path):
    sessions.take(root, sessions.look(session))
    (root / "longwatch.toml").unlink()
    other = tiny_watch.copy(session, tmp_path / "other").root
    with pytest.raises(RefusedError, match=f"--adopt {session}"):
        beginning.adopt(root, other)
    with pytest.raises(RefusedError, match="earlier watch"):
        beginning.learn(root)
    beginning.adopt(root, session)
    assert call(root, "verify").returncode == 0
