import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.identity import Stat
from longwatch.kernel.tree import family


def stat(pid: int, ppid: int, session: int | None = None, state: str = "S") -> Stat:
    return Stat(
        pid=pid,
        state=state,
        ppid=ppid,
        session=session or pid,
        cpu_ticks=0,
        ended_ticks=0,
        start_ticks=pid,
        rss_pages=1,
        process_group=pid,
    )


def pids(stats: tuple[Stat, ...]) -> set[int]:
    return {one.pid for one in stats}


def test_descendants_and_session_members_belong_to_it() -> None:
    stats = (stat(10, 1), stat(11, 10), stat(12, 11), stat(13, 1, session=11), stat(14, 13), stat(20, 1))
    assert pids(family(stats, frozenset({10}), strangers=frozenset())) == {10, 11, 12, 13, 14}


def test_zombies_are_dead() -> None:
    stats = (stat(10, 1, state="Z"), stat(11, 1))
    assert family(stats, frozenset({10}), strangers=frozenset()) == ()


@pytest.mark.guarantee("K19")
@given(
    st.lists(
        st.tuples(st.integers(2, 30), st.integers(1, 30), st.integers(1, 30)), unique_by=lambda row: row[0]
    )
)
def test_strangers_are_never_taken(rows: list[tuple[int, int, int]]) -> None:
    stats = tuple(stat(*row) for row in rows)
    strangers = frozenset({1, 2, 3, 5, 8})
    assert not pids(family(stats, frozenset(range(2, 30)), strangers=strangers)) & strangers
