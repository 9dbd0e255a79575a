"""Many at once, or one alone."""

import contextlib
import threading
from collections.abc import Iterator


class Solitude:
    """Lets runs be beside each other, and one that wants to be alone wait until the others ended. It comes before new ones."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._beside = 0
        self._wanting = 0
        self._alone = False

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """Run while others do."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._wanting)
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run while nothing else does."""
        with self._changed:
            self._wanting += 1
            self._changed.wait_for(lambda: not self._alone and not self._beside)
            self._wanting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
