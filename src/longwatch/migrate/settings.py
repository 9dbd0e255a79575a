"""`longwatch.toml` of a migrate watch, as frozen types. Names are the keys of the file; units stand in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from longwatch.kernel import config
from longwatch.kernel.config import Problem, at
from longwatch.kernel.errors import PathError
from longwatch.kernel.files import contained
from longwatch.kernel.settings import KernelSettings
from longwatch.migrate import profiles
from longwatch.migrate.names import bad_branch, bad_name, bad_path, bad_pattern, bad_remote
from longwatch.migrate.profiles import Extension, Profile, QueueSettings
from longwatch.sandbox import choice
from longwatch.sandbox.choice import Sandboxing

KIND = "migrate"
FILE = "longwatch.toml"
ADAPTERS = ("acp", "command", "replay", "codex", "claude")


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[repository]`: where the work happens and what the worker must not touch.

    Patterns are git-style globs relative to the repository's root: `*` stays inside a folder, `**` crosses folders, a
    pattern without a slash matches a name in any folder, one that ends in a slash everything below.
    """

    path: str = "."
    """Where the git repository lies, relative to this file's folder: that folder itself, or one inside it."""
    branch: str
    """The one branch that verified changes are committed on, as `git branch --show-current` prints it."""
    tasks: str = "tasks"
    """The folder of the task cards, relative to the repository's root."""
    tests: tuple[str, ...] = ()
    """What counts as a test file; empty: the built-in patterns of all known test runners."""
    protected: tuple[str, ...] = ()
    """Besides the built-in ones (build files, CI, test configuration, this file, the cards)."""
    preflight: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed before each attempt, run in the repository with your own rights (`["git", "fetch"]`)."""
    changeable: tuple[str, ...] = ()
    """Built-in protected patterns that this repository allows the worker to change."""


class Interrupted(StrEnum):
    """What follows when an attempt was cut at an unknown point."""

    RETRY = "retry"
    RECONCILE = "reconcile"


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[worker]`: who does the work, and within which limits."""

    adapter: str
    """`codex`, `claude`, `acp` (any agent that speaks the Agent Client Protocol), `command` or `replay`."""
    argv: tuple[str, ...] = ()
    """For `command` and `acp`: the program and its arguments. For `replay`: the folder of recorded attempts. Else: the program's path, if not on PATH."""
    model: str = ""
    """The model that the program is asked to use; empty: the program's own default."""
    options: tuple[str, ...] = ()
    """More arguments for the program, as they are."""
    prompt: str = "prompt.md"
    """The template of what the worker is told, relative to this file's folder."""
    network: bool = False
    """Whether the worker may use the network; a program that asks a model needs it."""
    environment: tuple[str, ...] = ()
    """Names of variables that the worker may see (an API key)."""
    max_parallel: int = 1
    """So many jobs are worked at at once, each in a clone of its own; they land one by one. More than 1 needs git 2.38."""
    max_attempts: int = 3
    """So many refused attempts at one job block it."""
    retry_delay_s: float = 10.0
    """The wait between two attempts at one job."""
    interrupted: Interrupted = Interrupted.RETRY
    """What follows when an attempt was cut at an unknown point: `retry` in a fresh checkout, or `reconcile`."""
    model_start_timeout_s: float = 180.0
    """So long may the model take to its first action; after that the provider counts as down."""
    model_idle_timeout_s: float = 600.0
    """So long may the model be silent with no command of its own running."""
    wall_s: float = 7200.0
    """The longest time for one attempt."""
    idle_s: float = 1800.0
    """The longest time without output, CPU or I/O in the worker's whole process tree."""
    log_bytes: int = 256 * 1024**2
    """The most that an attempt may write to its log."""
    memory_bytes: int = 8 * 1024**3
    """The most memory for the worker's whole process tree."""
    processes: int = 512
    """The most processes and threads in the worker's tree."""
    file_bytes: int = 4 * 1024**3
    """The largest single file that the worker may write."""


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[budget]`: 0 means no limit. Reserved before a worker starts; unknown usage counts as the whole reservation."""

    tokens_per_attempt: int = 0
    """Reserved for each attempt before it starts. One that is seen to use more is ended, and the run with exit code 4."""
    tokens: int = 0
    """For the life of the watch; needs `tokens_per_attempt`."""
    usd_per_attempt: float = 0.0
    """The same in US dollars."""
    usd: float = 0.0
    """For the life of the watch, in US dollars; needs `usd_per_attempt`."""


class Census(StrEnum):
    """How the test ids of a check are found in what it leaves behind."""

    AUTO = "auto"
    PYTEST = "pytest"
    UNITTEST = "unittest"
    NODE = "node"
    JEST = "jest"
    VITEST = "vitest"
    MOCHA = "mocha"
    CARGO = "cargo"
    GO = "go"
    TAP = "tap"
    CTEST = "ctest"
    NONE = "none"
    """This check runs no tests (a linter, a compiler)."""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[checks]]`: a command that proves something. argv only, no shell."""

    name: str
    """What cards and receipts call it."""
    argv: tuple[str, ...]
    """The program and its arguments, one word each."""
    kind: str = "test"
    """`test`, `build`, `lint`, `typecheck`, or a word of your own. Only a `test` must run tests."""
    cwd: str = "."
    """The folder it runs in, relative to the repository's root."""
    timeout_s: float = 1800.0
    """The longest time it may take; longer is a failure."""
    census: Census = Census.AUTO
    """How the tests that ran are counted; `auto` recognises the runner from its output."""
    fails_before: bool = False
    """It must fail on the tree before the change: the proof that it observes the task."""


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sandbox]`: what the worker and the checks may see of this machine."""

    kind: str = "bubblewrap"
    """`bubblewrap`; `docker` or `podman`, which need an `image`; or `none`, which must be asked for: then nothing protects
    this machine from the worker."""
    image: str = ""
    """For `docker` and `podman`: an image on this machine, best by its digest (`name@sha256:…`). All programs are its own."""
    expose: tuple[str, ...] = ()
    """More folders that are shown read-only, at their own path (a tool chain under the home)."""
    share: tuple[str, ...] = ()
    """Ignored folders of the repository that checks need (`node_modules`, `.venv`): shown read-only in each checkout."""
    tmp_bytes: int = 2 * 1024**3
    """The size of the private temporary folder."""
    check_network: bool = False
    """Whether checks may use the network."""
    check_memory_bytes: int = 8 * 1024**3
    """The most memory for one check's whole process tree."""
    check_processes: int = 512
    """The most processes and threads of one check."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[policy]`: what checks may be."""

    executables: tuple[str, ...] = ()
    """Besides the built-in allow-list."""
    forbidden_words: tuple[str, ...] = ()
    """Besides the profile's: words that no check's command may hold (a browser that is not permitted)."""
    required_kinds: tuple[str, ...] = ()
    """Kinds of which every job needs at least one check; written out, it must hold all that the profile requires."""


class Publish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[publish]`: what happens to a verified change."""

    commit: bool = True
    """Commit verified changes on the branch; otherwise the watch stops at `ready_to_publish`."""
    push: bool = False
    """Push the branch after each commit."""
    remote: str = "origin"
    """The name of the git remote to push to."""
    push_tries: int = 4
    """So many tries for one push, with growing pauses."""


