"""Profiles: the policy of a kind of migration, as data that ships with the package (specification M20, M21).

`longwatch.toml` may add to a profile and never take away: the effective policy is a union.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec

from longwatch.kernel.config import Problem, at, nearest
from longwatch.kernel.errors import ConfigError
from longwatch.migrate.names import bad_name, bad_path, bad_pattern
from longwatch.migrate.profiles.law import CaseKind

NAMES = ("plain", "blender-web")
SLOT = "{task}"


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[queue]`: the queue in pointer form. Paths are relative to the repository's root; what is left out is the profile's.

    Without a `pointer` the queue is the folder of task cards.
    """

    pointer: str = ""
    """The Markdown file whose table names the current task."""
    task_column: str = ""
    """Heading of the column with the task's id."""
    card_column: str = ""
    """Heading of the column with the path of the task's card."""
    parent_column: str = ""
    """Heading of the column with the path of the manifest that authorises the task."""
    manifest: str = ""
    """Where a task's manifest is; `{task}` stands for its id."""
    backlog: str = ""
    """Where a task's jobs are; `{task}` stands for its id. A path that ends in `.md` is a Markdown table, any other is
    JSON. Left out: the task is its own one job."""
    priorities: tuple[str, ...] = ()
    """The words that a job's priority may be, most urgent first. Left out: whole numbers, higher first."""
    inventory: str = ""
    """The units of the source system that are to be ported."""
    catalog: str = ""
    """The user-facing routes, and the units behind each."""
    parity: str = ""
    """Which files of this repository port which unit."""
    source_root: str = ""
    """The folder of the source system that references are relative to, inside the repository or by its whole path."""
    handoff: tuple[tuple[str, ...], ...] = ()
    """The repository's own generators, one command each, that bring the queue forward when a task is finished."""
    handoff_checks: tuple[str, ...] = ()
    """Names of the checks that must pass after the generators ran; left out: all."""
    generated: tuple[str, ...] = ()
    """Patterns of what the generators may write besides the pointer, manifests, inventory and parity map."""


