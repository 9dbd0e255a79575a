"""The bound on all logs together."""

import os

import pytest

from longwatch.kernel.logs import prune


def log(path, size, age_s):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (10_000 - age_s, 10_000 - age_s))
    return path


@pytest.mark.guarantee("K24")
def test_the_oldest_logs_go_first_and_nothing_else_goes(tmp_path):
    old = log(tmp_path / "a" / "1" / "worker.log", 600, 300)
    middle = log(tmp_path / "b" / "2" / "log.txt", 600, 200)
    new = log(tmp_path / "a" / "3" / "worker.log", 600, 100)
    answer = log(tmp_path / "a" / "1" / "answer.json", 9000, 900)
    assert prune((tmp_path / "a", tmp_path / "b"), 1300) == (old,)
    assert not old.exists()
    assert middle.exists()
    assert new.exists()
    assert answer.exists()
    assert prune((tmp_path / "a", tmp_path / "b"), 1300) == ()


@pytest.mark.guarantee("K24", "K9")
def test_a_link_is_no_log_and_what_it_leads_to_stays(tmp_path):
    outside = log(tmp_path / "outside" / "precious.log", 5000, 500)
    watch = tmp_path / "watch"
    watch.mkdir()
    (watch / "worker.log").symlink_to(outside)
    prune((watch,), 0)
    assert outside.read_bytes() == b"x" * 5000
