"""All questions to an endpoint: several at a time, each reserved before it is sent, none that was answered before.

The main thread alone decides and writes; it looks up a few times a second, so a pause is obeyed within seconds whatever a
request is doing. An answer that is nearly there is waited for a moment: it was paid for.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_hex

import msgspec

from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import BudgetError, LongwatchError, TransientError
from longwatch.kernel.redact import Redactor
from longwatch.kernel.retry import backoff_s
from longwatch.kernel.settings import Backoff
from longwatch.learn.stages import StoppedError
from longwatch.learn.teachers import endpoint
from longwatch.learn.teachers.call import Call
from longwatch.learn.teachers.endpoint import Question, Reply, Said
from longwatch.learn.teachers.purse import Purse
from longwatch.learn.teachers.settings import Teaching

TICK_S = 0.1
GRACE_S = 1.5
"""So long a pause waits for answers that are under way."""
LONGEST_WAIT_S = 60.0
"""An endpoint that wants to be left alone for longer is asked again in the next round."""
MOST_IN_A_ROW = 4
"""So many questions that stay without an answer, one after another, and the endpoint is taken for dead."""
_OF_ONE_QUESTION = frozenset({400, 413, 422})
"""What may be wrong with one question only."""
BACKOFF = Backoff(first_s=1.0, max_s=20.0)


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What came of all questions."""

    said: tuple[tuple[Question, Said], ...]
    """In the order of the questions; those without an answer are left out."""
    kept: int
    """So many of the answers were there before."""
    unanswered: tuple[tuple[str, int], ...]
    """Why there was no answer, and how often."""
    failure: LongwatchError | None
    """Why the endpoint was given up before all was asked."""


@dataclass(kw_only=True)
class Desk:
    """What asking needs of the outside."""

    teaching: Teaching
    key: str
    """The API key itself; empty: none."""
    purse: Purse
    redactor: Redactor
    should_stop: Callable[[], bool]
    progress: Callable[[int, int], None]
    backoff: Backoff = BACKOFF
    grace_s: float = GRACE_S


@dataclass(kw_only=True)
class _Asked:
    """One question on its way."""

    question: Question
    failures: int = 0
    name: str = ""
    """Of its reservation."""


@dataclass(kw_only=True)
class _State:
    waiting: deque[_Asked]
    flying: dict[Call, _Asked] = field(default_factory=dict)
    said: dict[Question, Said] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    in_a_row: int = 0
    not_before_s: float = 0.0
    failure: LongwatchError | None = None


def ask(desk: Desk, questions: Sequence[Question]) -> Heard:
    """Return what the endpoint says to the questions, and what it said before.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first; every answer so far is kept.
        IntegrityError: the ledger or an answer on the disk is damaged.
    """
    asking = _Asking(desk, questions)
    asking.run()
    return asking.heard()