class MigrateSettings(KernelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    repository: Repository
    worker: WorkerSettings
    checks: tuple[Check, ...] = ()
    budget: Budget = Budget()
    sandbox: SandboxSettings = SandboxSettings()
    policy: Policy = Policy()
    publish: Publish = Publish()
    profile: Extension = Extension()
    queue: QueueSettings = QueueSettings()

    @property
    def where(self) -> Sandboxing:
        """Where the worker and the checks run."""
        return Sandboxing(self.sandbox.kind, self.sandbox.image)

    def policy_in_force(self) -> Profile:
        """Return the profile with all that this file adds to it.

        Raises:
            ConfigError: there is no such profile.
        """
        found = profiles.effective(self.profile, self.queue)
        kinds = tuple(dict.fromkeys((*found.required_kinds, *self.policy.required_kinds)))
        words = tuple(dict.fromkeys((*found.forbidden_words, *self.policy.forbidden_words)))
        return msgspec.structs.replace(found, required_kinds=kinds, forbidden_words=words)


def load(watch_dir: Path) -> MigrateSettings:
    """Return the settings of the watch in `watch_dir`, fit to begin work with.

    Raises:
        ConfigError: the file is wrong, or a path in it leaves its root over a symbolic link; all problems at once.
    """
    path = watch_dir / FILE
    settings = config.load(path, MigrateSettings, problems)
    config.refuse(path, _leaving(watch_dir, settings))
    return settings


def problems(settings: MigrateSettings) -> Iterator[Problem]:
    """Yield everything that is wrong with the meaning of the settings. Pure."""
    if settings.kind != KIND:
        yield Problem(at("kind", settings.kind), f'must be "{KIND}" for this kind of watch')
    yield from _repository_problems(settings.repository)
    yield from _worker_problems(settings.worker)
    yield from _budget_problems(settings.budget)
    yield from _sandbox_problems(settings.sandbox)
    yield from _publish_problems(settings.publish)
    found = tuple(profiles.problems(settings.profile, settings.queue))
    yield from found
    if not found:
        yield from _policy_problems(settings)
        yield from _checks_problems(settings)


def check_problems(key: str, check: Check) -> Iterator[Problem]:
    """Yield what is wrong with one check, whether it stands in the settings or in a card."""
    yield from _refused(f"{key}.name", [check.name], bad_name)
    if not check.argv or not check.argv[0]:
        yield Problem(at(f"{key}.argv", check.argv), 'must begin with a program, like ["pytest", "-q"]')
    if any("\0" in word for word in check.argv):
        yield Problem(at(f"{key}.argv", check.argv), "must have no NUL character")
    yield from _refused(f"{key}.kind", [check.kind], bad_name)
    yield from _refused(f"{key}.cwd", [check.cwd], bad_path)
    yield from config.not_positive(key, check, "timeout_s")
    if check.kind == "test" and check.census is Census.NONE:
        mend = "a check of kind `test` must count its tests: choose its runner, or give it another kind"
        yield Problem(at(f"{key}.census", check.census), mend)


def _repository_problems(repository: Repository) -> Iterator[Problem]:
    for name in ("path", "tasks"):
        yield from _refused(f"repository.{name}", [getattr(repository, name)], bad_path)
    yield from _refused("repository.branch", [repository.branch], bad_branch)
    for name in ("tests", "protected", "changeable"):
        yield from _refused(f"repository.{name}", getattr(repository, name), bad_pattern)


def _worker_problems(worker: WorkerSettings) -> Iterator[Problem]:
    if worker.adapter not in ADAPTERS:
        mend = f"is no adapter{config.nearest(worker.adapter, ADAPTERS)}"
        yield Problem(at("worker.adapter", worker.adapter), mend)
    if worker.adapter in {"acp", "command"} and not worker.argv:
        mend = f"the adapter `{worker.adapter}` needs the program and its arguments"
        yield Problem(at("worker.argv", worker.argv), mend)
    if worker.adapter == "replay" and len(worker.argv) != 1:
        yield Problem(
            at("worker.argv", worker.argv), "the adapter `replay` needs the one folder of recorded attempts"
        )
    if any(not word or "\0" in word for word in worker.argv):
        yield Problem(at("worker.argv", worker.argv), "must have no empty word and no NUL character")
    yield from _refused("worker.prompt", [worker.prompt], bad_path)
    yield from config.bad_variables("worker.environment", worker.environment)
    times = ("model_start_timeout_s", "model_idle_timeout_s", "wall_s", "idle_s")
    sizes = ("log_bytes", "memory_bytes", "processes", "file_bytes")
    yield from config.not_positive("worker", worker, *times, *sizes)
    yield from config.too_small("worker", worker, {"max_attempts": 1, "max_parallel": 1, "retry_delay_s": 0})


def _budget_problems(budget: Budget) -> Iterator[Problem]:
    names = ("tokens_per_attempt", "tokens", "usd_per_attempt", "usd")
    yield from config.too_small("budget", budget, dict.fromkeys(names, 0))
    for unit in ("tokens", "usd"):
        whole, one = getattr(budget, unit), getattr(budget, f"{unit}_per_attempt")
        if 0 < whole < one:
            mend = f"is more than all of budget.{unit} ({whole:g}): no attempt could ever start"
            yield Problem(at(f"budget.{unit}_per_attempt", one), mend)
        if whole > 0 == one:
            mend = f"must be set where budget.{unit} is: an attempt counts for so much if nobody can say what it used"
            yield Problem(at(f"budget.{unit}_per_attempt", one), mend)


def _sandbox_problems(sandbox: SandboxSettings) -> Iterator[Problem]:
    yield from choice.problems(sandbox.kind, sandbox.image)
    yield from _refused("sandbox.expose", sandbox.expose, _bad_exposed)
    yield from _refused("sandbox.share", sandbox.share, _bad_shared)
    yield from config.not_positive("sandbox", sandbox, "tmp_bytes", "check_memory_bytes", "check_processes")


def _publish_problems(publish: Publish) -> Iterator[Problem]:
    yield from _refused("publish.remote", [publish.remote], bad_remote)
    yield from config.too_small("publish", publish, {"push_tries": 1})
    if publish.push and not publish.commit:
        yield Problem(
            at("publish.push", publish.push), "needs publish.commit = true: there is nothing else to push"
        )


def _policy_problems(settings: MigrateSettings) -> Iterator[Problem]:
    policy, profile = settings.policy, settings.policy_in_force()
    yield from _refused("policy.required_kinds", policy.required_kinds, bad_name)
    for kind in profiles.shipped(profile.name).required_kinds if policy.required_kinds else ():
        if kind not in policy.required_kinds:
            mend = f'must hold "{kind}": the profile {profile.name} requires it, and it cannot be configured away'
            yield Problem(at("policy.required_kinds", policy.required_kinds), mend)
    for name in ("executables", "forbidden_words"):
        if not all(word.strip() for word in getattr(policy, name)):
            yield Problem(at(f"policy.{name}", getattr(policy, name)), "must have no empty word")
    for program in policy.executables:
        for word in profile.forbidden_words:
            if word.strip() and word.casefold() in program.casefold():
                mend = f"holds the forbidden word {word!r}: leave it out"
                yield Problem(at("policy.executables", program), mend)


def _checks_problems(settings: MigrateSettings) -> Iterator[Problem]:
    """Without checks nothing could ever be verified, so no token may be spent (specification M23)."""
    checks = settings.checks
    if not checks:
        mend = 'there are none: add at least one, like [[checks]] name = "tests", argv = ["pytest", "-q"]'
        yield Problem("checks", mend)
        return
    for number, check in enumerate(checks):
        yield from check_problems(f"checks[{number}]", check)
    for name, count in Counter(check.name.lower() for check in checks).items():
        if count > 1:
            yield Problem(at("checks.name", name), f"{count} checks have this name: give each its own")
    profile = settings.policy_in_force()
    for kind in profile.required_kinds:
        if kind not in {check.kind for check in checks}:
            yield Problem("checks", f'no check has the required kind: add one with kind = "{kind}"')
    names = {check.name for check in checks}
    for name in profile.queue.handoff_checks:
        if name not in names:
            yield Problem(at("queue.handoff_checks", name), f"is no check{config.nearest(name, names)}")


def _bad_exposed(path: str) -> str:
    if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
        return "must be a whole path from / without `..`"
    return "" if path.strip("/") else "must not be the whole file system"


def _bad_shared(path: str) -> str:
    if path.strip("./") == "":
        return "must be a folder inside the repository, not all of it"
    return bad_path(path) or bad_pattern(path)


def _refused(key: str, values: Iterable[str], rule: Callable[[str], str]) -> Iterator[Problem]:
    for value in values:
        mend = rule(value)
        if mend:
            yield Problem(at(key, value), mend)


def _leaving(watch_dir: Path, settings: MigrateSettings) -> Iterator[Problem]:
    """Yield the paths that lead outside over a symbolic link (specification K34)."""
    yield from _outside(watch_dir, "repository.path", settings.repository.path)
    yield from _outside(watch_dir, "worker.prompt", settings.worker.prompt)
    repository = watch_dir / settings.repository.path
    yield from _outside(repository, "repository.tasks", settings.repository.tasks)
    for number, check in enumerate(settings.checks):
        yield from _outside(repository, f"checks[{number}].cwd", check.cwd)


def _outside(root: Path, key: str, path: str) -> Iterator[Problem]:
    try:
        contained(root, path)
    except PathError as error:
        yield Problem(at(key, path), str(error))
