import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.tree_living import living

from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import ConfigError, PathError
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import run
from longwatch.sandbox import SANDBOXES, Plan, Sandbox
from longwatch.sandbox.bubblewrap import Bubblewrap
from longwatch.sandbox.none import NoSandbox
from longwatch.sandbox.selftest import self_test

Shell = Callable[..., tuple[int, str]]
Make = Callable[[str], Sandbox]
PODMAN = pytest.param("podman", marks=pytest.mark.long)
"""Podman itself, by `make e2e`: not every machine that may run the tests can run it."""
CONFINING = ("bubblewrap", "docker", PODMAN)
"""A stand-in plays docker."""
KINDS = (*(kind for kind in sorted(SANDBOXES) if kind != "podman"), PODMAN)


def shell_in(sandbox: Sandbox, folder: Path) -> Shell:
    def shell(script: str, *, handed_on: dict[str, str] | None = None, **plan: object) -> tuple[int, str]:
        planned = {"workdir": folder, "writable": ((folder, folder),), **plan}
        done = subprocess.run(
            sandbox.wrap(("/bin/sh", "-c", script), Plan(**planned)),  # type: ignore[arg-type]
            env={"PATH": os.defpath, **(handed_on or {})},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    return shell


@pytest.fixture(params=KINDS)
def any_shell(request: pytest.FixtureRequest, make: Make, work: Path) -> Shell:
    return shell_in(make(request.param), work)


@pytest.fixture(params=CONFINING)
def sandbox(request: pytest.FixtureRequest, make: Make) -> Sandbox:
    return make(request.param)


@pytest.fixture
def shell(sandbox: Sandbox, work: Path) -> Shell:
    return shell_in(sandbox, work)


# What every kind must do.


@pytest.mark.guarantee("M15")
def test_it_runs_in_its_folder_with_its_exit_code(any_shell: Shell, work: Path) -> None:
    assert any_shell("pwd; echo made > file; exit 7") == (7, f"{work}\n")
    assert (work / "file").read_text() == "made\n"


@pytest.mark.guarantee("M15")
def test_the_environment_is_the_plans(any_shell: Shell) -> None:
    code, text = any_shell('echo "$GIVEN/$LEAK"', environment={"GIVEN": "a b"}, handed_on={"LEAK": "x"})
    assert (code, text) == (0, "a b/\n")


@pytest.mark.guarantee("M15", "K24")
def test_secrets_can_be_handed_on_without_the_process_list(any_shell: Shell) -> None:
    code, text = any_shell(
        'echo "$GIVEN/$KEY"', environment={"GIVEN": "a"}, handed_on={"KEY": "k"}, hand_on_environment=True
    )
    assert (code, text) == (0, "a/k\n")


def test_the_home_is_not_the_persons(any_shell: Shell) -> None:
    assert any_shell("echo $HOME")[1].strip() != str(Path.home())


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_folder_is_named(kind: str, make: Make, work: Path) -> None:
    with pytest.raises(ConfigError, match="gone"):
        make(kind).wrap(("true",), Plan(workdir=work, writable=((work / "gone", work / "gone"),)))


@pytest.mark.guarantee("M15", "K34")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["readonly", "hidden"])
def test_a_link_left_by_the_worker_is_not_mounted(kind: str, field: str, make: Make, work: Path) -> None:
    (work / "card.md").symlink_to("/etc/hostname")
    mount = ((work / "card.md",) * 2,) if field == "readonly" else (work / "card.md",)
    with pytest.raises(PathError, match=r"card\.md"):
        make(kind).wrap(("true",), Plan(workdir=work, writable=((work, work),), **{field: mount}))


@pytest.mark.guarantee("M15", "K34")
def test_a_linked_folder_above_is_not_mounted_either(work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "card.md").touch()
    (work / "tasks").symlink_to(tmp_path / "elsewhere")
    card = work / "tasks" / "card.md"
    with pytest.raises(PathError, match=r"card\.md"):
        Bubblewrap().wrap(("true",), Plan(workdir=work, writable=((work, work),), readonly=((card, card),)))


def test_without_a_sandbox_nothing_can_be_moved(work: Path) -> None:
    with pytest.raises(ConfigError, match="/repo"):
        NoSandbox().wrap(("true",), Plan(workdir=work, writable=((work, Path("/repo")),)))


# What confinement means.


