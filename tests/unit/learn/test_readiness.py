"""Whether the machine may be used now: the judgement, what the kernel says, whose turn it is, the gate and the guard."""

import os
import signal
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, strategies
from machines import Scripted, battery, put

from longwatch.kernel.clock import now
from longwatch.kernel.errors import ConfigError, LongwatchError, TransientError
from longwatch.kernel.identity import read_stat
from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Start, Stopped, Succeeded, Wait
from longwatch.kernel.program import Work
from longwatch.kernel.settings import Host, Observe
from longwatch.kernel.watch import Watch
from longwatch.learn.readiness import guard, host, hours, turns
from longwatch.learn.readiness.gate import Gate, GatedLine
from longwatch.learn.readiness.judging import LONGEST_S, NotReady, Ready, judge
from longwatch.learn.readiness.machine import computed_s, to_come
from longwatch.learn.readiness.readings import Device, Program, Readings
from longwatch.learn.readiness.telling import findings
from longwatch.learn.settings import LearnSettings, Readiness, load
from longwatch.learn.steps import Prune

CALM = Readings(memory_bytes=8 * 10**9, free_disk_bytes=50 * 10**9)
FREE = Device(name="RTX", others=(), free_bytes=20 * 10**9, temperature_c=40.0, power_limit_w=250.0)
GAME = Program(pid=77, name="game")


def settings(zone: str = "UTC", **readiness) -> LearnSettings:
    return LearnSettings(
        kind="learn",
        readiness=Readiness(**readiness),
        observe=Observe(zone=zone),
        host=Host(free_disk_bytes=10**9),
    )


def at(seconds: float = 0.0, wall_s: float = 1.8e9) -> Instant:
    return Instant(wall_s=wall_s + seconds, boottime_s=seconds, monotonic_s=seconds, boot_id="test")


def but(**changes) -> Readings:
    return msgspec.structs.replace(CALM, **changes)


def device(**changes) -> Readings:
    return but(devices=(msgspec.structs.replace(FREE, **changes),))


# -- quiet hours


def wall(zone: str, *moment: int, fold: int = 0) -> float:
    return datetime(*moment, tzinfo=ZoneInfo(zone), fold=fold).timestamp()


@pytest.mark.guarantee("L34")
@pytest.mark.parametrize(
    ("moment", "left_s"),
    [
        ((2026, 12, 1, 22, 59), None),
        ((2026, 12, 1, 23, 0), 8 * 3600),
        ((2026, 12, 1, 23, 30), 7.5 * 3600),
        ((2026, 12, 2, 0, 0), 7 * 3600),
        ((2026, 12, 2, 6, 59), 60),
        ((2026, 12, 2, 7, 0), None),
        ((2026, 3, 29, 0, 0), 6 * 3600),  # an hour of this night is skipped
        ((2026, 10, 25, 0, 0), 8 * 3600),  # an hour of this night comes twice
    ],
)
def test_quiet_hours_go_by_the_clock_on_the_wall_over_midnight_and_through_summer_time(moment, left_s):
    zone = "Europe/Berlin"
    assert hours.quiet_for_s(hours.parse("23:00-07:00"), wall(zone, *moment), zone) == left_s


@pytest.mark.guarantee("L34")
def test_an_hour_that_comes_twice_is_quiet_twice():
    zone, spans = "Europe/Berlin", hours.parse("02:00-02:30")
    assert hours.quiet_for_s(spans, wall(zone, 2026, 10, 25, 2, 10), zone) == 20 * 60
    assert hours.quiet_for_s(spans, wall(zone, 2026, 10, 25, 2, 40), zone) is None
    assert hours.quiet_for_s(spans, wall(zone, 2026, 10, 25, 2, 10, fold=1), zone) == 20 * 60


@given(
    strategies.integers(0, 1439),
    strategies.integers(0, 1439),
    strategies.floats(0, 4e9),
    strategies.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
)
@pytest.mark.guarantee("L34")
def test_a_quiet_time_ends_and_then_it_is_not_quiet(begin, end, wall_s, zone):
    spans = (hours.Span(begin, end),) if begin != end else ()
    for _ in range(4):  # the clock may be put back over the end, and more than once is never needed
        left_s = hours.quiet_for_s(spans, wall_s, zone)
        if left_s is None:
            return
        assert 0 < left_s <= 26 * 3600
        wall_s += left_s
    raise AssertionError(wall_s)


