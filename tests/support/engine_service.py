"""Stands in for docker or podman where none runs: a service that starts what its clients ask for, and understands exactly the
words that `longwatch.sandbox.container` says. What it does not know it refuses.

    engine_service.py serve SOCKET      the service; what it starts descends from it, not from a client
    engine_service.py ENGINE WORD...    the client; DOCKER_HOST or CONTAINER_HOST names the socket

A container is a bubblewrap sandbox with the same confinement. Every image is this machine's /usr.
"""

import array
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

IMAGE = "longwatch-standin"
VOLUMES = "longwatch-volumes"
ID = "5" * 64
STATE = "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}"
SWITCHES = {"--interactive", "--init", "--no-healthcheck", "--read-only", "--read-only-tmpfs=false"}
ONCE = {
    *(
        "--name",
        "--label",
        "--pull",
        "--entrypoint",
        "--log-driver",
        "--hostname",
        "--workdir",
        "--network",
        "--cap-drop",
    ),
    *("--pids-limit", "--oom-score-adj", "--memory", "--memory-swap", "--user", "--userns", "--shm-size"),
}
OFTEN = {"--security-opt", "--tmpfs", "--mount", "--env", "--ulimit", "--uidmap", "--gidmap"}
LONE = {"--pull": "never", "--entrypoint": "", "--log-driver": "none", "--cap-drop": "ALL"}
PERMUTED = ["0:1:1000", "1000:0:1", "1001:1001:64535"]
_MESSAGE_BYTES = 1 << 20
_MADE = frozenset(map(Path, ("/", "/tmp", "/var", "/var/tmp")))


class RefusedError(Exception):
    """The service does not know what it was asked for."""


class Words:
    """The words of `run`, parsed."""

    def __init__(self, words: list[str]) -> None:
        self.switches: set[str] = set()
        self.one: dict[str, str] = {}
        self.many: dict[str, list[str]] = {name: [] for name in OFTEN}
        while words and words[0].startswith("-"):
            name = words.pop(0)
            if name in SWITCHES:
                self.switches.add(name)
            elif name in ONCE and name not in self.one:
                self.one[name] = words.pop(0)
            elif name in OFTEN:
                self.many[name].append(words.pop(0))
            else:
                raise RefusedError(f"unknown flag: {name}")
        self.image, *self.argv = words
        for name, value in LONE.items():
            if self.one.get(name) != value:
                raise RefusedError(f"{name} must be {value!r} here")


class Service:
    """What runs, by name."""

    def __init__(self) -> None:
        self.containers: dict[str, subprocess.Popen[bytes] | None] = {}
        self.codes: dict[str, int] = {}

    def answer(
        self, engine: str, words: list[str], environment: dict[str, str], files: list[int]
    ) -> tuple[int, str]:
        """Return the exit code, and what is printed."""
        if words[0] == "run":
            return self._run(engine, Words(words[1:]), environment, files), ""
        return 0, self._told(engine, words)

    def _told(self, engine: str, words: list[str]) -> str:
        match words:
            case ["info", "--format", "{{json .}}"] if engine == "docker":
                told = json.dumps(
                    {"ServerVersion": "0.0", "SecurityOptions": ["name=seccomp,profile=builtin"]}
                )
            case ["info", "--format", "json"] if engine == "podman":
                told = json.dumps({"host": {"security": {}}, "version": {"Version": "0.0"}})
            case ["image", "inspect", name] if name in {IMAGE, VOLUMES, f"sha256:{ID}"}:
                volumes = {"/data": {}} if name == VOLUMES else None
                settings = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Volumes": volumes}
                told = json.dumps([{"Id": f"sha256:{ID}", "Config": settings}])
            case ["ps", "--all", "--filter", "label=longwatch", "--format", "{{.Names}}"]:
                told = "\n".join(self.containers)
            case ["inspect", "--format", form, name] if form == STATE and name in self.containers:
                told = self._state(name)
            case ["rm", "--force", "--volumes", name] if name in self.containers:
                self._remove(name)
                told = name
            case _:
                raise RefusedError(f"nothing of this name, or not understood: {words}")
        return told

    def _state(self, name: str) -> str:
        if self.containers[name] is None:
            return "created 0 false"
        return f"exited {self.codes[name]} false" if name in self.codes else "running 0 false"

    def _remove(self, name: str) -> None:
        process = self.containers[name]
        if process is not None:
            process.kill()
            process.wait()
        self.containers.pop(name, None)

    def _run(self, engine: str, words: Words, environment: dict[str, str], files: list[int]) -> int:
        if words.image != f"sha256:{ID}":
            raise RefusedError(f"no such image: {words.image}")
        name = words.one["--name"]
        if name in self.containers or words.one["--label"] != "longwatch":
            raise RefusedError(f"the name {name} is in use, or the label is another")
        self.containers[name] = None
        stdin = files[0] if "--interactive" in words.switches else subprocess.DEVNULL
        rules = filter_()
        try:
            process = subprocess.Popen(
                [*limited(words), *confined(engine, words, environment, rules)],
                stdin=stdin,
                stdout=files[1],
                stderr=files[2],
                env={"PATH": os.defpath},
                pass_fds=(rules,),
                start_new_session=True,
            )
        finally:
            os.close(rules)
        self.containers[name] = process
        code = process.wait()
        self.codes[name] = code if code >= 0 else 128 - code
        return self.codes[name]


