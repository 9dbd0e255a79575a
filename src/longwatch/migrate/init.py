"""`longwatch init migrate`: a watch for any git repository, with everything found out that can be found out.

Nothing that exists is ever overwritten. `longwatch.toml` is written last, so an init that was cut short can be
repeated. No card is live afterwards: a run straight after an init spends nothing.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path

import msgspec

from longwatch.kernel.config import nearest, refuse
from longwatch.kernel.errors import ConfigError, PathError, RefusedError
from longwatch.kernel.files import create, make_folder, read_bounded, replace
from longwatch.migrate import profiles, skeleton
from longwatch.migrate.detect import Detected, Found, Repository, detect
from longwatch.migrate.profiles import Profile, QueueSettings
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import ADAPTERS, FILE, MigrateSettings, problems

EXAMPLE = "000-example.md.example"
_EXCLUDED = ".longwatch/"
_EXCLUDE_BYTES = 1024 * 1024
_READABLE = 0o644
_SLOT = re.compile(r"\{\{ ([a-z]+) \}\}")
_KEYS = {"codex": ("OPENAI_API_KEY",), "claude": ("ANTHROPIC_API_KEY",)}
_NEEDED = {
    "acp": "the agent and its arguments, like --argv opencode --argv acp",
    "command": "the program and its arguments",
    "replay": "the folder of recorded attempts",
}
_PROMPTS = ("prompt.md", "longwatch-prompt.md")
_FOLDERS = ("tasks", "longwatch-tasks")


class WorkerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to work; an empty adapter means: the first agent program that is found here."""

    adapter: str = ""
    argv: tuple[str, ...] = ()


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    """What an init did, and what a person does next."""

    root: Path
    files: tuple[str, ...]
    """What was written, relative to `root`."""
    worker: str
    checks: tuple[Found, ...]
    missing: tuple[str, ...]
    """Programs that the watch needs and that are not here."""
    hints: tuple[str, ...]
    """Sentences, most important first."""