@pytest.mark.guarantee("L34")
@pytest.mark.parametrize(
    ("key", "value", "mend"),
    [
        ("quiet_hours", "23:00", "23:00-07:00"),
        ("quiet_hours", "24:00-07:00", "23:00-07:00"),
        ("quiet_hours", "22:00-06:00,", "23:00-07:00"),
        ("quiet_hours", "08:00-08:00", "begins when it ends"),
        ("memory_bytes", -1, "0 or more"),
        ("settle_s", -0.5, "0 or more"),
        ("temperature_c", float("inf"), "number"),
        ("on_battery", True, "on_battery"),
    ],
)
def test_what_is_wrong_with_the_settings_is_said_with_key_value_and_mend(tmp_path, key, value, mend):
    text = {True: "true"}.get(value, repr(value).replace("'", '"'))
    (tmp_path / "longwatch.toml").write_text(f'kind = "learn"\n[readiness]\n{key} = {text}\n')
    with pytest.raises(ConfigError) as raised:
        load(tmp_path)
    assert all(part in str(raised.value) for part in (f"{key}", mend, "longwatch.toml"))


def test_several_quiet_times_are_read_with_or_without_spaces():
    assert hours.parse("23:00-7:00, 12:00 - 13:30") == (hours.Span(1380, 420), hours.Span(720, 810))
    assert hours.parse(" ") == ()


# -- the judgement

NEEDED = [
    ({}, but(memory_bytes=10**8), "readiness] memory_bytes"),
    ({}, but(holder="the watch /other uses this machine"), "/other"),
    ({}, but(following="it is the turn of the watch /other"), "/other"),
    ({}, but(next_bytes=60 * 10**9), "host] free_disk_bytes"),
    ({"share_accelerator": False}, device(others=(GAME,)), "game (process 77) computes on RTX"),
    ({"accelerator_bytes": 30 * 10**9}, device(), "20.0 GB of memory are free on RTX"),
    ({"temperature_c": 80.0}, device(temperature_c=81.0), "RTX has 81 degrees"),
    ({"temperature_c": 80.0}, but(temperature_c=81.0), "the processor has 81 degrees"),
    ({"power_limit_w": 200.0}, device(), "nvidia-smi -pl"),
    ({"load_cores": 1.0}, but(load_cores=1.5), "other programs use 1.5 cores"),
    ({"on_ac": True}, but(on_ac=False), "battery"),
    ({"quiet_hours": "00:00-23:59"}, CALM, "quiet_hours"),
]


@pytest.mark.guarantee("L34")
@pytest.mark.parametrize(("wished", "seen", "said"), NEEDED)
def test_each_thing_that_is_missing_is_a_reason_and_each_is_left_alone_where_nobody_asked(wished, seen, said):
    verdict = judge(seen, settings(**wished), None, at())
    assert isinstance(verdict, NotReady)
    assert said in verdict.reasons[0]
    assert len(verdict.reasons) == 1
    if wished:
        assert judge(seen, settings(), None, at()) == Ready()


@pytest.mark.guarantee("L34")
def test_without_a_word_in_the_file_only_turn_disk_and_memory_are_looked_at():
    busy = Readings(
        devices=(Device(name="RTX", others=(GAME,), free_bytes=0, temperature_c=120.0, power_limit_w=1e4),),
        memory_bytes=8 * 10**9,
        free_disk_bytes=50 * 10**9,
        load_cores=64.0,
        temperature_c=120.0,
        on_ac=False,
    )
    assert judge(busy, settings(), None, at()) == Ready()
    assert (
        judge(but(holder="x", memory_bytes=0), settings(one_watch=False, memory_bytes=0), None, at())
        == Ready()
    )


