"""Grading in containers: the same verdicts as in bubblewrap, and nothing that lives on."""

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.support import engines

from longwatch.kernel.errors import NotReadyError
from longwatch.learn.grading import grade_all, identity, proved, scripts
from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.grader import grade
from longwatch.learn.grading.known import known
from longwatch.learn.grading.place import HERE
from longwatch.learn.tasks import Language, Task, Verdict
from longwatch.sandbox import engine, sandbox_of
from longwatch.sandbox.choice import Sandboxing


@pytest.fixture
def standing_in(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandboxing]:
    """Its image has this machine's programs, so every language."""
    with engines.stand_in(tmp_path / "engine", "podman") as ready:
        for name, value in ready.environment.items():
            monkeypatch.setenv(name, value)
        yield Sandboxing(ready.name, ready.image)


@pytest.fixture
def podman(ready: Callable[[str], engines.Ready], monkeypatch: pytest.MonkeyPatch) -> Sandboxing:
    """Podman itself; its image has Python."""
    found = ready("podman")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return Sandboxing(found.name, found.image)


@pytest.fixture(params=("standing_in", pytest.param("podman", marks=pytest.mark.long)))
def where(request: pytest.FixtureRequest) -> Sandboxing:
    """Podman, or what stands in for it."""
    found: Sandboxing = request.getfixturevalue(request.param)
    return found


def python_task() -> Task:
    return known(Language.PYTHON)[0].task


def left(where: Sandboxing) -> tuple[str, ...]:
    return engine.leftovers(engine.look(where.kind))


@pytest.mark.guarantee("L10", "L23")
@pytest.mark.parametrize("language", [Language.PYTHON, Language.JAVASCRIPT, Language.BASH])
def test_a_language_proves_itself_in_containers(standing_in: Sandboxing, language: Language) -> None:
    proof = proved(language, where=standing_in)
    assert proof.holds, proof.broken
    assert left(standing_in) == ()


@pytest.mark.long
@pytest.mark.guarantee("L10", "L23")
def test_python_proves_itself_in_podman(podman: Sandboxing) -> None:
    proof = proved(Language.PYTHON, where=podman)
    assert proof.holds, proof.broken
    assert left(podman) == ()


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(
    "answer",
    [
        "import os\ndef double(x):\n    return 2 * x if os.fork() else 0\n",
        "def double(x):\n    while True:\n        pass\n",
        "import socket\ndef double(x):\n    socket.create_connection(('127.0.0.1', 9))\n    return 2 * x\n",
        "def double(x):\n    open('/usr/bin/longwatch-was-here', 'w')\n    return 2 * x\n",
        "def double(x):\n    open('/tmp/big', 'wb').write(b'0' * 10**9)\n    return 2 * x\n",
    ],
    ids=["forks", "loops", "connects", "writes", "fills"],
)
def test_what_an_answer_must_not_do_it_cannot_do_there_either(where: Sandboxing, answer: str) -> None:
    seen = grade(answer, python_task(), bounds=Bounds(cpu_s=2, wall_s=20.0), where=where)
    assert seen.verdict is Verdict.FAIL, seen
    assert left(where) == ()


@pytest.mark.guarantee("L10")
def test_what_is_abandoned_leaves_no_container(where: Sandboxing) -> None:
    begun = threading.Event()
    answer = "def double(x):\n    while True:\n        pass\n"
    stop_at = time.monotonic() + 3
    grades = grade_all(
        [(answer, python_task())] * 3,
        workers=2,
        where=where,
        should_stop=lambda: begun.is_set() or time.monotonic() > stop_at,
    )
    assert list(grades) == []
    assert left(where) == ()


@pytest.mark.guarantee("L10")
def test_an_engine_that_fails_is_our_own_trouble(standing_in: Sandboxing) -> None:
    answer, task = known(Language.PYTHON)[0].answer, python_task()
    assert grade(answer, task, where=standing_in).verdict is Verdict.PASS
    os.environ["CONTAINER_HOST"] += "-gone"
    seen = grade(answer, task, where=standing_in)
    assert seen.verdict is Verdict.INFRA, seen


@pytest.mark.guarantee("L15", "L23")
def test_the_image_is_part_of_what_a_verdict_is_kept_by(where: Sandboxing) -> None:
    image = sandbox_of(where).toolchain()
    assert identity([Language.PYTHON], where) != identity([Language.PYTHON], HERE)
    other = Sandboxing(where.kind, image)
    assert identity([Language.PYTHON], where) == identity([Language.PYTHON], other)
    with pytest.raises(NotReadyError, match="pull"):
        identity([Language.PYTHON], Sandboxing(where.kind, "nobody/has:this"))


@pytest.mark.long
@pytest.mark.guarantee("L23")
def test_what_the_image_lacks_is_named_with_the_image(podman: Sandboxing) -> None:
    assert scripts.missing(Language.PYTHON, podman) == ()
    told = scripts.advice(Language.RUST, ["/usr/bin/rustc"], podman)
    assert told == f"/usr/bin/rustc not in {podman.image}: apt-get install rustc"
