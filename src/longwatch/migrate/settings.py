"""`longwatch.toml` of a migrate watch, as frozen types. Names are the keys of the file; units stand in them."""

from enum import StrEnum

import msgspec

from longwatch.kernel.settings import KernelSettings


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[repository]`: where the work happens and what the worker must not touch.

    Patterns are git-style globs relative to the repository's root: `*` stays inside a folder, `**` crosses folders, a
    pattern without a slash matches a name in any folder, one that ends in a slash everything below.
    """

    path: str = "."
    branch: str
    tasks: str = "tasks"
    tests: tuple[str, ...] = ()
    """What counts as a test file; empty: the built-in patterns of all known test runners."""
    protected: tuple[str, ...] = ()
    """Besides the built-in ones (build files, CI, test configuration, this file, the cards)."""
    changeable: tuple[str, ...] = ()
    """Built-in protected patterns that this repository allows the worker to change."""


class Interrupted(StrEnum):
    """What follows when an attempt was cut at an unknown point."""

    RETRY = "retry"
    RECONCILE = "reconcile"


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[worker]`: who does the work, and within which limits."""

    adapter: str
    """`command`, `replay`, `codex` or `claude`."""
    argv: tuple[str, ...] = ()
    """For `command`: the program. For `replay`: the folder of recorded attempts. Else: the program's path, if not on PATH."""
    model: str = ""
    options: tuple[str, ...] = ()
    """More arguments for the program, as they are."""
    prompt: str = "prompt.md"
    network: bool = False
    environment: tuple[str, ...] = ()
    """Names of variables that the worker may see (an API key)."""
    max_attempts: int = 3
    retry_delay_s: float = 10.0
    interrupted: Interrupted = Interrupted.RETRY
    model_start_timeout_s: float = 180.0
    model_idle_timeout_s: float = 600.0
    wall_s: float = 7200.0
    idle_s: float = 1800.0
    log_bytes: int = 256 * 1024**2
    memory_bytes: int = 8 * 1024**3
    processes: int = 512
    file_bytes: int = 4 * 1024**3


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[budget]`: 0 means no limit. Reserved before a worker starts; unknown usage counts as the whole reservation."""

    tokens_per_attempt: int = 0
    tokens: int = 0
    usd_per_attempt: float = 0.0
    usd: float = 0.0


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
    argv: tuple[str, ...]
    kind: str = "test"
    """`test`, `build`, `lint`, `typecheck`, or a word of your own. Only a `test` must run tests."""
    cwd: str = "."
    timeout_s: float = 1800.0
    census: Census = Census.AUTO
    fails_before: bool = False
    """It must fail on the tree before the change: the proof that it observes the task."""


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sandbox]`: what the worker and the checks may see of this machine."""

    kind: str = "bubblewrap"
    """`bubblewrap`, or `none`, which must be asked for: then nothing protects this machine from the worker."""
    expose: tuple[str, ...] = ()
    """More folders that are shown read-only, at their own path (a tool chain under the home)."""
    share: tuple[str, ...] = ()
    """Ignored folders of the repository that checks need (`node_modules`, `.venv`): shown read-only in each checkout."""
    tmp_bytes: int = 2 * 1024**3
    check_network: bool = False
    check_memory_bytes: int = 8 * 1024**3
    check_processes: int = 512


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[policy]`: what checks may be."""

    executables: tuple[str, ...] = ()
    """Besides the built-in allow-list."""
    forbidden_words: tuple[str, ...] = ()
    required_kinds: tuple[str, ...] = ("test",)


class Publish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[publish]`: what happens to a verified change."""

    commit: bool = True
    push: bool = False
    remote: str = "origin"
    push_tries: int = 4


class MigrateSettings(KernelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    repository: Repository
    worker: WorkerSettings
    checks: tuple[Check, ...] = ()
    budget: Budget = Budget()
    sandbox: SandboxSettings = SandboxSettings()
    policy: Policy = Policy()
    publish: Publish = Publish()