@pytest.mark.guarantee("L34")
@pytest.mark.parametrize(
    ("wished", "seen"),
    [
        ({"temperature_c": 80.0}, device(temperature_c=78.0)),
        ({"load_cores": 1.0}, but(load_cores=0.9)),
        ({"memory_bytes": 10**9}, but(memory_bytes=9 * 10**8)),
        ({"accelerator_bytes": 30 * 10**9}, device()),
        ({}, but(following="it is the turn of another watch")),
    ],
)
def test_what_is_not_enough_to_begin_may_be_enough_to_go_on(wished, seen):
    assert isinstance(judge(seen, settings(**wished), None, at()), NotReady)
    assert judge(seen, settings(**wished), Ready(), at()) == Ready()


@pytest.mark.guarantee("L34")
def test_what_may_change_from_one_moment_to_the_next_has_to_hold_for_a_while():
    wished = settings(on_ac=True, settle_s=60.0)
    unplugged, plugged = but(on_ac=False), but(on_ac=True)
    first = judge(unplugged, wished, None, at(0))
    again = judge(plugged, wished, first, at(100))
    assert again.since == first.since
    assert (again.again_s, "settle_s = 60" in again.reasons[0]) == (60.0, True)
    flapped = judge(unplugged, wished, again, at(130))
    assert "battery" in flapped.reasons[0]
    settling = judge(plugged, wished, flapped, at(140))
    assert judge(plugged, wished, settling, at(190)).again_s == pytest.approx(10.0)
    assert judge(plugged, wished, settling, at(200)) == Ready()


@pytest.mark.guarantee("L34")
def test_quiet_hours_and_turns_end_at_once_and_are_looked_at_again_in_time():
    wished = settings(quiet_hours="22:00-06:00", zone="Europe/Berlin")
    night, dawn = (wall("Europe/Berlin", 2026, 12, 2, *clock) for clock in ((1, 0), (5, 58)))
    quiet = judge(CALM, wished, None, at(wall_s=night))
    assert quiet.again_s == LONGEST_S
    assert judge(CALM, wished, quiet, at(wall_s=dawn)).again_s == 120.0
    assert judge(CALM, wished, quiet, at(wall_s=dawn + 120)) == Ready()
    held = judge(but(holder="x"), wished, None, at(wall_s=dawn + 120))
    assert judge(CALM, wished, held, at(wall_s=dawn + 180)) == Ready()


@given(strategies.lists(strategies.booleans(), min_size=1, max_size=40), strategies.floats(0, 300))
@pytest.mark.guarantee("L34")
def test_work_never_begins_before_all_was_well_for_the_settling_time(plugged, step_s):
    wished, before, bad_s = settings(on_ac=True, settle_s=60.0), None, None
    for index, on_ac in enumerate(plugged):
        moment_s = index * step_s
        before = judge(
            but(on_ac=on_ac), wished, before if isinstance(before, NotReady) else None, at(moment_s)
        )
        bad_s = bad_s if on_ac else moment_s
        assert on_ac or isinstance(before, NotReady)
        if isinstance(before, Ready):
            assert bad_s is None or moment_s - bad_s >= 60.0
            bad_s = None


# -- what the kernel says


@pytest.mark.guarantee("L34")
@pytest.mark.parametrize(
    ("online", "status", "found"),
    [("1", "Charging", True), ("1", "Discharging", True), ("0", "Discharging", False), ("0", "Full", False)],
)
def test_mains_power_is_read_and_a_mouse_has_no_say(tmp_path, online, status, found):
    assert host.on_ac(battery(tmp_path, online=online, status=status)) is found


@pytest.mark.guarantee("L34")
def test_a_machine_without_mains_of_its_own_may_know_by_its_battery(tmp_path):
    folder = put(
        tmp_path, class__power_supply__B__type="Battery", class__power_supply__B__status="Discharging"
    )
    assert host.on_ac(folder) is False
    put(tmp_path, class__power_supply__B__status="Unknown")
    assert host.on_ac(folder) is None


