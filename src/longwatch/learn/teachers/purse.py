"""The ledger on the disk, and the answers that were paid for: kept by digest for the life of the watch, never asked again."""

from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import BudgetError, IntegrityError
from longwatch.learn.teachers import budget
from longwatch.learn.teachers.budget import Ledger, Usage
from longwatch.learn.teachers.endpoint import Said
from longwatch.learn.teachers.settings import Teaching

LEDGER = "ledger.json"
ANSWERS = "answers"
_LEDGER_BYTES = 1024**2
_ANSWER_BYTES = 16 * 1024**2


def read(folder: Path) -> Ledger:
    """Return the ledger; an empty one where nothing was ever asked.

    Raises:
        IntegrityError: it is damaged, or gone while there are answers: what was spent cannot be known then.
    """
    path = folder / LEDGER
    try:
        return msgspec.json.decode(files.read_bounded(path, _LEDGER_BYTES), type=Ledger)
    except FileNotFoundError:
        if (folder / ANSWERS).is_dir():
            raise IntegrityError(
                f"{path} is gone, and with it what the teacher has cost: restore it"
            ) from None
        return Ledger()
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"{path} is damaged ({error}): restore it from a copy") from error


class Purse:
    """Reserves before a request and settles after it, each durably. Only one program has it: the experiment holds its lock."""

    def __init__(self, folder: Path, teaching: Teaching, experiment: int) -> None:
        """`folder` is the watch's folder of its teacher.

        Raises:
            IntegrityError: as `read`.
        """
        self._folder, self._teaching = folder, teaching
        self._ledger = read(folder)
        self._put(budget.begun(self._ledger, experiment))

    def reserve(self, name: str, wanted: Usage) -> None:
        """Take so much aside, durably.

        Raises:
            BudgetError: a budget does not allow it.
        """
        why = budget.refusal(self._teaching, self._ledger, wanted)
        if why:
            raise BudgetError(f"the teacher's budget is spent: {why}. Raise it in [teacher], or set it to 0")
        self._put(budget.reserved(self._ledger, name, wanted))

    def settle(self, name: str, used: Usage | None) -> None:
        """Count what a request used; `None`: nobody knows, and the whole reservation counts."""
        self._put(budget.settled(self._ledger, name, used))

    def keep(self, question: Digest, said: Said) -> None:
        """Keep an answer for ever: it was paid for."""
        path = self._path(question)
        files.make_folder(path.parent)
        files.replace(path, msgspec.json.encode(said))

    def kept(self, question: Digest) -> Said | None:
        """Return what was said to this question before; `None`: it was not answered yet.

        Raises:
            IntegrityError: the answer is damaged.
        """
        path = self._path(question)
        try:
            return msgspec.json.decode(files.read_bounded(path, _ANSWER_BYTES), type=Said)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise IntegrityError(f"{path} is damaged ({error}): remove it to pay for it again") from error

    def _path(self, question: Digest) -> Path:
        return self._folder / ANSWERS / f"{question}.json"

    def _put(self, ledger: Ledger) -> None:
        if ledger != self._ledger:
            files.make_folder(self._folder)
            files.replace_json(self._folder / LEDGER, ledger)
            self._ledger = ledger