def limited(words: Words) -> list[str]:
    """Return the limits."""
    found = [f"--{limit}" for limit in words.many["--ulimit"] if not limit.startswith("nproc=")]
    found += [f"--nproc={int(words.one['--pids-limit']) + 64}"]
    return [
        "prlimit",
        *(word.replace("=-1:-1", "=unlimited:unlimited") for word in found),
        *memory_limit(words),
        "--",
    ]


def memory_limit(words: Words) -> list[str]:
    """Return the limit of memory, if there is one."""
    if words.one.get("--memory") != words.one.get("--memory-swap"):
        raise RefusedError("it could swap")
    return [f"--as={words.one['--memory']}"] if "--memory" in words.one else []


def filter_() -> int:
    """Return a file with a filter that refuses new user namespaces, as docker's own does (seccomp(2), x86-64)."""
    load, jump, masked, give = 0x20, 0x15, 0x45, 0x06
    allow, refuse, missing = 0x7FFF0000, 0x00050001, 0x00050000 | 38
    rules = [
        (load, 0, 0, 0),
        (jump, 5, 0, 272),  # unshare
        (jump, 4, 0, 308),  # setns
        (jump, 5, 0, 435),  # clone3
        (jump, 0, 5, 56),  # clone: its flags are looked at
        (load, 0, 0, 16),
        (masked, 0, 3, 0x7E020000),
        (give, 0, 0, refuse),
        (give, 0, 0, refuse),
        (give, 0, 0, missing),
        (give, 0, 0, allow),
    ]
    file = os.memfd_create("filter")
    os.write(file, b"".join(struct.pack("HBBI", *rule) for rule in rules))
    os.lseek(file, 0, os.SEEK_SET)
    return file


