"""kill -9 of a program that counts its active seconds: none is lost or counted twice, a second being the tolerance (L14)."""

import signal
import subprocess
import sys
import time

import pytest
from tests.support import toy

from longwatch.learn.experiment.meter import read

TOLERANCE_S = 1.0


class Counting:
    """The program, and for how long it certainly and at most counted."""

    def __init__(self, folder):
        self.started_s = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.metered", str(folder)],
            cwd=toy.PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "counting\n"
        self.counting_s = time.monotonic()

    def kill(self):
        """Return the least and the most seconds that it can have counted."""
        least_s = time.monotonic() - self.counting_s
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        return least_s, time.monotonic() - self.started_s


def wait_until(holds):
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.guarantee("L14", "K23")
def test_killed_again_and_again_it_loses_and_doubles_no_second(tmp_path):
    for number in range(3):
        before_s = read(tmp_path).total_s
        program = Counting(tmp_path)
        wait_until(lambda least_s=before_s + 0.3 * (number + 1): read(tmp_path).total_s > least_s)
        least_s, most_s = program.kill()
        counted_s = read(tmp_path).total_s - before_s
        assert least_s - TOLERANCE_S <= counted_s <= most_s


@pytest.mark.guarantee("L14")
def test_while_it_is_stopped_it_counts_nothing(tmp_path):
    program = Counting(tmp_path)
    wait_until(lambda: read(tmp_path).total_s > 0)
    program.process.send_signal(signal.SIGSTOP)
    stopped_s = time.monotonic()
    stood = read(tmp_path).total_s
    time.sleep(3.0)  # what is measured is time itself
    slept_s = time.monotonic() - stopped_s
    program.process.send_signal(signal.SIGCONT)
    wait_until(lambda: read(tmp_path).total_s > stood + 0.6)
    _, most_s = program.kill()
    assert read(tmp_path).total_s <= most_s - slept_s + TOLERANCE_S