class Extension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[profile]`: which policy holds, and what this repository asks for besides. Nothing here can take away."""

    name: str = "plain"
    """`plain`, or `blender-web`."""
    required_kinds: tuple[str, ...] = ()
    """More kinds of which every job needs a check."""
    case_kinds: tuple[CaseKind, ...] = ()
    """More kinds of cases, each with its `name` and its `laws`."""
    runtimes: tuple[str, ...] = ()
    """More runtimes that a case may come from."""
    required_runtimes: tuple[str, ...] = ()
    """More runtimes that at least one case of every job must come from."""
    unit_cases: tuple[str, ...] = ()
    """More kinds of cases of which every unit needs one."""
    artifact_kinds: tuple[str, ...] = ()
    """More kinds of artifacts that a worker may declare."""
    required_artifacts: tuple[str, ...] = ()
    """More kinds of which every job must declare an artifact."""
    forbidden_words: tuple[str, ...] = ()
    """More words that no command may hold."""
    protected: tuple[str, ...] = ()
    """More patterns of paths that no worker may change."""


_UNITED = tuple(name for name in Extension.__struct_fields__ if name != "name")


class Profile(Extension, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy: as it ships, or with what a repository adds."""

    prompt: str
    """Name of the prompt that `init` writes for it."""
    queue: QueueSettings = QueueSettings()

    @property
    def has_cases(self) -> bool:
        """True if workers declare units, references and cases."""
        return bool(self.case_kinds)

    def case_kind(self, name: str) -> CaseKind | None:
        """Return the kind of case with this name."""
        return next((kind for kind in self.case_kinds if kind.name == name), None)


@cache
def shipped(name: str) -> Profile:
    """Return a profile as it ships.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in NAMES:
        raise ConfigError(f"profile {name!r} is none that ships{nearest(name, NAMES)}")
    text = resources.files("longwatch.migrate.profiles").joinpath(f"{name}.toml").read_text("utf-8")
    return msgspec.structs.replace(msgspec.toml.decode(text, type=Profile), name=name)


def effective(extension: Extension, queue: QueueSettings) -> Profile:
    """Return the profile with what a repository adds to it and where its queue lies.

    Raises:
        ConfigError: there is no such profile.
    """
    base = shipped(extension.name)
    united = {name: _union(getattr(base, name), getattr(extension, name)) for name in _UNITED}
    own = {name: value for name in queue.__struct_fields__ if (value := getattr(queue, name))}
    return msgspec.structs.replace(base, **united, queue=msgspec.structs.replace(base.queue, **own))


def _union(base: tuple[object, ...], more: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(dict.fromkeys((*base, *more)))


def problems(extension: Extension, queue: QueueSettings) -> Iterator[Problem]:
    """Yield what is wrong with `[profile]` and `[queue]`. Pure."""
    if extension.name not in NAMES:
        yield Problem(at("profile.name", extension.name), f"is no profile{nearest(extension.name, NAMES)}")
        return
    profile = effective(extension, queue)
    yield from _kind_problems(extension)
    yield from _name_problems(extension, profile)
    yield from _queue_problems(profile)


def _kind_problems(extension: Extension) -> Iterator[Problem]:
    taken = {kind.name for kind in shipped(extension.name).case_kinds}
    for number, kind in enumerate(extension.case_kinds):
        where = at(f"profile.case_kinds[{number}].name", kind.name)
        if bad_name(kind.name):
            yield Problem(where, bad_name(kind.name))
        if kind.name in taken:
            mend = f"is defined already (profile {extension.name}), and a law cannot be replaced: choose another name"
            yield Problem(where, mend)
        taken.add(kind.name)
        if not all(kind.laws) or not kind.laws:
            yield Problem(f"profile.case_kinds[{number}].laws", "are empty: nothing would be proved; add one")
        try:
            kind.alternatives()
        except ConfigError as error:
            yield Problem(f"profile.case_kinds[{number}].laws", str(error))


def _name_problems(extension: Extension, profile: Profile) -> Iterator[Problem]:
    for field in ("required_kinds", "runtimes", "artifact_kinds"):
        for name in getattr(extension, field):
            if bad_name(name):
                yield Problem(at(f"profile.{field}", name), bad_name(name))
    kinds = tuple(kind.name for kind in profile.case_kinds)
    for field, known in (
        ("required_runtimes", profile.runtimes),
        ("unit_cases", kinds),
        ("required_artifacts", profile.artifact_kinds),
    ):
        for name in getattr(extension, field):
            if name not in known:
                yield Problem(at(f"profile.{field}", name), f"is not known{nearest(name, known)}")
    for pattern in extension.protected:
        if bad_pattern(pattern):
            yield Problem(at("profile.protected", pattern), bad_pattern(pattern))
    if not all(word.strip() for word in extension.forbidden_words):
        yield Problem(at("profile.forbidden_words", extension.forbidden_words), "must have no empty word")


def _queue_problems(profile: Profile) -> Iterator[Problem]:
    queue = profile.queue
    if not queue.pointer:
        yield from _listed(profile)
        return
    for name in ("pointer", "manifest", "backlog", "inventory", "catalog", "parity"):
        path = getattr(queue, name)
        mend = bad_path(path) or bad_pattern(path) if path else ""
        if mend:
            yield Problem(at(f"queue.{name}", path), mend)
    if SLOT not in queue.manifest:
        yield Problem(at("queue.manifest", queue.manifest), f"must hold {SLOT}, the place of the task's id")
    if queue.backlog and SLOT not in queue.backlog:
        yield Problem(at("queue.backlog", queue.backlog), f"must hold {SLOT}, the place of the task's id")
    if not queue.handoff or not all(argv and argv[0] for argv in queue.handoff):
        mend = 'must name the repository\'s generators, like [["python3", "tools/handoff.py"]]: without them no task ends'
        yield Problem(at("queue.handoff", queue.handoff), mend)
    for pattern in queue.generated:
        if bad_pattern(pattern):
            yield Problem(at("queue.generated", pattern), bad_pattern(pattern))
    yield from _source_problems(profile)


def _listed(profile: Profile) -> Iterator[Problem]:
    queue = profile.queue
    if profile.has_cases:
        yield Problem(
            "queue.pointer", "is missing: cases need the units that an authoritative queue names; add it"
        )
    for name in ("manifest", "backlog", "inventory", "catalog", "parity", "source_root", "handoff"):
        if getattr(queue, name):
            mend = "needs queue.pointer: a folder of task cards has no such thing"
            yield Problem(at(f"queue.{name}", getattr(queue, name)), mend)


def _source_problems(profile: Profile) -> Iterator[Problem]:
    queue = profile.queue
    if profile.has_cases:
        for name in ("inventory", "catalog", "source_root"):
            if not getattr(queue, name):
                yield Problem(f"queue.{name}", f"is missing: profile {profile.name} needs it; add it")
    if queue.source_root and not queue.source_root.startswith(("/", "~/")) and bad_path(queue.source_root):
        yield Problem(at("queue.source_root", queue.source_root), bad_path(queue.source_root))
