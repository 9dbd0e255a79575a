"""What a language's program says of itself: absent is one thing, too busy to answer another."""

import importlib

import pytest

from longwatch.kernel.errors import FailureClass, TransientError
from longwatch.learn.tasks import Language

identity = importlib.import_module("longwatch.learn.grading.identity")


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Make the program of Lua this script."""

    def make(script: str | None) -> None:
        path = tmp_path / "lua"
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        monkeypatch.setattr(identity, "_asking", lambda _runtime: (str(path), "-v"))
        identity.version.cache_clear()

    yield make
    identity.version.cache_clear()


@pytest.mark.guarantee("L23")
@pytest.mark.parametrize(
    ("script", "version"),
    [("echo Lua 5.4", "Lua 5.4"), ("echo Lua 5.4 >&2", "Lua 5.4"), (None, ""), ("echo Lua; exit 1", "")],
)
def test_a_program_says_its_version_or_is_not_here(says, script, version):
    says(script)
    assert identity.version(Language.LUA) == version


@pytest.mark.guarantee("L23", "L28")
@pytest.mark.parametrize("script", ["kill -9 $$", "exec sleep 30"])
def test_one_that_could_not_answer_is_asked_again_and_is_not_taken_for_absent(says, monkeypatch, script):
    monkeypatch.setattr(identity, "_VERSION_S", 0.5)
    says(script)
    with pytest.raises(TransientError, match="Try again") as refused:
        identity.version(Language.LUA)
    assert refused.value.failure_class is FailureClass.TRANSIENT
    says("echo Lua 5.4")
    assert identity.version(Language.LUA) == "Lua 5.4"
