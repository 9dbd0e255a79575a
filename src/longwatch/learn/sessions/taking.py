"""A session becomes a new watch: made under another name, signed, and put in its place; a kill leaves all or nothing.

First the state is renamed to its place, then `longwatch.toml` appears: until then the folder is no watch. An adoption
that was cut between the two is finished by the same command.
"""

import os
import secrets
from pathlib import Path

import msgspec
import tomlkit

from longwatch.kernel import files
from longwatch.kernel.attestation import (
    LEVEL_VERIFIED,
    CheckFacts,
    DecisionFacts,
    Descriptor,
    DigestSet,
    Result,
    Summary,
    TestResult,
    artifact,
    citation,
)
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.digest import digest, of_bytes
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.journal import Note
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, sealed, settings, witness
from longwatch.learn.experiment import replay
from longwatch.learn.place import Place
from longwatch.learn.sessions.looking import Session
from longwatch.learn.state import Adoption, Decided, LearnState

STAGING = ".longwatch-adopting"
CONFIG = "adopted.toml"
"""In the watch's folder of ours: what `longwatch.toml` was at first."""
PROVED = ("accepted adapter", "verified training data", "completed base evaluation", "unbroken event log")
_CONFIG_BYTES = 1024 * 1024
_READABLE = 0o644
_PATHS = (("curriculum", "source"), ("curriculum", "public"), ("student", "model"), ("teacher", "model"))
"""Settings that may name something in the session's folder, besides all of `[audit]`."""


def unfinished(folder: Path) -> str:
    """Return the session whose adoption was cut just before its end, or nothing."""
    watch = Watch(folder)
    if os.path.lexists(watch.config) or not (watch.hidden / CONFIG).is_file() or not watch.database.is_file():
        return ""
    adopted = state_of(watch).adopted
    return adopted.session if adopted else ""


def state_of(watch: Watch) -> LearnState:
    """Return the state that a watch began with.

    Raises:
        StateError: it cannot be read.
    """
    store = Store.read(watch.database)
    try:
        return msgspec.json.decode(store.snapshot().line, type=LearnState)
    finally:
        store.close()


def finish(folder: Path) -> None:
    """Do the last part of an adoption."""
    watch = Watch(folder)
    files.remove_recorded(folder / STAGING, folder)
    # Last: a folder without it is no watch.
    files.create(watch.config, files.read_bounded(watch.hidden / CONFIG, _CONFIG_BYTES), _READABLE)


def take(folder: Path, session: Session) -> None:
    """Make `folder` a watch that goes on from the session's adapter. It must not be a watch yet.

    Raises:
        RefusedError: its settings cannot be taken over.
        NotReadyError: the disk is full; at most the folder `.longwatch-adopting` is left, and the next try removes it.
    """
    staging = Watch(folder / STAGING)
    files.remove_recorded(staging.root, folder)
    files.make_folder(staging.steps)
    files.make_folder(staging.receipts)
    config = _moved_settings(session)
    files.create(staging.config, config)
    place = Place(staging, settings.load(staging.root))
    _copy(place, session)
    _begin(place, session)
    files.create(staging.hidden / CONFIG, config)
    sealed.rename(staging.hidden, Watch(folder).hidden)
    finish(folder)


def _copy(place: Place, session: Session) -> None:
    store = place.adapters
    adapters.put(store, session.stored.folder, session.stored.adapter, session.stored.lineage)
    written = replay.write(place.replay, session.examples)
    if written != session.state.replay:
        raise RefusedError(
            f"{session.root}: the training data {session.state.replay[:12]} is written as {written[:12]} by this version: "
            "adopt it with the version of longwatch that made it"
        )


def _begin(place: Place, session: Session) -> None:
    """Make the key, the state, the receipt of the adoption, and the state that stands on it."""
    SigningKey.create(place.watch.keys)
    state = session.state
    adoption = Adoption(
        session=str(session.root),
        adapter=state.champion,
        receipt=session.decided.receipt,
        data=session.stored.lineage.data,
        nonce=secrets.token_hex(16),
    )
    begun = LearnState(
        schedule=state.schedule,
        # Not 0: what was taken over is no new beginning.
        serial=1,
        next_row=state.next_row,
        champion=state.champion,
        best=state.champion,
        replay=state.replay,
        adopted=adoption,
    )
    store = Store.create(place.watch.database, msgspec.json.encode(begun))
    try:
        generation = store.begin_generation(_note(session, adoption))
        receipt = _signed(place, session, adoption, store.snapshot().head.hex())
        decided = _decided(session, receipt)
        store.commit(generation, line=msgspec.json.encode(msgspec.structs.replace(begun, history=(decided,))))
    finally:
        store.close()


def _note(session: Session, adoption: Adoption) -> Note:
    text = (
        f"Adapter {adoption.adapter[:12]}, {len(session.examples)} examples and the curriculum's place are taken over from "
        f"{session.root}; base passed {session.decided.dev_base} of {session.decided.dev_total} there."
    )
    data = {"session": adoption.session, "adapter": adoption.adapter, "receipt": adoption.receipt}
    return Note("session.adopted", text, data)


def _decided(session: Session, receipt: str) -> Decided:
    return msgspec.structs.replace(
        session.decided,
        number=0,
        decision="adopted",
        sentences=(f"taken over from {session.root}", *session.decided.sentences),
        rounds=(),
        receipt=receipt,
        generation="",
    )


def _signed(place: Place, session: Session, adoption: Adoption, head: str) -> str:
    store, key = ReceiptStore(place.watch.receipts), SigningKey.load(place.watch.keys)
    root = place.adapters.relative_to(place.watch.root) / adoption.adapter
    contents = adapters.read(session.stored.folder)
    subjects = tuple(artifact(str(root / name), of_bytes(data)) for name, data in contents.items())
    at, policy = stamp(now().wall_s), witness.policy(place.settings)
    facts = CheckFacts(
        attempt=witness.SESSION,
        nonce=adoption.nonce,
        check="session",
        argv=("longwatch", "init", "learn", "--adopt", adoption.session),
        exit_code=0,
        started_at=at,
        ended_at=at,
    )
    bound = (("receipt of the session", adoption.receipt), ("training data", session.state.replay))
    named = (Descriptor(name=name, digest=DigestSet(sha256=digest(one))) for name, one in bound)
    tested = TestResult(
        result=Result.PASSED,
        configuration=(policy, *named),
        passed_tests=PROVED,
        failed_tests=(),
        facts=facts,
    )
    cited = sign_test_result(store, key, subjects, tested)
    summary = Summary(
        time_verified=at,
        resource_uri=f"learn:{place.settings.student.model}",
        policy=policy,
        input_attestations=(citation(cited),),
        verification_result=Result.PASSED,
        verified_levels=(LEVEL_VERIFIED,),
        facts=DecisionFacts(attempt=witness.SESSION, nonce=adoption.nonce, chain_head=head),
    )
    return sign_summary(store, key, subjects, summary)


def _moved_settings(session: Session) -> bytes:
    """The session's settings; what they name by a path in its folder is named by the whole path."""
    document = tomlkit.parse(session.config.decode())
    audit = document.get("audit", {})
    for table, key in (*_PATHS, *(("audit", key) for key in list(audit))):
        named = document.get(table, {}).get(key)
        if (
            isinstance(named, str)
            and named
            and not Path(named).is_absolute()
            and (session.root / named).exists()
        ):
            document[table][key] = str(session.root / named)
    return tomlkit.dumps(document).encode()
