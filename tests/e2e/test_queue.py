"""In which order a real watch works off its cards, and when it does one again."""

from pathlib import Path

import pytest
from tests.support.repositories import git
from tests.support.shop import Shop, open_shop

pytestmark = pytest.mark.e2e


def run(shop: Shop, code: int = 0) -> None:
    finished = shop.call("run")
    assert finished.returncode == code, (finished, shop.said())


@pytest.mark.guarantee("M2", "M3", "M4", "M1", "M25")
def test_order_and_cards_that_come_and_change_later(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("d",))
    shop.job("b", head={"after": ["a"]})
    shop.job("a")
    shop.job("c", head={"priority": 5})
    run(shop)
    assert shop.done() == ["c", "a", "b", "d"]
    # A card that comes later is done, a card that was edited is done again, all others rest; untouched ones go first.
    shop.job("e")
    shop.card("a", "Bring it, and be sure.")
    shop.record("a", 2, patch="", claim="no_change", reason="It is there already.")
    run(shop)
    assert shop.done() == ["c", "a", "b", "d", "e"]
    claims = [text.split(":")[0] for kind, text in shop.events() if kind == "attempt.claimed"]
    assert claims == ["c", "a", "b", "d", "e", "a"]
    assert any(kind == "job.done" and "no change was needed" in text for kind, text in shop.events())
    assert shop.call("verify").returncode == 0
    before = len(shop.events())
    run(shop)
    assert not any(kind == "attempt.claimed" for kind, _ in shop.events()[before:])


@pytest.mark.guarantee("M4", "M26", "M33")
def test_what_was_taken_back_is_done_again(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    run(shop)
    git(shop.root, "revert", "--no-edit", "HEAD~1")
    assert not (shop.root / "shop/a.py").exists()
    run(shop, 2)
    assert "--refresh-baseline" in shop.status().reason
    assert shop.call("resume", "--refresh-baseline").returncode == 2, "without --accept nobody has looked"
    assert shop.call("resume", "--accept", "--refresh-baseline").returncode == 0
    run(shop)
    assert shop.done() == ["a", "b", "a"]
    assert (shop.root / "shop/a.py").exists()
    assert shop.call("verify").returncode == 0


@pytest.mark.guarantee("M27", "M2", "K26")
def test_a_blocked_job_holds_up_only_what_comes_after_it(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("b",))
    shop.job("a", patch="", claim="blocked", reason="The manual is missing.")
    shop.job("c", head={"after": ["a"]})
    shop.job("d", head={"after": ["c", "b"]})
    shop.configure(worker={"max_attempts": 1})
    run(shop, 2)
    assert shop.done() == ["b"]
    reason = shop.status().reason
    assert "The manual is missing." in reason
    assert "Waiting for them: c, d." in reason
    assert dict(shop.status().summary)["jobs"].startswith("4: ")
    shop.record("a", 2)
    assert shop.call("resume", "--accept").returncode == 0
    run(shop)
    assert shop.done() == ["b", "a", "c", "d"]