def confined(engine: str, words: Words, environment: dict[str, str], rules: int) -> list[str]:
    """Return the command line of the sandbox."""
    made = [
        "bwrap",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--hostname",
        words.one["--hostname"],
        "--die-with-parent",
    ]
    made += ["--new-session", "--clearenv", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    if words.one["--network"] == "none":
        made += ["--unshare-net"]
    elif words.one["--network"] != "host":
        raise RefusedError(f"no such network: {words.one['--network']}")
    for folder in ("bin", "sbin", "lib", "lib64"):
        made += ["--symlink", f"usr/{folder}", f"/{folder}"]
    for folder in ("etc", "etc/ssl", "opt", "var", "run"):
        made += ["--perms", "0755", "--dir", f"/{folder}"]
    for file in ("resolv.conf", "hosts", "ssl/certs", "nsswitch.conf", "ld.so.cache", "alternatives"):
        made += ["--ro-bind-try", str(Path("/etc", file).resolve()), f"/etc/{file}"]
    made += ["--perms", "1777", "--size", words.one["--shm-size"], "--tmpfs", "/dev/shm"]
    places = [*map(memory, words.many["--tmpfs"]), *map(bound, words.many["--mount"])]
    for target, place in sorted(places, key=lambda one: len(Path(one[0]).parts)):
        made += [*parents(Path(target), {Path(other) for other, _ in places}), *place]
    for knob in (
        "sys",
        "sysrq-trigger",
        "irq",
        "bus",
        "fs",
        "acpi",
        "asound",
        "driver",
        "mtrr",
        "scsi",
        "tty",
        "dynamic_debug",
        "pressure",
    ):
        made += ["--ro-bind-try", f"/proc/{knob}", f"/proc/{knob}"]
    if "--read-only" in words.switches:
        made += ["--remount-ro", "/dev", "--remount-ro", "/"]
    for entry in words.many["--env"]:
        name, given, value = entry.partition("=")
        if given or name in environment:
            made += ["--setenv", name, value if given else environment[name]]
    made += ["--chdir", words.one["--workdir"], "--seccomp", str(rules)]
    if "no-new-privileges" not in words.many["--security-opt"]:
        raise RefusedError("without no-new-privileges")
    return [*made, *user(engine, words), *words.argv]


def parents(target: Path, others: set[Path]) -> list[str]:
    """Return the folders above a place, as an engine makes them: for everybody to pass."""
    bound_ones = others - set(map(Path, ("/tmp", "/var/tmp")))
    above = [
        one for one in reversed(target.parents) if not {one, *one.parents} & (bound_ones | {Path("/dev")})
    ]
    return [
        word for folder in above if folder not in _MADE for word in ("--perms", "0755", "--dir", str(folder))
    ]


def memory(told: str) -> tuple[str, list[str]]:
    """Return a folder in memory, and where it is."""
    folder, _, options = told.partition(":")
    named = dict(option.partition("=")[::2] for option in options.split(","))
    words = ["--perms", named["mode"], "--size", named["size"], "--tmpfs", folder]
    return folder, [*words, "--remount-ro", folder] if "ro" in named else words


def bound(told: str) -> tuple[str, list[str]]:
    """Return a folder or file of the host, and where it is."""
    named = dict(option.partition("=")[::2] for option in told.split(","))
    if (
        named.pop("type") != "bind"
        or not Path(named["source"]).exists()
        or set(named) - {"source", "target", "readonly"}
    ):
        raise RefusedError(f"invalid mount: {told}")
    target = named["target"]
    if target.startswith("/usr/") and not Path(target).exists():
        # An engine makes the place in the container's own layer; here there is none, and nothing to hide.
        return target, []
    return target, ["--ro-bind" if "readonly" in named else "--bind", named["source"], target]


def user(engine: str, words: Words) -> list[str]:
    """Return who runs it: docker's service is root and becomes the user; podman maps users."""
    who, group = words.one["--user"].split(":")
    drop = ["--cap-drop", "ALL"]
    if engine == "docker" or not words.many["--uidmap"]:
        held = [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
        become = [
            "setpriv",
            "--reuid",
            who,
            "--regid",
            group,
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]
        return [*drop, *held, "--", *become, "--"]
    if words.many["--uidmap"] != PERMUTED or words.many["--gidmap"] != PERMUTED:
        raise RefusedError(f"users are mapped otherwise: {words.many['--uidmap']}")
    return ["--unshare-user", "--uid", who, "--gid", group, *drop, "--"]


def serve(path: str) -> None:
    """Serve until killed."""
    service = Service()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=attend, args=(service, connection), daemon=True).start()


def attend(service: Service, connection: socket.socket) -> None:
    """Answer one client. One that is gone is not missed: what it started lives on."""
    with connection:
        data, ancillary, _, _ = connection.recvmsg(_MESSAGE_BYTES, socket.CMSG_SPACE(12))
        files = list(array.array("i", ancillary[0][2]))
        size = int.from_bytes(data[:4], "big")
        while len(data) < size + 4:
            data += connection.recv(_MESSAGE_BYTES)
        engine, words, environment = json.loads(data[4:])
        try:
            answer = service.answer(engine, words, environment, files)
        except RefusedError as error:
            answer = (125, f"Error: {error}")
        for file in files:
            os.close(file)
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(json.dumps(answer).encode())


def ask(engine: str, words: list[str]) -> int:
    """Be the client."""
    host = os.environ.get("DOCKER_HOST" if engine == "docker" else "CONTAINER_HOST", "")
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(host.removeprefix("unix://"))
        except OSError:
            sys.stderr.write(f"Cannot connect to the {engine} service at {host}. Is it running?\n")
            return 125 if words[0] == "run" else 1
        data = json.dumps((engine, words, dict(os.environ))).encode()
        data = len(data).to_bytes(4, "big") + data
        sent = socket.send_fds(connection, [data], [0, 1, 2])
        if sent < len(data):
            connection.sendall(data[sent:])
        code, text = json.loads(b"".join(iter(lambda: connection.recv(_MESSAGE_BYTES), b"")))
    (sys.stderr if code else sys.stdout).write(f"{text}\n" if text else "")
    return int(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
