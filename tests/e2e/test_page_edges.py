"""The page with what is unusual: long queues, names with markup, watches that are broken, stale or taken away while it is open."""

import contextlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support import pages, students, watches

from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import CardRef, Surveyed
from longwatch.observe.finding import name_of

pytestmark = pytest.mark.e2e
expect.set_options(timeout=30_000)

EVIL = "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)> 日本語 & " + "x" * 300
JOBS = 300
BLOCKED = 12


@dataclass
class Site:
    """A page with a long queue, a new watch, and one whose database is damaged."""

    address: str
    folder: Path
    long: Watch
    new: Watch


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("edges")
    long = watches.migrate(folder / "a long queue & <b>ünïcode</b>")
    fill(long)
    new = watches.migrate(folder / "new")
    students.learn(folder / "student")
    damaged = watches.migrate(folder / "damaged")
    damaged.database.write_bytes(b"no database")
    with pages.served(folder) as address:
        yield Site(address, folder, long, new)


def fill(watch: Watch) -> None:
    names = [f"job-{number:03}" for number in range(JOBS)]
    cards = tuple(CardRef(id=name, title=f"{EVIL} {name}", digest="0" * 64) for name in names)
    jobs = {name: Job(status=Status.READY) for name in names}
    for name in names[:BLOCKED]:
        jobs[name] = Job(status=Status.BLOCKED, number=3, attempts=3, failure=f"{EVIL}\nsecond line")
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", EVIL))
    state = MigrateState(head="c" * 40, jobs=jobs, survey=Surveyed(head="c" * 40, cards=cards))
    told = [
        Note("attempt.refused.checks", f"{name}: attempt {number} refused: {EVIL}", {"job": name})
        for name in names[:BLOCKED]
        for number in (1, 2, 3)
    ]
    life = Lifecycle(phase=Phase.BLOCKED, reason=EVIL)
    store.commit(generation, notes=told, line=msgspec.json.encode(state), lifecycle=life)
    store.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pages.chromium() as started:
        yield started


def add(watch: Watch, text: str) -> None:
    store = Store.open(watch.database)
    store.begin_generation(Note("job.told", text))
    store.close()


