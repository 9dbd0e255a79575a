"""What every probe of a machine keeps to: this very machine's, one beside accelerators that are not here, and the scripted one."""

import os
from itertools import product

import msgspec
import pytest
from machines import Nvml, Scripted, battery, laptop_nvml, process, put, workstation

from longwatch.kernel.clock import now
from longwatch.kernel.watch import Watch
from longwatch.learn.readiness.judging import NotReady, Ready, judge
from longwatch.learn.readiness.machine import Machine
from longwatch.learn.readiness.readings import Device, Program, Readings
from longwatch.learn.readiness.telling import findings
from longwatch.learn.settings import LearnSettings, Readiness, Student

SETTINGS = LearnSettings(kind="learn")
ALL_ASKED = Readiness(
    memory_bytes=1,
    share_accelerator=False,
    accelerator_bytes=1,
    temperature_c=500.0,
    power_limit_w=1e6,
    load_cores=1e6,
    on_ac=True,
)
SAYS_ALL = Readings(
    devices=(Device(name="x", others=(), free_bytes=9, temperature_c=9.0, power_w=1.0, power_limit_w=9.0),),
    memory_bytes=9,
    free_disk_bytes=10**12,
    next_bytes=0,
    load_cores=0.0,
    temperature_c=9.0,
    on_ac=True,
)


def machine(tmp_path, library=None, **kernel):
    return Machine(Watch(tmp_path), SETTINGS, everything=True, library=library, **kernel)


PROBES = {
    "this machine": machine,
    "no driver": lambda tmp_path: machine(tmp_path, Nvml(driver=False)),
    "laptop": lambda tmp_path: machine(tmp_path, laptop_nvml(), sys=battery(tmp_path / "sys")),
    "workstation": lambda tmp_path: machine(tmp_path, workstation(process(os.getpid(), 4 * 10**9))),
    "empty kernel": lambda tmp_path: machine(tmp_path, sys=tmp_path / "none", proc=tmp_path / "none"),
    "strange kernel": lambda tmp_path: machine(
        tmp_path,
        sys=put(
            tmp_path / "sys",
            class__thermal__thermal_zone0__type="x86_pkg_temp",
            class__hwmon__hwmon0="a file",
        ),
        proc=put(tmp_path / "proc", meminfo="", stat="cpu"),
    ),
    "scripted": lambda _tmp_path: Scripted(SAYS_ALL),
    "scripted, silent": lambda _tmp_path: Scripted(Readings()),
}


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGWATCH_LOCKS", str(tmp_path))


@pytest.fixture(params=PROBES)
def probe(request, tmp_path):
    return PROBES[request.param](tmp_path)


@pytest.mark.guarantee("L34")
def test_what_a_probe_says_is_plausible_and_can_be_written(probe):
    for number in (None, 1, 1):
        found = probe.read(number)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Readings) == found
        told = [found.memory_bytes, found.free_disk_bytes, found.next_bytes, found.load_cores]
        assert all(one is None or one >= 0 for one in told)
        assert found.temperature_c is None or -50 < found.temperature_c < 150
        assert all(device.name for device in found.devices)


@pytest.mark.guarantee("L34")
def test_this_process_is_nobody_else(probe):
    found = probe.read()
    assert found.holder is None
    assert all(one.pid != os.getpid() for device in found.devices for one in device.others or ())


@pytest.mark.guarantee("L34")
def test_a_calm_machine_is_ready_whatever_it_does_not_report(probe):
    found = probe.read()
    befores = (None, Ready(), NotReady(reasons=("x",), since=now(), again_s=1.0))
    for wished, before in product((Readiness(memory_bytes=0), ALL_ASKED), befores):
        given = LearnSettings(kind="learn", readiness=wished)
        assert judge(found, given, before, now()) == Ready()


@pytest.mark.guarantee("L34", "K38")
def test_doctor_says_a_line_of_each_machine_and_finds_nothing_wrong(probe):
    given = msgspec.structs.replace(SETTINGS, readiness=ALL_ASKED, student=Student(device="auto"))
    lines = list(findings(probe.read(1), given, now()))
    assert lines[-1].name == "ready"
    assert all(one.text and one.standing in {"fine", "note"} for one in lines)


@pytest.mark.guarantee("L34")
def test_an_accelerator_is_read_field_by_field(tmp_path):
    reader = machine(tmp_path, workstation(process(1, 10**9), process(2**22 - 3, None), process(os.getpid())))
    [device] = reader.read().devices
    [other] = device.others
    assert (other.pid, other.memory_bytes) == (1, 10**9), "who is not there, and we, are nobody else"
    assert other == Program(pid=1, name=other.name, memory_bytes=10**9)
    assert (device.free_bytes, device.temperature_c) == (20 * 10**9, 50.0)
    assert (device.power_w, device.power_limit_w) == (30.0, 350.0)
    assert machine(tmp_path, laptop_nvml()).read().devices == (Device(name="a laptop's"),)
