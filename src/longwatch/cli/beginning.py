"""Making a new watch: the application's files, then the state and the signing key beside them."""

import os
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import LongwatchError, RefusedError
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.store import Store
from longwatch.kernel.watch import CONFIG, HIDDEN, Watch
from longwatch.learn import init as learn_init
from longwatch.learn import sessions
from longwatch.learn import settings as learn_settings
from longwatch.learn.experiment import replay
from longwatch.learn.line import LearnLine
from longwatch.learn.place import Place
from longwatch.learn.sessions import taking
from longwatch.migrate.init import Initialised, WorkerChoice, initialise
from longwatch.migrate.state import MigrateState


def migrate(folder: Path, *, adapter: str, argv: tuple[str, ...], profile: str = "plain") -> Initialised:
    """Make a git repository a watch.

    Raises:
        RefusedError: it is one already, or was one: its state is still there. Nothing was written.
        LongwatchError: the state could not be made; the message names what was written before.
    """
    watch = Watch(folder)
    if watch.database.exists():
        raise RefusedError(
            f"{watch.hidden} holds the state of an earlier watch: move it away if it is not needed any more"
        )
    made = initialise(folder, WorkerChoice(adapter=adapter, argv=argv), profile=profile)
    try:
        _state(Watch(made.root), MigrateState())
    except LongwatchError as error:
        raise LongwatchError(
            f"{error} These files were written before and stay: {', '.join(made.files)}. "
            f"To begin again, remove {CONFIG} and {HIDDEN} there."
        ) from error
    return made


def _state(watch: Watch, begin: msgspec.Struct) -> None:
    files.make_folder(watch.steps)
    files.make_folder(watch.receipts)
    SigningKey.create(watch.keys)
    # Last: a watch without its database is none, so a run cannot begin before all is there.
    Store.create(watch.database, msgspec.json.encode(begin)).close()


def learn(folder: Path) -> learn_init.Initialised:
    """Make any folder a learn watch. Raises as `migrate`."""
    watch = Watch(folder)
    if watch.database.exists():
        raise RefusedError(
            f"{watch.hidden} holds the state of an earlier watch: move it away if it is not needed any more"
        )
    # What an adoption left that was killed before its end.
    files.remove_recorded(folder / taking.STAGING, folder)
    made = learn_init.initialise(folder)
    _state(watch, LearnLine(learn_settings.load(folder), folder).begin())
    return made


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken over from a session, and what a person does next."""

    root: Path
    session: Path
    adapter: str
    examples: int
    base_passed: int
    base_total: int
    hints: tuple[str, ...]


def adopt(folder: Path, session: Path) -> Taken:
    """Make any folder a learn watch that goes on from a prepared session.

    Raises:
        RefusedError: it is a watch already, or something of the session is missing or wrong; everything is named.
    """
    watch = Watch(folder)
    if os.path.lexists(watch.config):
        raise RefusedError(f"{watch.config} exists and was left as it is: choose another folder")
    begun = taking.unfinished(folder)
    if os.path.lexists(watch.hidden) and begun != str(session):
        mend = f"finish it with --adopt {begun}" if begun else "move it away if it is not needed any more"
        raise RefusedError(f"{watch.hidden} holds the state of {begun or 'an earlier watch'}: {mend}")
    if begun:
        # What it holds was proved when it was taken over.
        taking.finish(folder)
    else:
        sessions.take(folder, sessions.look(session))
    state = taking.state_of(watch)
    (decided,) = state.history
    return Taken(
        root=folder,
        session=session,
        adapter=state.champion,
        examples=len(replay.load(Place(watch, learn_settings.load(folder)).replay, state.replay)),
        base_passed=decided.dev_base,
        base_total=decided.dev_total,
        hints=(
            f"{session} was only read; its settings were copied, and paths in it are named whole.",
            "Then: longwatch verify, longwatch doctor, and longwatch run.",
        ),
    )


def adopted_text(made: Taken) -> str:
    """Say what was taken over and what a person does next."""
    return "\n".join(
        [
            f"{made.root} is a learn watch now, from the session in {made.session}.",
            f"  champion: {made.adapter[:12]}, verified and signed for this watch",
            f"  training data: {made.examples} verified examples",
            f"  base evaluation: {made.base_passed} of {made.base_total} development tasks",
            *(f"- {hint}" for hint in made.hints),
        ]
    )


def learn_text(made: learn_init.Initialised) -> str:
    """Say what was done and what a person does next."""
    written = [f"  written: {name}" for name in made.files]
    return "\n".join([f"{made.root} is a learn watch now.", *written, *(f"- {hint}" for hint in made.hints)])


def text(made: Initialised) -> str:
    """Say what was done and what a person does next."""
    lines = [f"{made.root} is a watch now (worker: {made.worker})."]
    lines += [f"  written: {name}" for name in made.files]
    lines += [f"  state and signing key: {HIDDEN}/"]
    lines += [f"  check found: {' '.join(one.check.argv)} ({one.because})" for one in made.checks]
    return "\n".join([*lines, *(f"- {hint}" for hint in made.hints)])
