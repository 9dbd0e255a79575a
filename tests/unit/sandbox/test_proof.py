"""The sandbox is proved once per boot, and asked again when anything that the answer depends on is another."""

import pytest

from longwatch.kernel.errors import NotReadyError
from longwatch.sandbox import proof
from longwatch.sandbox.bubblewrap import Bubblewrap
from longwatch.sandbox.selftest import Probe


@pytest.fixture
def asked(monkeypatch):
    calls = []

    def answer(sandbox):
        calls.append(sandbox.name)
        return (Probe(name="home", ok=answer.ok, detail="seen"),)

    answer.ok = True
    monkeypatch.setattr(proof, "self_test", answer)
    return calls, answer


@pytest.mark.guarantee("K38")
def test_a_proof_is_remembered_until_something_changes(tmp_path, asked, monkeypatch):
    calls, _ = asked
    for _ in range(2):
        proof.prove(Bubblewrap(), tmp_path / "proof")
    assert len(calls) == 1
    monkeypatch.setattr(proof, "boot_id", lambda: "another boot")
    proof.prove(Bubblewrap(), tmp_path / "proof")
    assert len(calls) == 2


@pytest.mark.guarantee("K38")
def test_a_refusal_is_never_remembered(tmp_path, asked):
    calls, answer = asked
    answer.ok = False
    for _ in range(2):
        with pytest.raises(NotReadyError, match="home: seen"):
            proof.prove(Bubblewrap(), tmp_path / "proof")
    assert len(calls) == 2
    assert not (tmp_path / "proof").exists()


@pytest.mark.guarantee("K38")
def test_a_damaged_memory_counts_as_none(tmp_path, asked):
    calls, _ = asked
    (tmp_path / "proof").write_bytes(b'{"boot":1}')
    proof.prove(Bubblewrap(), tmp_path / "proof")
    assert len(calls) == 1