@pytest.mark.guarantee("K38", "M15")
def test_every_probe_of_the_self_test_holds(sandbox: Sandbox) -> None:
    probes = self_test(sandbox)
    assert [probe for probe in probes if not probe.ok] == []
    assert len({probe.name for probe in probes}) == len(probes) >= 12


@pytest.mark.guarantee("K38")
def test_the_self_test_can_fail() -> None:
    failed = {probe.name for probe in self_test(NoSandbox()) if not probe.ok}
    assert {"protected file read-only", "network unreachable", "no new privileges"} <= failed


@pytest.mark.guarantee("K38")
def test_a_missing_sandbox_is_one_failed_probe_with_its_mend() -> None:
    (probe,) = self_test(Bubblewrap("no-such-bwrap"))
    assert not probe.ok
    assert "install bubblewrap" in probe.detail


@pytest.mark.guarantee("M15")
def test_a_protected_file_stays_as_it_is(shell: Shell, work: Path) -> None:
    (work / "card.md").write_text("card")
    (work / "tasks").mkdir()
    (work / "tasks" / "a").write_text("a")
    kept = tuple((work / name,) * 2 for name in ("card.md", "tasks"))
    script = "echo x > card.md; rm -f card.md; mv card.md b; echo x > tasks/a; rm -rf tasks; mv tasks t; touch tasks/b; touch new"
    shell(script, readonly=kept)
    assert (work / "card.md").read_text() == "card"
    assert [path.name for path in (work / "tasks").iterdir()] == ["a"]
    assert (work / "new").exists()


@pytest.mark.guarantee("M15", "K31")
def test_what_is_hidden_appears_empty(shell: Shell, work: Path) -> None:
    (work / ".longwatch").mkdir()
    (work / ".longwatch" / "key").write_text("secret")
    (work / ".env").write_text("secret")
    code, text = shell(
        "ls -A .longwatch; cat .env .longwatch/key; echo x > .longwatch/key; cat .longwatch/key; echo x > .env",
        hidden=(work / ".longwatch", work / ".env"),
    )
    assert code != 0
    assert "secret" not in text
    assert (work / ".longwatch" / "key").read_text() == "secret"
    assert (work / ".env").read_text() == "secret"


@pytest.mark.guarantee("M15")
def test_a_folder_can_be_shown_elsewhere_and_exposed_read_only(
    shell: Shell, work: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tool").write_text("tool")
    script = f"pwd; cat {tools}/tool; touch {tools}/new || echo refused; ls {tmp_path}"
    code, text = shell(script, workdir=Path("/repo"), writable=((work, Path("/repo")),), expose=(tools,))
    assert code == 0, text
    assert text.startswith("/repo\ntool")
    assert text.endswith("refused\ntools\n")


@pytest.mark.guarantee("M15")
def test_a_writable_folder_inside_an_exposed_one_stays_writable(
    shell: Shell, work: Path, tmp_path: Path
) -> None:
    (work / "tools").mkdir()
    code, text = shell(
        "touch new && { touch tools/new || touch ../new || echo refused; }", expose=(tmp_path, work / "tools")
    )
    assert code == 0
    assert text.endswith("refused\n")


@pytest.mark.guarantee("M15")
@pytest.mark.parametrize("folder", ["/", str(Path.home()), str(Path.home().parent)])
def test_the_home_cannot_be_exposed(folder: str, work: Path) -> None:
    with pytest.raises(ConfigError, match="home"):
        Bubblewrap().wrap(("true",), Plan(workdir=work, expose=(Path(folder),)))


@pytest.mark.guarantee("M15")
def test_names_resolve_and_the_host_is_reached_only_with_the_network(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f'bash -c ": < /dev/tcp/127.0.0.1/{server.getsockname()[1]}"'
        assert shell(connect)[0] != 0
        assert shell(connect, network=True) == (0, "")
    code, text = shell("getent hosts localhost; ls /etc/resolv.conf /etc/ssl/certs | head -1", network=True)
    assert code == 0
    assert "/etc/resolv.conf" in text


@pytest.mark.guarantee("M15")
def test_its_own_loopback_works_without_the_network(shell: Shell) -> None:
    script = """python3 -c "
import socket
with socket.create_server(('127.0.0.1', 0)) as s: print(socket.create_connection(s.getsockname()).getpeername() == s.getsockname())
" """
    assert shell(script, environment={"PATH": "/usr/bin:/bin"}) == (0, "True\n")


@pytest.mark.guarantee("M15")
@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "$HOME"])
def test_folders_in_memory_are_bounded(shell: Shell, folder: str) -> None:
    code, text = shell(
        f"echo ok > {folder}/small && head -c 3000000 /dev/zero > {folder}/big", tmp_bytes=1_048_576
    )
    assert code != 0
    assert "No space left" in text