class _Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Which names are free."""

    tasks: str
    """The folder of task cards; empty where the profile brings an authoritative queue."""
    prompt: str
    profile: Profile


def initialise(
    folder: Path, choice: WorkerChoice, *, profile: str = "plain", search_path: str | None = None
) -> Initialised:
    """Make the top folder of a git repository a watch. Programs are looked for on `search_path`, or on PATH.

    Raises:
        RefusedError: the folder is not fit for it, or a watch already; the message says what to do.
        ConfigError: the choice of worker or profile is wrong.
    """
    policy = profiles.shipped(profile)
    git, branch = _repository(folder)
    root = git.root
    if os.path.lexists(root / FILE):
        raise RefusedError(
            f"{root / FILE} exists and was left as it is: edit it, or move it away to begin anew"
        )
    files = frozenset(os.fsdecode(git.run("ls-files", "-z")).split("\0")) - {""}
    repository = Repository(root=root, files=files, search_path=search_path)
    worker = _worker(choice, repository)
    detected = detect(repository)
    layout = _Layout(
        tasks="" if policy.queue.pointer else _free(root, _FOLDERS, _holds_no_cards),
        prompt=_free(root, _PROMPTS, lambda path: _same_or_missing(path, shipped(policy.prompt))),
        profile=policy,
    )
    text = _settings_text(branch, worker, detected, layout)
    queue = _checked(text).policy_in_force().queue
    absent = _skeleton(root, queue) if queue.pointer else _example(layout)
    written = (*_exclude(git), *_write(root, layout, absent, text))
    missing = _missing(worker, detected, repository)
    hints = tuple(_next_steps(worker, detected, layout, missing))
    return Initialised(
        root=root, files=written, worker=worker.adapter, checks=detected.found, missing=missing, hints=hints
    )


def shipped(name: str) -> str:
    """Return a text that comes with the program: `migrate.md`, the prompt, for one."""
    return resources.files("longwatch").joinpath("prompts", name).read_text("utf-8")


def _repository(folder: Path) -> tuple[Git, str]:
    if not folder.is_dir():
        raise RefusedError(f"{folder} is no folder: go to the repository first")
    place = Git(folder.resolve()).answer("rev-parse", "--is-bare-repository", "--is-inside-git-dir")
    if not place.ok and b"not a git repository" in place.stderr:
        raise RefusedError(f"{folder} is in no git repository: run `git init` there and make a first commit")
    bare, _, inside = place.stdout.strip().partition(b"\n")
    if bare == b"true":
        raise RefusedError(f"{folder} is a bare repository: clone it, and run this in the clone")
    if inside == b"true":
        raise RefusedError(f"{folder} lies inside a .git folder: go to the top of the working tree")
    git = Git.open(folder.resolve())
    if git.root.resolve() != folder.resolve():
        raise RefusedError(f"{folder} is not the top of its repository: run this in {git.root}")
    if git.head() is None:
        raise RefusedError(
            f"{folder} has no commit yet: make a first one, so that there is something to compare with"
        )
    branch = git.branch()
    if branch is None:
        raise RefusedError(f"{folder} has no branch checked out: `git switch` to the one that work goes to")
    return git, branch


def _worker(choice: WorkerChoice, repository: Repository) -> WorkerChoice:
    if choice.adapter and choice.adapter not in ADAPTERS:
        raise ConfigError(f"--worker {choice.adapter}: is no adapter{nearest(choice.adapter, ADAPTERS)}")
    if choice.adapter in _NEEDED and not choice.argv:
        raise ConfigError(f"--worker {choice.adapter} needs --argv: {_NEEDED[choice.adapter]}")
    if choice.argv and not choice.adapter:
        raise ConfigError("--argv needs --worker: say which adapter it is for")
    if choice.adapter:
        return choice
    found = (name for name in _KEYS if repository.finds(name))
    return WorkerChoice(adapter=next(found, "codex"))


def _free(root: Path, names: tuple[str, ...], free: Callable[[Path], bool]) -> str:
    for name in names:
        if not os.path.lexists(root / name) or free(root / name):
            return name
    raise RefusedError(f"{root} already has {' and '.join(names)}: move one of them away first")


def _holds_no_cards(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return False
    others = {
        one.name for one in path.iterdir() if one.suffix.lower() == ".md" and one.name.lower() != "readme.md"
    }
    return not others and _same_or_missing(path / EXAMPLE, shipped("example-card.md"))


def _same_or_missing(path: Path, text: str) -> bool:
    data = text.encode()
    try:
        return read_bounded(path, len(data)) == data
    except FileNotFoundError:
        return True
    except PathError:
        return False


def _settings_text(branch: str, worker: WorkerChoice, detected: Detected, layout: _Layout) -> str:
    values: Mapping[str, str] = {
        "branch": _toml(branch),
        "queue": _queue_text(layout),
        "adapter": _toml(worker.adapter),
        "argv": _argv_text(worker),
        "prompt": _toml(layout.prompt),
        "network": _toml(worker.adapter in {*_KEYS, "acp"}),
        "environment": _toml(_KEYS.get(worker.adapter, ())),
        "checks": _checks_text(layout.profile, detected),
        "share": _toml(detected.share),
    }
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), shipped("longwatch.toml"))


def _queue_text(layout: _Layout) -> str:
    if not layout.tasks:
        return "# What is to be done stands in the authoritative queue: see [queue] below."
    return (
        "# The folder of the task cards. Each *.md file in it is one job for the worker; "
        f"{layout.tasks}/{EXAMPLE} shows how.\ntasks = {_toml(layout.tasks)}"
    )


def _checks_text(profile: Profile, detected: Detected) -> str:
    """A profile with a queue of its own brings its checks; else they are what was found."""
    if profile.queue.pointer:
        return shipped(f"{profile.name}.toml").rstrip()
    return "\n\n".join(_check_text(one) for one in detected.found) or _NO_CHECKS


_NO_CHECKS = """\
# Checks are commands that prove something: argv only, no shell. No test command was found in this repository, and
# nothing begins before there is one. Take the # away and name yours:
# [[checks]]
# name = "tests"
# argv = ["sh", "tools/test.sh"]
# kind = "test"
# timeout_s = 1800.0"""


def _argv_text(worker: WorkerChoice) -> str:
    if worker.argv:
        return f"argv = {_toml(worker.argv)}"
    return (
        f'# Where the program is, if it is not on PATH: argv = ["/opt/{worker.adapter}/bin/{worker.adapter}"]'
    )