@pytest.mark.guarantee("L34")
def test_the_hottest_sensor_of_the_processor_counts_and_no_disk_does(tmp_path):
    put(tmp_path, class__hwmon__hwmon0__name="nvme", class__hwmon__hwmon0__temp1_input="90000")
    assert host.temperature_c(tmp_path) is None
    put(
        tmp_path,
        class__thermal__thermal_zone0__type="x86_pkg_temp",
        class__thermal__thermal_zone0__temp="51000",
    )
    put(tmp_path, class__hwmon__hwmon1__name="coretemp", class__hwmon__hwmon1__temp1_input="oops")
    put(tmp_path, class__hwmon__hwmon1__temp2_input="63500")
    assert host.temperature_c(tmp_path) == 63.5


@pytest.mark.guarantee("L34")
def test_our_own_work_is_no_load_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "GLANCE_S", 0.0)
    ours, clock = iter((0.0, 0.0, 8.0)), iter((0.0, 0.0, 1.0, 1.0, 11.0))
    monkeypatch.setattr(host.time, "monotonic", lambda: next(clock))
    load = host.Load(lambda: next(ours), put(tmp_path, stat="cpu 0 0 0 900 0 0 0 0 0 0"))
    first = load.cores()
    put(tmp_path, stat="cpu 1000 0 300 900 0 0 0 0 0 0")
    assert first == 0.0
    assert load.cores() == 0.5, "of thirteen seconds in ten, eight are ours"


@pytest.mark.guarantee("L34")
def test_what_a_step_had_computed_by_programs_that_ended_is_ours_too():
    """The step that validates tasks beside a training does nothing else."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    step = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", step], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        program.stdout.readline()
        stat = read_stat(program.pid)
        program.communicate(b"\n")
    assert computed_s([stat]) >= 0.3


@pytest.mark.guarantee("L34", "K8")
def test_the_next_experiment_is_as_large_as_the_largest_less_what_it_wrote_already(tmp_path):
    assert to_come(tmp_path / "none", 1) is None
    for number, size in ((1, 40_960), (2, 8192), (3, 4096)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "data").write_bytes(bytes(size))
    assert to_come(tmp_path, 3) == 40_960 - 4096
    assert to_come(tmp_path, 4) == 40_960
    assert to_come(tmp_path, 1) == 0


# -- whose turn it is

HOLD = """
import sys, time
from pathlib import Path
from longwatch.learn.readiness.turns import turn
with turn(Path(sys.argv[1]), Path("/other")):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGWATCH_LOCKS", str(tmp_path))
    return turns.path("cpu")


@pytest.fixture
def other(lock):
    """Another watch's program that has its turn."""
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "held\n"
    yield program
    program.kill()
    program.wait()


@pytest.mark.guarantee("L34")
def test_a_second_watch_is_refused_at_once_by_the_name_of_the_first_and_a_kill_frees_the_machine(
    lock, other, tmp_path
):
    held = turns.taken(lock)
    assert (held.watch, held.identity.pid) == ("/other", other.pid)
    said = rf"/other uses this machine since .*process {other.pid}"
    with pytest.raises(TransientError, match=said), turns.turn(lock, tmp_path):
        raise AssertionError("two have it")
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert turns.taken(lock) is None, "whatever its record says"
    with turns.turn(lock, tmp_path):
        assert turns.taken(lock) is None, "we are nobody else"


@pytest.mark.guarantee("L34")
def test_who_waits_is_next_and_has_to_say_it_again(lock, other, tmp_path, monkeypatch):
    turns.wish(lock, tmp_path)
    assert turns.wished(lock, tmp_path) is None, "not before itself"
    turns.wish(lock, tmp_path / "third")
    assert turns.wished(lock, tmp_path / "third").watch == str(tmp_path), "the first stays the first"
    later = msgspec.structs.replace(now(), boottime_s=now().boottime_s + turns.LASTS_S)
    with monkeypatch.context() as patched:
        patched.setattr(turns, "now", lambda: later)
        assert turns.wished(lock, tmp_path / "third") is None, "it may be paused"
    other.communicate("")
    with turns.turn(lock, tmp_path):
        assert turns.wished(lock, tmp_path / "third") is None, "it has its turn"