@pytest.mark.guarantee("M15")
@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/opt", "/dev", "/home", "/var", "/run"])
def test_nothing_else_can_be_written(shell: Shell, folder: str) -> None:
    code, text = shell(f"mkdir {folder}/new")
    assert code != 0
    assert "Read-only file system" in text or "Permission denied" in text


@pytest.mark.guarantee("M15")
def test_no_kernel_setting_is_writable(shell: Shell) -> None:
    found = "find /proc -maxdepth 6 -path '/proc/[0-9]*' -prune -o -path '*self*' -prune -o -type f -writable -print"
    # What an engine hides is /dev/null, which may be written.
    _, text = shell(f'id; {found} 2>/dev/null | while read f; do if [ -f "$f" ]; then echo "$f"; fi; done')
    assert text.startswith("uid=1000")
    assert text.splitlines()[1:] == []


@pytest.mark.guarantee("M15")
def test_a_nested_sandbox_works_only_if_it_was_planned(work: Path) -> None:
    shell = shell_in(Bubblewrap(), work)
    nested = "bwrap --ro-bind / / --unshare-all true"
    assert shell(nested)[0] != 0
    assert shell(nested, nested=True) == (0, "")


@pytest.mark.guarantee("M15", "K19")
def test_host_processes_are_neither_seen_nor_signalled(shell: Shell) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        code, _ = shell(f"kill -KILL {other.pid}; ls /proc/{other.pid}/fd")
        assert code != 0
        assert other.poll() is None
        other.kill()


# Confined and supervised.


@pytest.fixture
def supervise(sandbox: Sandbox, work: Path) -> Callable[..., ProcessRecord]:
    def start(*argv: str, **limits: float) -> ProcessRecord:
        return run(
            Command(
                argv=sandbox.wrap(argv, Plan(workdir=work, writable=((work, work),))),
                cwd=work,
                environment={"PATH": os.defpath},
                log=work.parent / "log",
                limits=Limits(**{"wall_s": 60, "grace_s": 30, **limits}),  # type: ignore[arg-type]
                phase="test",
                contained=sandbox.contained,
            )
        )

    return start


@pytest.mark.guarantee("K18", "M15")
def test_the_confined_child_gets_its_grace(supervise: Callable[..., ProcessRecord]) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo hi; while :; do sleep 0.05; done"
    record = supervise("/bin/sh", "-c", script, wall_s=8)
    assert (record.limit, record.exit_code) == (LimitHit.WALL, 7)
    assert "bye" in Path(record.log).read_text().splitlines()


@pytest.mark.guarantee("K18", "M15")
def test_nothing_confined_outlives_its_end(supervise: Callable[..., ProcessRecord]) -> None:
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' $0 & while :; do sleep 1; done"
    token = uuid.uuid4().hex
    record = supervise("/bin/sh", "-c", script, token, wall_s=8, grace_s=0.5)
    assert record.limit is LimitHit.WALL
    assert living(token) == []


@pytest.mark.guarantee("K18", "M15")
def test_a_killed_sandbox_takes_everything_with_it(work: Path) -> None:
    argv = Bubblewrap().wrap(
        ("/bin/sh", "-c", "setsid sleep 600 & echo ready; sleep 600"),
        Plan(workdir=work, writable=((work, work),)),
    )
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={"PATH": os.defpath}) as outer:
        assert outer.stdout is not None
        assert outer.stdout.readline() == b"ready\n"
        outer.kill()
        # The pipe ends when its last holder is dead.
        assert outer.stdout.read() == b""


def test_this_interpreter_runs_inside(work: Path) -> None:
    from longwatch.sandbox.toolchain import find  # noqa: PLC0415 - only this test needs it

    tools = find([sys.executable], os.environ.get("PATH", os.defpath))
    plan = Plan(
        workdir=work, writable=((work, work),), expose=tools.folders, environment={"PATH": tools.path}
    )
    argv = Bubblewrap().wrap((sys.executable, "-c", "import json, sys; print(sys.prefix)"), plan)
    done = subprocess.run(argv, env={"PATH": os.defpath}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{sys.prefix}\n"), done.stderr