def _check_text(found: Found) -> str:
    check = found.check
    lines = [
        f"# Found: {_one_line(found.because)}. It is run by Longwatch itself, in a clean checkout, after the worker has ended.",
        "[[checks]]",
        f"name = {_toml(check.name)}",
        f"argv = {_toml(check.argv)}",
        f"kind = {_toml(check.kind)}",
        f"timeout_s = {check.timeout_s}",
    ]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _toml(value: object) -> str:
    """Return a value as TOML writes it; its strings and lists are those of JSON, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(text: str) -> MigrateSettings:
    """Refuse to write what would not be read; that there are no checks yet is the one thing that may be wrong."""
    settings = msgspec.toml.decode(text, type=MigrateSettings)
    refuse("longwatch init", (one for one in problems(settings) if settings.checks or one.where != "checks"))
    return settings


def _exclude(git: Git) -> Iterator[str]:
    """Keep the watch's memory out of git in this clone only, not in the person's .gitignore."""
    path = git.internal("info/exclude")
    try:
        before = read_bounded(path, _EXCLUDE_BYTES)
    except FileNotFoundError:
        before = b""
    lines = {line.strip() for line in before.split(b"\n")}
    if _EXCLUDED.encode() in lines:
        return
    make_folder(path.parent)
    gap = b"" if before.endswith(b"\n") or not before else b"\n"
    replace(path, before + gap + _EXCLUDED.encode() + b"\n", _READABLE)
    yield os.path.relpath(path, git.root)


def _write(root: Path, layout: _Layout, more: Mapping[str, str], text: str) -> Iterator[str]:
    wanted = {layout.prompt: shipped(layout.profile.prompt), **more, FILE: text}
    for name, content in wanted.items():
        make_folder((root / name).parent)
        create(root / name, content.encode(), _READABLE)
        yield name


def _skeleton(root: Path, queue: QueueSettings) -> dict[str, str]:
    texts = {"card": shipped("first-task.md"), "generator": shipped("handoff.py.txt")}
    return skeleton.missing(root, queue, texts)


def _example(layout: _Layout) -> dict[str, str]:
    return {f"{layout.tasks}/{EXAMPLE}": shipped("example-card.md")}


def _missing(worker: WorkerChoice, detected: Detected, repository: Repository) -> tuple[str, ...]:
    programs = ["bwrap"]
    if worker.adapter != "replay":
        programs.append(worker.argv[0] if worker.argv else worker.adapter)
    absent = (program for program in programs if not repository.finds(program))
    return tuple(dict.fromkeys((*absent, *detected.missing)))


def _next_steps(
    worker: WorkerChoice, detected: Detected, layout: _Layout, missing: tuple[str, ...]
) -> Iterator[str]:
    queue = layout.profile.queue
    if queue.pointer:
        yield f"Name your sources, generators and checks in {FILE}."
        yield skeleton.next_step(queue)
    elif not any(one.check.kind == "test" for one in detected.found):
        yield f"No test command was found: add a check of kind test to {FILE}; nothing begins without one."
    if "bwrap" in missing:
        yield "Install bubblewrap (bwrap): without it nothing protects this machine from the worker."
    others = [program for program in missing if program != "bwrap"]
    if others:
        yield f"Not found here: {', '.join(others)}. Install them, or change {FILE}."
    yield from detected.hints
    for name in _KEYS.get(worker.adapter, ()):
        yield f"Set {name} in the environment before you start, if {worker.adapter} needs it."
    if worker.adapter == "acp":
        yield (
            "The sandbox hides your home, and with it what the agent keeps there: hand on its key and its configuration "
            "with worker.environment and sandbox.expose."
        )
    if queue.pointer:
        yield "Then: longwatch doctor says what is left. Commit the queue, which counts only as committed, and longwatch run."
        return
    yield f"Write the first card: cp {layout.tasks}/{EXAMPLE} {layout.tasks}/001-first.md, and edit it. The example is no job."
    yield f"Then: longwatch doctor, and longwatch run. Commit {FILE}, {layout.prompt} and {layout.tasks} if others work with them."