@pytest.mark.guarantee("L34", "K34")
@pytest.mark.parametrize("stand", [Path.symlink_to, Path.hardlink_to, lambda lock, _: os.mkfifo(lock)])
def test_what_stands_in_the_way_of_the_lock_is_named_and_left_as_it_is(lock, tmp_path, stand):
    dear = tmp_path / "dear"
    dear.write_text("dear")
    stand(lock, dear)
    assert turns.taken(lock) is None
    with pytest.raises(LongwatchError, match=f"{lock}.*LONGWATCH_LOCKS"), turns.turn(lock, tmp_path):
        raise AssertionError("it was used")
    assert dear.read_text() == "dear"


@pytest.mark.guarantee("L34")
def test_a_student_on_the_processor_leaves_the_accelerator_to_others(tmp_path):
    assert turns.path("auto", tmp_path).name == turns.path("cpu", tmp_path).name == "longwatch-processor.lock"
    (tmp_path / "nvidiactl").touch()
    assert turns.path("auto", tmp_path).name == "longwatch-accelerator.lock"
    assert turns.path("cpu", tmp_path).name == "longwatch-processor.lock"


# -- the gate


@pytest.mark.guarantee("L34")
def test_a_step_that_uses_the_student_waits_at_the_gate_with_the_reason_and_since_when(tmp_path, lock):
    probe = Scripted(but(on_ac=False), but(on_ac=False), but(on_ac=True), but(on_ac=True))
    gate = Gate(probe, settings(on_ac=True, zone="Europe/Berlin"), Watch(tmp_path))
    wait = gate(1, at(0, wall_s=wall("Europe/Berlin", 2026, 12, 1, 14, 5)))
    assert wait.reason.startswith(
        "the machine is not ready since 2026-12-01 14:05 CET: the machine runs on its battery"
    )
    assert (wait.delay_s, "14:05" in gate(1, at(60)).reason) == (60.0, True)
    assert "settle_s" in gate(1, at(120)).reason
    assert gate(1, at(200)) is None


@pytest.mark.guarantee("L34")
def test_a_watch_that_waits_only_for_its_turn_asks_to_be_next(tmp_path, lock):
    reasons = but(holder="x", memory_bytes=0), but(holder="x")
    gate = Gate(Scripted(*reasons), settings(), Watch(tmp_path))
    assert "x; 0.0 GB" in gate(1, now()).reason
    assert turns.wished(lock, tmp_path / "third") is None, "it could not begin anyway"
    assert gate(1, now()).delay_s == 60.0
    assert turns.wished(lock, tmp_path / "third").watch == str(tmp_path)


@pytest.mark.guarantee("L33", "L34")
def test_only_steps_that_use_the_student_are_asked_about():
    from learning import NOW, Walk, adopted, anchored, confirmed, prepared, trained  # noqa: PLC0415 - a walk of its own

    walk, asked = Walk(), []

    def gate(number, _now):
        asked.append(number)
        return Wait("not now", 60.0)

    gated = GatedLine(settings(), "/nowhere", gate)
    assert isinstance(gated.decide(walk.state, {}, NOW), Start), "tasks are prepared meanwhile"
    assert asked == []
    for what, more in ((prepared, {}), (trained, {}), (confirmed, {"kind": "gain"})):
        walk.do(what, **more)
        assert gated.decide(walk.state, {}, NOW) == Wait("not now", 60.0)
    walk.do(anchored)
    assert isinstance(gated.decide(walk.state, {}, NOW), Start), "what was accepted is adopted"
    walk.do(adopted)
    assert set(asked) == {1}


# -- the guard

STEP = Prune(id="x.1.1", number=1, keep=None)


@pytest.fixture
def work(tmp_path, lock, monkeypatch):
    """A step's program in this process, as `program.main` sets it up."""
    made = Work(tmp_path, STEP)
    before = signal.signal(signal.SIGTERM, lambda *_: made.ask_to_stop())
    monkeypatch.setattr(guard, "LOOK_S", 0.01)
    yield made
    signal.signal(signal.SIGTERM, before)