def width_left_over(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.guarantee("K40", "K34")
@pytest.mark.parametrize("width", [1200, 640, 320])
def test_a_long_queue_with_markup_in_its_names_is_text_and_fits_at_any_zoom(
    site: Site, browser: Browser, width: int
) -> None:
    # 640 pixels are what is left of a laptop at 200 %, 320 of one at 400 %.
    with pages.opened(browser, site.address, width=width) as (page, _):
        page.get_by_role("button", name="a long queue").click()
        expect(page.get_by_role("main")).to_contain_text("<script>alert(1)</script>")
        rows = page.locator("tbody").get_by_role("row")
        expect(rows).to_have_count(JOBS)
        assert width_left_over(page) <= 0
        page.get_by_role("button", name=f"blocked {BLOCKED}").click()
        expect(rows).to_have_count(BLOCKED)
        rows.first.get_by_text("earlier starts").click()
        expect(rows.first).to_contain_text("attempt 3 refused")
        assert width_left_over(page) <= 0


@pytest.mark.guarantee("K40")
def test_what_was_opened_stays_open_when_news_come(site: Site, browser: Browser) -> None:
    with pages.opened(browser, site.address) as (page, _):
        page.get_by_role("button", name="a long queue").click()
        row = page.locator("tbody").get_by_role("row").first
        row.get_by_text("earlier starts").click()
        expect(row).to_contain_text("attempt 3 refused")
        summary = row.locator("summary").last
        summary.focus()
        change_tokens(site.long)
        expect(page.get_by_role("tabpanel")).to_contain_text("4,711 tokens")
        expect(row).to_contain_text("attempt 3 refused")
        expect(summary).to_be_focused()


def change_tokens(watch: Watch) -> None:
    store = Store.open(watch.database)
    state = msgspec.json.decode(store.snapshot().line, type=MigrateState)
    generation = store.begin_generation(Note("supervisor.began", "again"))
    store.commit(generation, line=msgspec.json.encode(msgspec.structs.replace(state, tokens=4711)))
    store.close()


@pytest.mark.guarantee("K40")
def test_who_needs_somebody_comes_first_and_a_damaged_watch_hides_no_other(
    site: Site, browser: Browser
) -> None:
    with pages.opened(browser, site.address) as (page, _):
        items = page.get_by_role("navigation").get_by_role("listitem")
        expect(items).to_contain_text(["damaged", "a long queue", "new", "student"])
        expect(items.first).to_contain_text("needs you")
        expect(items.nth(2)).to_contain_text("It was never started")
        page.get_by_role("button", name="new").click()
        expect(page.get_by_role("tabpanel")).to_contain_text("No jobs yet")
        page.get_by_role("tab", name="Time").click()
        expect(page.get_by_role("tabpanel")).to_contain_text("nothing to measure")


@pytest.mark.guarantee("K40")
def test_an_address_leads_to_a_watch_and_its_view(site: Site, browser: Browser) -> None:
    with pages.opened(browser, site.address) as (page, _):
        page.goto(f"{pages.origin(site.address)}/#{name_of(site.new.root)}/receipts")
        page.reload()
        expect(page.get_by_role("tab", selected=True)).to_have_text("Receipts")
        expect(page.get_by_role("heading", level=2)).to_contain_text("new")
        page.get_by_role("tab", name="Logs").click()
        expect(page).to_have_url(re.compile(f"#{name_of(site.new.root)}/logs$"))
        page.goto(f"{pages.origin(site.address)}/#0123456789ab/events")
        page.reload()
        expect(page.get_by_role("main")).to_contain_text("The watch of this address is not here")


@pytest.mark.guarantee("K40")
def test_a_watch_that_is_taken_away_is_said_to_be_gone_and_the_page_goes_on(
    site: Site, browser: Browser
) -> None:
    brief = watches.migrate(site.folder / "brief")
    with pages.opened(browser, site.address) as (page, seen):
        page.get_by_role("button", name="brief").click()
        expect(page.get_by_role("main")).to_contain_text("It was never started")
        shutil.rmtree(brief.root)
        expect(page.get_by_role("main")).to_contain_text("It is not where it was")
        page.get_by_role("tab", name="Events").click()
        expect(page.get_by_role("tabpanel")).to_contain_text("no such watch")
        page.get_by_role("button", name="new").click()
        page.get_by_role("tab", name="Events").click()
        add(site.new, "news of another")
        expect(page.get_by_role("list", name="Events")).to_contain_text("news of another")
        # The browser itself writes down that an answer was a refusal.
        assert all("404" in line or "409" in line for line in seen.said), seen.said
        seen.said.clear()


@pytest.mark.guarantee("K40")
def test_everything_can_be_reached_by_keyboard_and_seen_to_be(site: Site, browser: Browser) -> None:
    with pages.opened(browser, site.address, still=True) as (page, _):
        expect(page.get_by_role("tab", selected=True)).to_be_visible()
        wanted = {"To the watch", "Stop", "Jobs", "new"}
        for _step in range(60):
            page.keyboard.press("Tab")
            name, outline = page.evaluate(FOCUSED)
            if name in {"To the watch", *wanted}:
                assert outline != "none", name
            wanted -= {name, *(one for one in wanted if name.startswith(one) or f"/{one}" in name)}
        assert wanted == set()
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.stack span')).transitionDuration")
            == "0s"
        )


FOCUSED = (
    """[document.activeElement.textContent.trim(), getComputedStyle(document.activeElement).outlineStyle]"""
)


@pytest.mark.guarantee("K40", "L36")
@pytest.mark.parametrize("width", [1200, 360])
def test_experiments_are_drawn_and_told(site: Site, browser: Browser, width: int) -> None:
    with pages.opened(browser, site.address, width=width) as (page, _):
        page.get_by_role("button", name="student").click()
        for drawing in ("Percent of development tasks", "Training loss", "Evidence of experiment 1"):
            expect(page.get_by_role("img", name=drawing)).to_be_visible()
        decided = page.get_by_role("table", name="Experiments").get_by_role(
            "row", name=re.compile("accepted")
        )
        decided.locator("summary").click()
        expect(decided).to_contain_text("<b>no worse</b> in any family")
        expect(page.get_by_role("table", name="Audits")).to_contain_text("void: no toolchain")
        assert width_left_over(page) <= 0
        page.evaluate(f"if (!window.axe) {{ {pages.AXE.read_text()} }}")
        assert page.evaluate(pages.VIOLATIONS) == []


@pytest.mark.guarantee("K40")
def test_a_server_that_ends_says_nothing_and_the_page_says_so(site: Site, browser: Browser) -> None:
    with contextlib.ExitStack() as serving:
        address = serving.enter_context(pages.served(site.new.root))
        with pages.opened(browser, address) as (page, seen):
            expect(page.get_by_role("status").first).to_have_text("live")
            serving.close()
            expect(page.get_by_role("status").first).to_contain_text("The watches go on without it")
            seen.said.clear()
