"""What the receipts of a migrate watch are held against: git, the policy in force, and what each attempt was given.

The verification step signs with these values and `longwatch verify` checks with them, so the two cannot drift apart:
`policy` is the policy of each decision, `Candidate.attempt` and `Candidate.nonce` are the attempt and the nonce.
"""

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.attestation import Descriptor, DigestSet
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import PathError
from longwatch.kernel.signing import load_public
from longwatch.kernel.store import Store
from longwatch.kernel.verification import World
from longwatch.kernel.watch import Watch
from longwatch.migrate.place import Place
from longwatch.migrate.profiles import Profile
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import Check, MigrateSettings, Policy
from longwatch.migrate.steps import MigrateStep, Verify

POLICY_URI = "longwatch.toml#policy"
_ARTIFACT_BYTES = 256 * 1024**2
_canonical = msgspec.json.Encoder(order="sorted").encode


class _Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the settings that decides whether a change is accepted."""

    checks: tuple[Check, ...]
    policy: Policy
    profile: Profile
    tests: tuple[str, ...]
    protected: tuple[str, ...]
    changeable: tuple[str, ...]
    confined: bool


class GitSubjects:
    """Reads subjects: of a commit from git's objects, else from the watch's folder. Each is read once."""

    def __init__(self, git: Git, watch: Watch) -> None:
        """`git` is the person's repository."""
        self._git, self._watch = git, watch
        self._trees: dict[str, str | None] = {}
        self._files: dict[tuple[str | None, str], Digest | None] = {}

    def git_tree_of(self, commit: str) -> str | None:
        """Return the tree of a commit, or `None` if it is not there any more."""
        if commit not in self._trees:
            known = self._git.has(f"{commit}^{{commit}}")
            self._trees[commit] = self._git.tree_of(commit) if known else None
        return self._trees[commit]

    def blob_sha256(self, commit: str | None, path: str) -> Digest | None:
        """SHA-256 of a file's stored bytes; `None` if it is not there, or is no regular file."""
        if (commit, path) not in self._files:
            self._files[commit, path] = self._in_watch(path) if commit is None else self._in(commit, path)
        return self._files[commit, path]

    def _in(self, commit: str, path: str) -> Digest | None:
        if self.git_tree_of(commit) is None:
            return None
        content = self._git.show(commit, path)
        return None if content is None else digest.of_bytes(content)

    def _in_watch(self, path: str) -> Digest | None:
        try:
            content = files.read_bounded(files.contained(self._watch.root, path), _ARTIFACT_BYTES)
        except (FileNotFoundError, PathError):
            return None
        return digest.of_bytes(content)


def policy(settings: MigrateSettings) -> Descriptor:
    """Return the policy in force, for `Summary.policy`."""
    return Descriptor(uri=POLICY_URI, digest=DigestSet(sha256=_policy_digest(settings)))


def _policy_digest(settings: MigrateSettings) -> Digest:
    """Bind every setting that decides what is accepted."""
    repository = settings.repository
    rules = _Rules(
        checks=settings.checks,
        policy=settings.policy,
        profile=settings.policy_in_force(),
        tests=repository.tests,
        protected=repository.protected,
        changeable=repository.changeable,
        confined=settings.sandbox.kind != "none",
    )
    return digest.of_bytes(_canonical(rules))


def nonces(store: Store) -> dict[str, str]:
    """Return the nonce that each attempt was given, by its `Candidate.attempt`, from the steps that verified it."""
    decoder = msgspec.json.Decoder(MigrateStep)
    steps = (decoder.decode(past.step) for past in store.steps())
    return {s.candidate.attempt: s.candidate.nonce for s in steps if isinstance(s, Verify)}


def world(watch: Watch, settings: MigrateSettings, store: Store) -> World:
    """Return what the watch's receipts are held against now.

    Raises:
        ConfigError: there is no git repository.
        LongwatchError: the watch's public key cannot be read.
    """
    return World(
        trusted=frozenset({load_public(watch.keys)}),
        subjects=GitSubjects(Git.open(Place(watch, settings).repository), watch),
        policies={POLICY_URI: _policy_digest(settings)},
        nonces=nonces(store),
        heads=store.heads(),
    )