def until_asked(work):
    """Work as training does: until a pause comes."""
    deadline = threading.Event()
    for _ in range(1000):
        if work.should_stop():
            return Stopped("saved")
        deadline.wait(0.01)
    raise AssertionError("nobody paused it")


def guarding(work, monkeypatch, perform, *readings, **wished):
    probe = Scripted(*readings)
    monkeypatch.setattr(guard, "Machine", lambda *_: probe)
    return guard.guarded(work, Watch(work.folder), settings(**wished), perform)


@pytest.mark.guarantee("L14", "L34")
def test_a_machine_that_stops_being_ready_pauses_the_step_by_its_own_path(work, monkeypatch):
    calm = [but(on_ac=True)] * 3
    found = guarding(work, monkeypatch, lambda: until_asked(work), *calm, but(on_ac=False), on_ac=True)
    assert isinstance(found, Stopped)
    assert "battery" in found.what
    [note] = work._notes
    assert (note.kind, "goes on where it stopped" in note.text) == ("machine.needed", True)
    assert turns.taken(turns.path("cpu")) is None


@pytest.mark.guarantee("L34")
def test_a_moment_is_no_reason_to_pause(work, monkeypatch):
    probe = Scripted(but(on_ac=True), but(on_ac=False), but(on_ac=True), but(on_ac=False), but(on_ac=True))
    enough = threading.Event()

    def read(number=None, read=probe.read):
        if probe.looks > 20:
            enough.set()
        return read(number)

    probe.read = read
    monkeypatch.setattr(guard, "Machine", lambda *_: probe)

    def perform():
        assert enough.wait(20)
        return Succeeded(msgspec.Raw(b"null"))

    assert isinstance(guard.guarded(work, Watch(work.folder), settings(on_ac=True), perform), Succeeded)
    assert not work.stop_requested
    assert work._notes == []


@pytest.mark.guarantee("L14", "L34")
def test_a_person_s_pause_stays_a_person_s_pause(work, monkeypatch):
    def perform():
        signal.raise_signal(signal.SIGTERM)
        return until_asked(work)

    found = guarding(work, monkeypatch, perform, but(on_ac=True), on_ac=True)
    assert found == Stopped("saved")
    assert work._notes == []


@pytest.mark.guarantee("L34")
def test_a_step_that_nobody_asked_the_gate_for_looks_before_it_loads_anything(work, monkeypatch):
    found = guarding(work, monkeypatch, lambda: pytest.fail("it began"), but(on_ac=False), on_ac=True)
    assert "battery" in found.what


@pytest.mark.guarantee("L34", "K26")
def test_a_step_whose_turn_it_is_not_waits_without_being_blocked(work, other, monkeypatch):
    with pytest.raises(TransientError) as raised:
        guarding(work, monkeypatch, lambda: pytest.fail("two have it"), CALM)
    assert raised.value.retry_after_s == turns.AGAIN_S
    found = guarding(work, monkeypatch, lambda: Succeeded(msgspec.Raw(b"1")), CALM, one_watch=False)
    assert isinstance(found, Succeeded)


# -- what a person reads


@pytest.mark.guarantee("L34", "K38")
def test_doctor_tells_what_is_reported_and_what_is_asked_for_in_vain():
    seen = msgspec.structs.replace(
        device(others=(GAME,), power_w=30.0), next_bytes=10**9, load_cores=0.5, on_ac=True
    )
    lines = {one.name: one for one in findings(seen, settings(quiet_hours="00:00-23:59"), at())}
    assert lines["accelerator"].text == (
        "RTX: 20.0 GB free, 40 degrees, draws 30 W, may draw 250 W, used by game (process 77)"
    )
    assert lines["ready"].standing == "note"
    assert "quiet_hours" in lines["ready"].text
    assert lines["next experiment"].text == "is going to write about 1.00 GB"
    silent = {one.name: one for one in findings(CALM, settings(on_ac=True, power_limit_w=250.0), at())}
    assert "power_limit_w, on_ac" in silent["not reported"].text
    assert "longwatch[nvidia]" in silent["not reported"].mend
    assert silent["ready"].standing == "fine"