class _Asking:
    """One call of `ask`."""

    def __init__(self, desk: Desk, questions: Sequence[Question]) -> None:
        self._desk, self._questions = desk, questions
        self._news = threading.Event()
        known = {one: desk.purse.kept(endpoint.name_of(desk.teaching, one)) for one in questions}
        said = {one: there for one, there in known.items() if there is not None}
        self._kept = len(said)
        self._now = _State(
            waiting=deque(_Asked(question=one) for one in questions if one not in said), said=said
        )

    def heard(self) -> Heard:
        """What came of it."""
        state = self._now
        return Heard(
            said=tuple((one, state.said[one]) for one in self._questions if one in state.said),
            kept=self._kept,
            unanswered=tuple(sorted(state.unanswered.items())),
            failure=state.failure,
        )

    def run(self) -> None:
        """Send, wait, take in, until all is answered or the endpoint is given up."""
        state = self._now
        while state.flying or (state.waiting and state.failure is None):
            if self._desk.should_stop():
                self._leave()
                raise StoppedError
            self._send()
            self._wait()
            self._take_in()
            self._desk.progress(len(state.said) + state.unanswered.total(), len(self._questions))
        state.unanswered["not asked"] += len(state.waiting)
        state.unanswered += Counter()  # drops what is zero

    def _send(self) -> None:
        state, desk = self._now, self._desk
        while state.waiting and len(state.flying) < desk.teaching.parallel and self._may_send():
            asked = state.waiting.popleft()
            try:
                self._reserve(asked)
            except BudgetError as error:
                state.waiting.appendleft(asked)
                state.failure = error
                return
            state.flying[self._call(asked)] = asked

    def _may_send(self) -> bool:
        return self._now.failure is None and time.monotonic() >= self._now.not_before_s

    def _reserve(self, asked: _Asked) -> None:
        """Each request has a name of its own: the same question may be sent again after it was refused."""
        asked.name = token_hex(8)
        self._desk.purse.reserve(asked.name, endpoint.reservation(self._desk.teaching, asked.question))

    def _call(self, asked: _Asked) -> Call:
        teaching = self._desk.teaching
        return Call(
            teaching.base_url.rstrip("/") + endpoint.PATH,
            endpoint.payload(teaching, asked.question),
            key=self._desk.key,
            timeout_s=teaching.timeout_s,
            direct=teaching.is_local,
            told=self._news.set,
        )

    def _wait(self) -> None:
        self._news.wait(TICK_S)
        self._news.clear()

    def _take_in(self) -> None:
        for call, asked in list(self._now.flying.items()):
            if call.overdue:
                call.end(f"the teacher's endpoint did not answer within {self._desk.teaching.timeout_s:g} s")
            if call.outcome is not None:
                del self._now.flying[call]
                self._settle(asked, call)

    def _settle(self, asked: _Asked, call: Call) -> None:
        """Keep the answer first, then count it: a crash between the two counts too much, never too little."""
        try:
            said = self._understood(call)
        except LongwatchError as error:
            refused = isinstance(call.outcome, Reply) and call.outcome.status < 500
            self._desk.purse.settle(asked.name, endpoint.REFUSED if refused else None)
            self._failed(asked, call, error)
            return
        self._desk.purse.keep(endpoint.name_of(self._desk.teaching, asked.question), said)
        self._desk.purse.settle(asked.name, said.used(self._desk.teaching))
        self._now.said[asked.question] = said
        self._now.in_a_row = 0

    def _understood(self, call: Call) -> Said:
        masked = self._desk.redactor.text
        if isinstance(call.outcome, Reply):
            return endpoint.understood(call.outcome, masked, stamp(now().wall_s))
        raise TransientError(masked(str(call.outcome)))

    def _failed(self, asked: _Asked, call: Call, error: LongwatchError) -> None:
        """Ask again after a while, go on without this answer, or without this endpoint."""
        status = call.outcome.status if isinstance(call.outcome, Reply) else None
        if isinstance(error, TransientError):
            asked.failures += 1
            delay_s = error.retry_after_s
            delay_s = backoff_s(asked.failures, self._desk.backoff) if delay_s is None else delay_s
            if delay_s > LONGEST_WAIT_S:
                self._give_up(error)
            else:
                self._now.not_before_s = max(self._now.not_before_s, time.monotonic() + delay_s)
            if asked.failures < self._desk.teaching.tries:
                self._now.waiting.appendleft(asked)
                return
        elif status not in _OF_ONE_QUESTION:
            self._give_up(error)
        self._now.unanswered["no whole answer came" if status is None else f"status {status}"] += 1
        self._now.in_a_row += 1
        if self._now.in_a_row >= MOST_IN_A_ROW:
            self._give_up(error)

    def _give_up(self, error: LongwatchError) -> None:
        self._now.failure = self._now.failure or error

    def _leave(self) -> None:
        """Wait a moment for what is under way, and let go of the rest, which counts as its reservation."""
        until_s = time.monotonic() + self._desk.grace_s
        while self._now.flying and time.monotonic() < until_s:
            self._wait()
            self._take_in()
        for call, asked in self._now.flying.items():
            call.end("a pause or stop came first")
            self._desk.purse.settle(asked.name, None)
        self._now.flying.clear()
