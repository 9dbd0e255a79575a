"""What is asked of containers alone: that they end with their program, whoever is killed, and that a bad choice is told."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import engine_service, engines

from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.kernel.identity import COOKIE_VARIABLE, find_by_cookie
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import end_tree, new_cookie, run
from longwatch.sandbox import Plan, engine
from longwatch.sandbox.container import Container
from longwatch.sandbox.selftest import self_test

Make = Callable[[str], Container]
Ready = Callable[[str], engines.Ready]


@pytest.fixture(params=("docker", pytest.param("podman", marks=pytest.mark.long)))
def container(request: pytest.FixtureRequest, make: Make) -> Container:
    return make(request.param)


def plan_of(work: Path, **more: object) -> Plan:
    return Plan(workdir=work, writable=((work, work),), **more)  # type: ignore[arg-type]


def left(container: Container) -> tuple[str, ...]:
    return engine.leftovers(engine.look(container.name))


def started(container: Container, work: Path, script: str, cookie: str) -> "subprocess.Popen[bytes]":
    """Start a script that says something, and return when it did."""
    child = subprocess.Popen(
        container.wrap(("/bin/sh", "-c", script), plan_of(work)),
        stdout=subprocess.PIPE,
        env={"PATH": os.defpath, COOKIE_VARIABLE: cookie},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    return child


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# Their end.


@pytest.mark.guarantee("K18", "K19")
def test_a_container_whose_program_was_killed_is_found_and_taken_away(
    container: Container, work: Path
) -> None:
    cookie = new_cookie()
    child = started(container, work, "setsid sleep 600 & echo up; sleep 600", cookie)
    child.kill()
    child.wait()
    assert find_by_cookie(cookie), "a container does not end with its client: this is what the cookie is for"
    end_tree(None, cookie, grace_s=0.0)
    assert find_by_cookie(cookie) == ()
    container.tidy()
    assert left(container) == ()


@pytest.mark.guarantee("K18", "K19")
def test_a_container_that_lives_is_not_tidied(container: Container, work: Path) -> None:
    with started(container, work, "echo up; sleep 600", new_cookie()) as child:
        container.tidy()
        assert len(left(container)) == 1
        child.send_signal(signal.SIGHUP)
        child.wait()
    assert left(container) == ()


@pytest.mark.guarantee("K18", "K19")
def test_a_container_ends_with_whoever_started_it(container: Container, work: Path) -> None:
    """As bubblewrap does by itself: nobody has to look for it first."""
    cookie = new_cookie()
    argv = container.wrap(("/bin/sh", "-c", "echo up; sleep 600"), plan_of(work))
    code = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    starter = subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", code, *argv),
        stdout=subprocess.PIPE,
        env={"PATH": os.defpath, COOKIE_VARIABLE: cookie},
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"up\n"
    starter.kill()
    starter.wait()
    until(lambda: find_by_cookie(cookie) == ())
    assert left(container) == ()


def supervised(container: Container, work: Path, script: str, **limits: float) -> ProcessRecord:
    command = Command(
        argv=container.wrap(("/bin/sh", "-c", script), plan_of(work)),
        cwd=work,
        environment={"PATH": os.defpath},
        log=work.parent / "log",
        limits=Limits(**{"wall_s": 90, "grace_s": 10, **limits}),  # type: ignore[arg-type]
        phase="test",
        contained=container.contained,
    )
    return run(command)


@pytest.mark.guarantee("K17")
def test_who_computes_in_silence_is_not_idle(container: Container, work: Path) -> None:
    """What docker runs is no descendant: its activity is seen all the same."""
    script = "echo up; end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do :; done; echo done"
    record = supervised(container, work, script, idle_s=3.0)
    assert (record.exit_code, record.limit) == (0, None)


@pytest.mark.guarantee("K17")
def test_who_sleeps_in_silence_is_idle(container: Container, work: Path) -> None:
    record = supervised(container, work, "echo up; sleep 600", idle_s=3.0)
    assert record.limit is LimitHit.IDLE


# What the engine says, and what the command says.


@pytest.mark.guarantee("K22", "M15")
@pytest.mark.parametrize("code", [1, 125, 126, 127, 137])
def test_the_exit_code_is_the_commands(container: Container, work: Path, code: int) -> None:
    record = supervised(container, work, f"exit {code}")
    assert (record.exit_code, record.signal) == (code, None)


@pytest.mark.guarantee("K22", "M15")
def test_an_engine_that_fails_looks_like_a_sandbox_that_was_killed(container: Container, work: Path) -> None:
    """So nobody takes it for the word of a check or of a worker."""
    argv = [word.replace("never", "always-and-never") for word in container.wrap(("true",), plan_of(work))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert f"{container.name} did not run the command" in done.stderr


@pytest.mark.guarantee("K24")
def test_no_secret_stands_in_the_process_list(container: Container, work: Path) -> None:
    argv = container.wrap(
        ("/bin/sh", "-c", 'echo "$KEY"; sleep 600'), plan_of(work, hand_on_environment=True)
    )
    cookie = new_cookie()
    environment = {"PATH": os.defpath, "KEY": "value-of-the-key", COOKIE_VARIABLE: cookie}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"value-of-the-key\n"
        seen = [Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in find_by_cookie(cookie)]
        child.send_signal(signal.SIGHUP)
    assert len(seen) > 1
    assert not [line for line in seen if b"value-of-the-key" in line]


@pytest.mark.guarantee("M15")
def test_what_runs_is_the_image_that_was_looked_at(container: Container, work: Path) -> None:
    argv = container.wrap(("true",), plan_of(work))
    assert container.toolchain() in argv
    assert container.toolchain().startswith("sha256:")
    assert container.toolchain() in container.foundation()


# A bad choice.


@pytest.fixture
def asked(container: Container) -> Iterator[Container]:
    """An engine that is asked anew."""
    engines.forget()
    yield container
    engines.forget()


@pytest.mark.guarantee("K38")
def test_without_an_image_it_says_so(asked: Container, work: Path) -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.image"):
        Container(asked.name, user=(1000, 1000)).wrap(("true",), plan_of(work))


@pytest.mark.guarantee("K38")
def test_an_image_that_is_not_here_is_not_pulled_but_told(asked: Container, work: Path) -> None:
    with pytest.raises(NotReadyError, match=f"{asked.name} pull nobody/has:this"):
        Container(asked.name, "nobody/has:this", (1000, 1000)).wrap(("true",), plan_of(work))


@pytest.mark.guarantee("K38")
def test_an_engine_that_is_not_installed_is_one_failed_probe(
    asked: Container, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (probe,) = self_test(asked)
    assert not probe.ok
    assert f"{asked.name} is not on PATH; install it" in probe.detail


@pytest.mark.guarantee("K38")
def test_a_service_that_does_not_run_is_told(
    make: Make, asked: Container, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    (probe,) = self_test(Container("docker", engine_service.IMAGE, (1000, 1000)))
    assert not probe.ok
    assert "start its service" in probe.detail


@pytest.mark.guarantee("K38")
@pytest.mark.parametrize("variable", ["DOCKER_HOST", "CONTAINER_HOST"])
def test_an_engine_on_another_machine_is_refused(
    asked: Container, variable: str, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    monkeypatch.setenv(variable, "tcp://203.0.113.7:2375")
    with pytest.raises(ConfigError, match=f"{variable} = 'tcp://.*on this machine"):
        asked.wrap(("true",), plan_of(work))


def test_an_image_with_volumes_is_refused(make: Make, work: Path) -> None:
    make("docker")
    with pytest.raises(ConfigError, match="declares volumes"):
        Container("docker", engine_service.VOLUMES, (1000, 1000)).wrap(("true",), plan_of(work))


def test_docker_is_refused_to_root(make: Make, work: Path) -> None:
    """Either the command would be root, or what it writes would be somebody else's."""
    make("docker")
    with pytest.raises(ConfigError, match="ordinary user"):
        Container("docker", engine_service.IMAGE, (0, 0)).wrap(("true",), plan_of(work))


def test_a_sandbox_inside_is_refused(container: Container, work: Path) -> None:
    with pytest.raises(ConfigError, match="bubblewrap"):
        container.wrap(("true",), plan_of(work, nested=True))


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb"])
def test_a_path_that_would_say_more_than_itself_is_refused(
    container: Container, work: Path, name: str
) -> None:
    (work / name).mkdir()
    with pytest.raises(ConfigError, match="cannot show"):
        container.wrap(("true",), plan_of(work, expose=(work / name,)))


@pytest.mark.guarantee("K24")
def test_the_stand_in_refuses_what_it_does_not_know(make: Make, work: Path) -> None:
    """Else it would prove nothing of the words."""
    sandbox = make("docker")
    argv = list(sandbox.wrap(("true",), plan_of(work)))
    argv.insert(argv.index("--read-only"), "--privileged")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "unknown flag: --privileged" in done.stderr
    assert shutil.which("docker") != shutil.which("podman")
