import os
import subprocess

import pytest

from longwatch.kernel import cgroup
from longwatch.kernel.cgroup import CgroupKind
from longwatch.kernel.process import new_cookie
from longwatch.kernel.tree import remove_group

needs_groups = pytest.mark.skipif(
    cgroup.detect().kind is CgroupKind.NONE, reason="no writable control groups on this host"
)


def test_the_answer_has_a_reason() -> None:
    support = cgroup.detect()
    assert support.reason
    assert bool(support.parents) == (support.kind is not CgroupKind.NONE)


@needs_groups
@pytest.mark.guarantee("K18")
def test_a_group_is_found_by_its_cookie_and_ends_what_lives_in_it() -> None:
    cookie = new_cookie()
    made = cgroup.create(cookie, memory_bytes=None, processes=None)
    assert made is not None
    with subprocess.Popen(["sleep", "600"], preexec_fn=lambda: cgroup.join(made)) as child:  # noqa: PLW1509 - one thread
        found = cgroup.find(cookie)
        assert found is not None
        assert set(found.folders) == set(made.folders)
        assert cgroup.members(found) == {child.pid}
        assert not cgroup.remove(found)
        cgroup.kill(found)
        if not any((folder / "cgroup.kill").exists() for folder in found.folders):
            child.kill()
    remove_group(found)
    assert cgroup.find(cookie) is None


@needs_groups
@pytest.mark.guarantee("K23")
def test_the_groups_of_nested_children_are_found_too() -> None:
    cookie = new_cookie()
    made = cgroup.create(f"{cookie}.0011", memory_bytes=None, processes=None)
    assert made is not None
    try:
        assert cgroup.find(cookie) is not None
        assert cgroup.find(cookie[:-1]) is None
    finally:
        remove_group(made)


@needs_groups
@pytest.mark.guarantee("K17")
def test_the_number_of_processes_is_limited() -> None:
    made = cgroup.create(new_cookie(), memory_bytes=None, processes=4)
    assert made is not None
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; wait"
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            preexec_fn=lambda: cgroup.join(made),
            capture_output=True,
            check=False,
            start_new_session=True,
        )
    finally:
        cgroup.kill(made)
        remove_group(made)
    assert done.returncode != 0
    assert os.strerror(11) in done.stderr.decode() or b"fork" in done.stderr
