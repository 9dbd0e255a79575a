"""What all tests need of the process that they run in."""

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the suite in the background lets it ignore interrupts, and every program under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Watches of one machine take turns; those of tests that run at the same time shall not wait for each other.
os.environ["LONGWATCH_LOCKS"] = tempfile.mkdtemp(prefix="longwatch-locks-")
atexit.register(shutil.rmtree, os.environ["LONGWATCH_LOCKS"], ignore_errors=True)

# Where `python3` is a script that first looks for a version (pyenv, asdf), each start of it starts twenty programs more.
if (found := shutil.which("python3")) and Path(found).resolve().read_bytes()[:2] == b"#!":
    os.environ["PATH"] = f"{Path(sys.base_prefix, 'bin')}:{os.environ['PATH']}"

# How slow a draw or an example is says how busy the machine is, and nothing about the test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(autouse=True)
def _orphans():
    """Bury what a test orphaned.

    A test that runs a child with `process.run` makes this process a subreaper: what later tests kill the parents of becomes
    its child, and the dead count against the limits of the sandboxes' user until somebody asks for them.
    """
    yield
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
