"""What the receipts of a learn watch are held against: files of the watch, the policy, and each experiment's nonce."""

import msgspec

from longwatch.kernel import files
from longwatch.kernel.attestation import Descriptor, DigestSet
from longwatch.kernel.digest import Digest, of_bytes
from longwatch.kernel.errors import PathError, StateError
from longwatch.kernel.signing import load_public
from longwatch.kernel.store import Store
from longwatch.kernel.verification import World
from longwatch.kernel.watch import Watch
from longwatch.learn.generations.present import PACKAGE, sources
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import LearnState
from longwatch.learn.steps import Adopt, LearnStep

SESSION = "session"
"""What the receipt of an adopted session is an attempt of."""
POLICY_URI = "longwatch.toml#acceptance"
_ARTIFACT_BYTES = 8 * 1024**3
_canonical = msgspec.json.Encoder(order="sorted").encode


class WatchSubjects:
    """Reads subjects from the watch's folder; there are no commits here."""

    def __init__(self, watch: Watch) -> None:
        """`watch` is the learn watch."""
        self._watch = watch

    def git_tree_of(self, commit: str) -> str | None:  # noqa: ARG002 - the protocol's signature
        """There is no git here."""
        return None

    def blob_sha256(self, commit: str | None, path: str) -> Digest | None:
        """SHA-256 of a file of the watch; `None` if it is not there."""
        if commit is not None:
            return None
        try:
            return of_bytes(files.read_bounded(files.contained(self._watch.root, path), _ARTIFACT_BYTES))
        except (FileNotFoundError, PathError):
            return None


def policy(settings: LearnSettings) -> Descriptor:
    """Return the acceptance policy in force."""
    return Descriptor(uri=POLICY_URI, digest=DigestSet(sha256=_policy_digest(settings)))


def _policy_digest(settings: LearnSettings) -> Digest:
    return of_bytes(_canonical(settings.acceptance))


def code_digest() -> Digest:
    """Return the digest of the sources that train and judge."""
    return of_bytes(_canonical(sources(PACKAGE)))


def nonces(store: Store) -> dict[str, str]:
    """Return the nonce of each experiment, from the steps that adopted its adapter, and that of an adopted session."""
    decoder = msgspec.json.Decoder(LearnStep)
    steps = (decoder.decode(past.step) for past in store.steps())
    known = {f"experiment-{step.number}": step.window.nonce for step in steps if isinstance(step, Adopt)}
    try:
        session = msgspec.json.decode(store.snapshot().line, type=LearnState).adopted
    except StateError:
        # The state and the log do not fit together: nothing of the state is believed.
        session = None
    return known if session is None else {**known, SESSION: session.nonce}


def world(watch: Watch, settings: LearnSettings, store: Store) -> World:
    """Return what the watch's receipts are held against now."""
    return World(
        trusted=frozenset({load_public(watch.keys)}),
        subjects=WatchSubjects(watch),
        policies={POLICY_URI: _policy_digest(settings)},
        nonces=nonces(store),
        heads=store.heads(),
    )
