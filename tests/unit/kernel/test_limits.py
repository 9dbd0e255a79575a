import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.limits import LimitHit, Limits, Observation, verdict

TIGHT = Limits(
    wall_s=100,
    start_s=10,
    idle_s=20,
    log_bytes=1000,
    memory_bytes=5000,
    processes=8,
    free_disk_bytes=300,
)
QUIET = Observation(
    elapsed_s=50,
    first_output_s=5,
    idle_s=3,
    log_bytes=1000,
    memory_bytes=5000,
    processes=8,
    free_disk_bytes=300,
)


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize(
    ("change", "hit"),
    [
        ({}, None),
        ({"elapsed_s": 99.9}, None),
        ({"elapsed_s": 100}, LimitHit.WALL),
        ({"first_output_s": None, "elapsed_s": 9.9}, None),
        ({"first_output_s": None, "elapsed_s": 10}, LimitHit.START),
        ({"idle_s": 20}, LimitHit.IDLE),
        ({"log_bytes": 1001}, LimitHit.LOG),
        ({"memory_bytes": 5001}, LimitHit.MEMORY),
        ({"processes": 9}, LimitHit.PROCESSES),
        ({"free_disk_bytes": 299}, LimitHit.DISK),
        ({"idle_s": 20, "memory_bytes": 5001}, LimitHit.MEMORY),
        ({"elapsed_s": 100, "log_bytes": 1001}, LimitHit.LOG),
    ],
)
def test_each_limit_is_hit_at_its_bound(change: dict[str, float], hit: LimitHit | None) -> None:
    found = verdict(TIGHT, msgspec.structs.replace(QUIET, **change))
    assert (found[0] if found else None) == hit


@pytest.mark.guarantee("K17")
@given(st.builds(Observation, elapsed_s=st.floats(0, 99), first_output_s=st.none() | st.floats(0, 99)))
def test_what_is_not_bounded_never_ends_a_child(seen: Observation) -> None:
    if seen.log_bytes <= 1000:
        assert verdict(Limits(wall_s=100, log_bytes=1000), seen) is None


def test_the_sentence_names_the_limit() -> None:
    hit = verdict(TIGHT, msgspec.structs.replace(QUIET, log_bytes=7777))
    assert hit is not None
    assert "7777" in hit[1]
    assert "1000" in hit[1]
