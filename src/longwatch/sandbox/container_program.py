"""Runs one container as if it were a child: it ends with this program, and its exit code is this program's.

Stands between the kernel and the engine's client, on the host. The standard library alone, and no imports that take time.
The first word says how to start (`container.Start`); the others are the engine's own, the image, and the command.

Signals: TERM is the kernel's, which asks everything inside by itself, so it is only waited. HUP, INT, and the end of whoever
started us mean that nobody waits any more: the container is removed. If the engine, and not the command, fails, this
program ends by KILL: that is how a sandbox looks that was killed from outside, and what ran in it is not judged.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_UNCLEAR = (125, 128 + signal.SIGKILL)
_CLONE_FLAGS = 0x7E020000
"""Every CLONE_NEW flag, as in the filter of docker."""
_NO_SUCH_CALL = 38
_MOST_TASKS = 16384


class Container:
    """One container, known by its name."""

    def __init__(self, start: dict[str, Any], words: list[str]) -> None:
        self.start, self.words = start, words
        # The client and the container carry it: while one of them lives, the container is not taken for a left one.
        cookie = os.environ.setdefault(start["cookie"], os.urandom(16).hex())
        self.name = f"{start['label']}-{cookie}"
        self.client: subprocess.Popen[bytes] | None = None
        self.abandoned = False

    def run(self) -> int:
        """Run it and return its exit code; the engine's own failure is an `EngineError`."""
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._abandon)
        shared = self._filter()
        run = ["run", "--name", self.name, "--label", self.start["label"], *self._shared(shared), *self.words]
        try:
            environment = {**os.environ, **self.start["client"]}
            self.client = subprocess.Popen([self.start["program"], *run], env=environment, pass_fds=shared)
            if self.abandoned:
                self._abandon()
            return self._code(self.client.wait())
        finally:
            self._ask("rm", "--force", "--volumes", self.name)

    def _abandon(self, *_: object) -> None:
        self.abandoned = True
        if self.client is not None:
            self.client.kill()

    def _shared(self, shared: tuple[int, ...]) -> list[str]:
        names = (
            [name for name in os.environ if name not in self.start["kept"]] if self.start["hand_on"] else []
        )
        words = [
            word for name in (*names, self.start["cookie"]) if name in os.environ for word in ("--env", name)
        ]
        for number in shared:
            words += ["--security-opt", f"seccomp=/proc/self/fd/{number}"]
        return [*words, *(word for limit in limits() for word in ("--ulimit", limit))]

    def _filter(self) -> tuple[int, ...]:
        """Make the engine's filter of system calls refuse new namespaces; in a file that has no name."""
        if not self.start["filter"]:
            return ()
        text = json.dumps(stricter(json.loads(Path(self.start["filter"]).read_text(encoding="utf-8"))))
        number = os.memfd_create("filter")
        os.write(number, text.encode())
        return (number,)

    def _code(self, code: int) -> int:
        """Return the command's exit code. Where the client's may be the engine's own, or hides a reason, the engine is asked."""
        if code not in _UNCLEAR and code >= 0:
            return code
        told = self._ask(
            "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}", self.name
        )
        status, seen, out_of_memory = (*told.split(), "", "", "")[:3]
        if out_of_memory == "true":
            say("the container reached its memory limit")
        if status in {"exited", "stopped"}:
            return int(seen)
        raise EngineError(
            f"{self.start['program']} did not run the command: {status or 'there is no container'}"
        )

    def _ask(self, *words: str) -> str:
        done = subprocess.run(
            [self.start["program"], *words],
            env=self.start["client"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        return done.stdout


class EngineError(Exception):
    """The engine failed, not the command."""


def say(text: str) -> None:
    """Say something among what the command says."""
    sys.stderr.write(f"longwatch: {text}\n")
    sys.stderr.flush()


def limits() -> list[str]:
    """Return our own limits, which the kernel set, for the container. Left to itself an engine would try to raise them."""
    found = ["core=0:0"]
    for name in ("nofile", "nproc", "fsize"):
        bounds = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
        if name == "nproc":
            # podman's own helpers may have less than we have, and cannot raise it.
            bounds = (_MOST_TASKS if bounds[0] < 0 else min(bounds[0], _MOST_TASKS),) * 2
        found.append(f"{name}={bounds[0]}:{bounds[1]}")
    return found


def stricter(filter_: dict[str, Any]) -> dict[str, Any]:
    """Return the filter without new namespaces: what docker does by itself, and podman does not."""
    calls = []
    for rule in filter_["syscalls"]:
        names = [name for name in rule["names"] if name not in {"unshare", "setns", "clone", "clone3"}]
        if names:
            calls.append({**rule, "names": names})
    plain = {"index": 0, "value": _CLONE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    calls.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [plain]})
    calls.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_SUCH_CALL})
    return {**filter_, "syscalls": calls}


def main() -> None:
    """Run, and end as the command did."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
    try:
        code = Container(json.loads(sys.argv[1]), sys.argv[2:]).run()
    except EngineError as error:
        say(str(error))
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(code)


if __name__ == "__main__":
    main()
