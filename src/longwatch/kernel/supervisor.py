"""The loop: observe, decide, commit the intent, act, commit the outcome. Nothing else lives here.

Everything it believes is in the database before it acts on it, so it may be killed between any two lines. It never
blocks for long: it sleeps on the ends of its children, on the bell that rings after a request, and on deadlines.
"""

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Generic

import msgspec

from longwatch.kernel import bell, control, lifecycle
from longwatch.kernel.clock import now
from longwatch.kernel.crew import Crew, Member, losable, lost
from longwatch.kernel.errors import ExitCode, FailureClass, LongwatchError, RefusedError
from longwatch.kernel.executor import Executor
from longwatch.kernel.instant import Deadline, Instant, rebased, remaining_s
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import (
    DRAINING,
    EXIT_CODES,
    VERDICT_EVENTS,
    Desired,
    Event,
    Halt,
    Lifecycle,
    Phase,
)
from longwatch.kernel.line import (
    Cycle,
    Decision,
    Failed,
    Failure,
    Finish,
    Line,
    Lost,
    Outcome,
    Recovery,
    Report,
    S,
    Start,
    T,
    Wait,
)
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.settings import KernelSettings
from longwatch.kernel.store import Beat, Change, Ended, Intended, Spawned, Store
from longwatch.kernel.watch import Watch

TICK_S = 1.0
"""A lost ring of the bell costs this much at most."""
SOON_S = 30.0
"""When to look again where nothing says when, and no running step will."""


