"""Several jobs at once, in a real watch: each lands once, on the branch as it is, and what collides begins again."""

import random
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.repositories import git
from tests.support.shop import Shop, change, new_file, open_shop, settle
from tests.support.wholeness import expected_tree, finish, remote_of, shoot, whole

pytestmark = pytest.mark.e2e

JOBS = ("a", "b", "c", "d", "e", "f")


def parallel(folder: Path, jobs: tuple[str, ...], **behaviour: object) -> Shop:
    shop = open_shop(folder, jobs, **behaviour)
    shop.configure(worker={"max_parallel": 4, "retry_delay_s": 0.1})
    return shop


@pytest.mark.guarantee("M37", "M24", "M26", "M36")
def test_jobs_are_worked_at_together_and_land_one_by_one(tmp_path: Path) -> None:
    shop = parallel(tmp_path, JOBS[:4], linger_s=4)
    running = shop.begin()
    shop.wait("four at work", lambda _: sum(".attempt." in step for step in shop.open_steps()) == 4)
    assert settle(shop, running) == 0, shop.said()
    whole(shop, JOBS[:4])
    # The first landed as it was; the others were merged onto it and verified again, each with a receipt of both.
    assert shop.kinds().count("job.merged") == 3
    assert shop.kinds().count("job.verified") == 7
    assert shop.tree() == expected_tree(shop, JOBS[:4])
    assert git(shop.root, "log", "--merges", "--oneline") == ""


COLLIDING = new_file("shop/shared.py", ["NAME = '{job}'"])


@pytest.mark.guarantee("M37", "M27")
def test_what_collides_is_returned_with_the_reason_and_done_again(tmp_path: Path) -> None:
    shop = parallel(tmp_path, ("a", "b"))
    for job in ("a", "b"):
        shop.card(job, owned=[f"shop/{job}.py", f"tests/test_{job}.py", "shop/**"])
        shop.record(job, patch=change(job) + COLLIDING.format(job=job), linger_s=3)
        shop.record(job, number=2)
    finish(shop)
    refused = [(kind, text) for kind, text in shop.events() if kind.startswith("attempt.refused")]
    assert [kind for kind, _ in refused] == ["attempt.refused.merge"]
    assert "another job landed first and changed the same places: shop/shared.py" in refused[0][1]
    whole(shop, ("a", "b"))


@pytest.mark.guarantee("M37", "K1", "K5", "K6", "K18", "K23")
def test_killed_at_random_moments_nothing_is_lost_or_landed_twice(tmp_path: Path) -> None:
    dice = random.Random(7)
    shop = parallel(tmp_path, JOBS, linger_s=0.3)
    remote = remote_of(shop, tmp_path)
    shop.configure(worker={"max_attempts": 1000}, backoff={"max_faults": 1000})
    for _ in range(8):
        supervisor = shop.begin()
        try:
            supervisor.wait(dice.uniform(0.8, 4))
        except subprocess.TimeoutExpired:
            shoot(shop, supervisor, dice.choices(("supervisor", "program", "worker", "all"), (4, 2, 1, 3))[0])
        if supervisor.poll() is None:
            supervisor.send_signal(signal.SIGKILL)
        assert settle(shop, supervisor) in {0, -signal.SIGKILL}, shop.said()
    finish(shop)
    whole(shop, JOBS, remote)
    assert shop.tree() == expected_tree(shop, JOBS)