class Supervisor(Generic[S, T]):
    """Runs one watch until it is done, held, or asked to end."""

    def __init__(
        self,
        watch: Watch,
        settings: KernelSettings,
        line: Line[S, T],
        executor: Executor,
        store: Store,
        *,
        changed: Callable[[Sequence[Note]], None] = lambda _notes: None,
    ) -> None:
        """`changed` is called after each durable move, with what it said."""
        self._watch, self._settings, self._line, self._store = watch, settings, line, store
        self._changed = changed
        self._crew: Crew[T] = Crew(watch, line.step_type, executor)
        self._generation = 0
        self._life = Lifecycle()
        self._state: S
        self._signals = 0
        self._cycles = 0
        self._max_cycles: int | None = None
        self._ends = EXIT_CODES
        self._moved = False
        self._beaten_s = 0.0

    def run(self, *, max_cycles: int | None = None, ends: Mapping[Phase, ExitCode] = EXIT_CODES) -> ExitCode:
        """Work until the watch is in a phase of `ends`, and return its exit code there."""
        self._max_cycles, self._ends = max_cycles, ends
        self._open()
        listening = bell.hang(self._watch.bell)
        try:
            while (code := self._turn()) is None:
                self._sleep(listening)
        finally:
            os.close(listening)
        self._commit(
            Note("supervisor.ended", f"The supervisor ends: {self._life.phase}.", {"exit_code": int(code)})
        )
        return code

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """First: stop in good order. Second: at once; the state is consistent at any moment."""
        self._signals += 1
        bell.ring(self._watch.bell)

    # -- begin

    def _open(self) -> None:
        pid = os.getpid()
        self._generation = self._store.begin_generation(
            Note("supervisor.began", f"Process {pid} supervises.", {"pid": pid})
        )
        snapshot = self._store.snapshot()
        life = snapshot.lifecycle
        self._life = msgspec.structs.replace(life, wait=life.wait and rebased(life.wait, now()))
        self._state = self._line.reopen(msgspec.json.decode(snapshot.line, type=self._line.state_type))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.on_signal)
        self._recover()
        if self._life.halt is not None:
            self._drain()
        elif not self._crew.active and not (
            self._life.phase is Phase.STOPPED and self._life.desired is Desired.STOP
        ):
            self._step_to(Event.BEGIN, Note("watch.begun", "The watch is taken up where it was left."))

    def _recover(self) -> None:
        """Settle what an earlier supervisor left, by the ordinary path (specification K6, K23)."""
        for left in self._store.open_steps():
            member, ended = self._crew.find(left)
            if ended:
                self._settle(member)
                continue
            member.bound(self._line.job(member.step, confirm=False))
            said = f"{member.step.title} still runs and is waited for."
            self._commit(Note("step.adopted", said, {"step": left.id}))
        if self._life.phase in DRAINING and not control.lets_finish(
            self._store.requests(after=0), self._life
        ):
            # The previous supervisor may have died before it could ask.
            self._crew.ask_all_to_stop()

    # -- one turn

    def _turn(self) -> ExitCode | None:
        self._moved = False
        self._obey_signals()
        self._obey_requests()
        for member in self._crew.ended():
            self._settle(member)
        self._crew.press()
        self._beat()
        self._drain()
        if self._crew.active or not (self._signals or self._life.phase in self._ends):
            return self._proceed()
        return self._ends.get(self._life.phase, ExitCode.OK)

    def _obey_signals(self) -> None:
        if not self._signals:
            return
        if self._life.phase is Phase.RUNNING:
            self._step_to(
                Event.STOP, Note("watch.signalled", "A signal asks for a stop; children are asked to end.")
            )
        self._crew.ask_all_to_stop()
        if self._signals > 1:
            self._crew.end_all()

    def _obey_requests(self) -> None:
        for seq, request in self._store.requests(after=self._life.obeyed):
            self._obey(seq, request)

    def _obey(self, seq: int, request: Request) -> None:
        said = {"request": seq, "verb": request.verb.value}
        if request.verb is Verb.RESUME and self._life.phase in DRAINING:
            self._refuse(seq, lifecycle.refusal(self._life.phase, Event.RESUME, ""), said)
            return
        try:
            life = control.unparked(self._life, now())
            moved = lifecycle.move(life, control.event_of(request, life.phase), f"{request.verb} requested")
            state = self._line.resume(self._state) if request.verb is Verb.RESUME else self._state
            state = self._line.accept(state, refresh=request.refresh) if request.accept else state
        except RefusedError as error:
            self._refuse(seq, str(error), said)
            return
        note = Note("request.obeyed", f"Request {seq} is obeyed: {request.verb}.", said)
        self._state = state
        settled = self._close_unknown() if request.accept else ()
        self._commit(note, life=control.obeyed(moved, seq, request), changes=settled)
        if moved.phase in DRAINING and not request.after_step:
            self._crew.ask_all_to_stop()

    def _refuse(self, seq: int, why: str, said: dict[str, str | int]) -> None:
        self._commit(Note("request.refused", why, said), life=msgspec.structs.replace(self._life, obeyed=seq))

    # -- ends of steps

    def _settle(self, member: Member[T]) -> None:
        """Count what became of a step, once."""
        report = self._crew.report(member)
        self._crew.dismiss(member)
        if report is not None:
            self._count(member, report.outcome, report)
        elif member.step.recovery is Recovery.RECONCILE or self._unanswered(member):
            self._halt_for(member)
        elif losable(member):
            self._count(member, lost(member), None)
        else:
            self._again(member)

    def _unanswered(self, member: Member[T]) -> bool:
        """Return whether the world was asked so often that a person has to: the effect may be there (K6)."""
        return member.step.recovery is Recovery.CONFIRM and member.runs >= self._settings.backoff.max_faults

    def _count(self, member: Member[T], outcome: Outcome, report: Report | None) -> None:
        moment = now()
        self._state, said = self._line.apply(self._state, member.step, outcome, moment)
        notes = [*(report.notes if report else ()), *said]
        life = self._life
        if isinstance(outcome, Failed):
            step, policy = member.step, self._settings.backoff
            opens, failure = step.cycle.new, outcome.failure
            life, note = control.after_failure(life, step.title, failure, policy, moment, opens=opens)
            notes.append(note)
        elif not isinstance(outcome, Lost) and member.step.cycle is not Cycle.NONE:
            life = msgspec.structs.replace(life, failures=0)
        ended = Ended(
            id=member.step.id,
            outcome=outcome,
            active_s=member.active_s(moment),
            spans=report.spans if report else (),
            processes=report.processes if report else (),
        )
        self._commit(*notes, life=life, changes=(ended,))

    def _halt_for(self, member: Member[T]) -> None:
        if self._life.phase in lifecycle.HELD:
            return
        why = f"{member.step.title} ended at an unknown point. Look with `longwatch reconcile`."
        life = msgspec.structs.replace(self._life, halt=Halt(lifecycle.Verdict.NEEDS_RECONCILE, why))
        self._commit(Note("step.unknown", why, {"step": member.step.id}), life=life)

    def _again(self, member: Member[T]) -> None:
        """Put a step that died back, to be run again or asked about when work may begin."""
        if member.runs >= self._settings.backoff.max_faults and self._life.phase not in lifecycle.HELD:
            said = f"{member.step.title} died {member.runs} times. {lost(member).what}"
            self._count(member, Failed(Failure(kind=FailureClass.FAULT, message=said)), None)
            return
        self._crew.put_back(member)
        said = f"{member.step.title} died and will be settled. {lost(member).what}"
        self._commit(Note("step.died", said, {"step": member.step.id}))

    # -- phases

    def _drain(self) -> None:
        life = self._life
        if life.halt is not None and self._crew.active:
            if life.phase is not Phase.STOPPING:
                self._step_to(Event.HALT, Note("watch.halting", life.halt.reason))
                if life.halt.verdict is not lifecycle.Verdict.EXHAUSTED:
                    self._crew.ask_all_to_stop()
        elif life.halt is not None:
            halt = life.halt
            self._life = msgspec.structs.replace(life, halt=None)
            self._step_to(
                VERDICT_EVENTS[halt.verdict], Note(f"watch.{halt.verdict}", halt.reason), halt.reason
            )
        elif not self._crew.active and life.phase in {Phase.RUNNING, *DRAINING}:
            self._step_to(Event.DRAINED, Note("watch.drained", "No child lives any more."), life.reason)
        elif life.phase is Phase.WAITING and (life.wait is None or remaining_s(life.wait, now()) <= 0):
            self._step_to(Event.DUE, Note("watch.due", "The wait is over."))

    def _proceed(self) -> ExitCode | None:
        held = self._signals or self._life.halt is not None
        if held or self._life.phase not in {Phase.IDLE, Phase.RUNNING}:
            return None
        moment = now()
        scarce = self._crew.short_of_disk(self._settings.host.free_disk_bytes)
        if self._life.wait is not None and remaining_s(self._life.wait, moment) > 0:
            if scarce is not None or not self._goes_on(moment):
                self._wait_idle(self._life.reason)
            return None
        if scarce is not None:
            self._wait(Wait(scarce, SOON_S))
            return None
        if self._crew.waiting:
            self._begin(self._crew.waiting)
            return None
        return self._follow(self._line.decide(self._state, self._crew.steps(), moment))

    def _goes_on(self, moment: Instant) -> bool:
        """Begin what continues a piece of work, while only new pieces have to wait; return whether there is any."""
        decision = self._line.decide(self._state, self._crew.steps(), moment) if self._life.only_new else None
        if not isinstance(decision, Start) or {s.cycle for s in decision.steps} != {Cycle.CONTINUES}:
            return False
        self._follow(decision)
        return True

    def _follow(self, decision: Decision[T]) -> ExitCode | None:
        match decision:
            case Start(steps):
                enough = self._max_cycles is not None and self._cycles >= self._max_cycles
                if enough and any(step.cycle.new for step in steps):
                    return None if self._crew.active else ExitCode.OK
                self._begin([self._crew.enlist(step) for step in steps if step.id not in self._crew.steps()])
            case Wait():
                self._wait(decision)
            case Finish(verdict, reason) if not self._crew.active:
                self._step_to(VERDICT_EVENTS[verdict], Note(f"watch.{verdict}", reason), reason)
        return None

    def _wait(self, wait: Wait) -> None:
        delay_s = SOON_S if wait.delay_s is None and not self._crew.active else wait.delay_s
        if delay_s is not None:
            due = Deadline(since=now(), delay_s=delay_s)
            self._life = msgspec.structs.replace(self._life, wait=due, only_new=False)
        self._wait_idle(wait.reason)

    def _wait_idle(self, reason: str) -> None:
        if self._life.phase is Phase.IDLE:
            wait_s = remaining_s(self._life.wait, now()) if self._life.wait else 0.0
            text = f"The next step begins in {wait_s:.0f} s: {reason.splitlines()[0] if reason else 'a wait goes on'}"
            self._step_to(Event.WAIT, Note("watch.waiting", text), reason)

    # -- begin steps

    def _begin(self, members: Iterable[Member[T]]) -> None:
        for member in tuple(members):
            if self._crew.fits(member.step, self._settings.host.cores):
                self._launch(member)

    def _launch(self, member: Member[T]) -> None:
        step = member.step
        if not self._store.known_step(step.id):
            intent = Intended(step.id, msgspec.json.encode(step), member.cookie, now())
            self._cycles = max(self._cycles + (step.cycle is Cycle.OPENS), int(step.cycle is Cycle.CONTINUES))
            self._step_to(
                Event.STARTED, Note("step.started", step.title, {"step": step.id}), step.title, (intent,)
            )
        else:
            self._step_to(Event.STARTED, Note("step.again", step.title, {"step": step.id}), step.title)
        try:
            identity = self._crew.launch(member, self._line.job(step, confirm=member.confirming))
        except LongwatchError as error:
            self._crew.dismiss(member)
            self._count(member, Failed(Failure(kind=error.failure_class, message=str(error))), None)
            return
        self._commit(changes=(Spawned(step.id, identity, member.began),))

    # -- durable moves

    def _step_to(self, event: Event, note: Note, reason: str = "", changes: Sequence[Change] = ()) -> None:
        self._commit(note, life=lifecycle.move(self._life, event, reason), changes=changes)

    def _commit(self, *notes: Note, life: Lifecycle | None = None, changes: Sequence[Change] = ()) -> None:
        """One logical move, one transaction."""
        state = msgspec.json.encode(self._state)
        self._store.commit(self._generation, notes=notes, lifecycle=life, line=state, changes=changes)
        self._life = life or self._life
        self._moved = True
        self._changed(notes)

    def _close_unknown(self) -> tuple[Ended, ...]:
        """Close the steps of unknown effect that a person has looked at; the line is told that they are lost."""
        ended = []
        for left in self._store.open_steps():
            if left.id not in self._crew.steps():
                step, outcome = self._crew.decode(left), Lost("A person looked at it and accepted.")
                self._state, _ = self._line.apply(self._state, step, outcome, now())
                ended.append(Ended(id=left.id, outcome=outcome, active_s=left.active_s))
        return tuple(ended)

    def _beat(self) -> None:
        moment = now()
        if not self._crew.active or moment.monotonic_s - self._beaten_s < self._settings.observe.heartbeat_s:
            return
        self._beaten_s = moment.monotonic_s
        beats = tuple(Beat(m.step.id, self._crew.progress(m), m.active_s(moment)) for m in self._crew.active)
        self._store.commit(self._generation, changes=beats)
        self._changed(())

    def _sleep(self, listening: int) -> None:
        if self._moved:
            return
        bell.listen(listening, self._crew.descriptors(), self._patience_s())

    def _patience_s(self) -> float:
        moment = now()
        wait_s = TICK_S if self._life.wait is None else remaining_s(self._life.wait, moment)
        beat_s = (
            self._beaten_s + self._settings.observe.heartbeat_s - moment.monotonic_s
            if self._crew.active
            else TICK_S
        )
        return max(min(TICK_S, wait_s, beat_s), 0.01)
