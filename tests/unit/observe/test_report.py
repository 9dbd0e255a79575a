"""What a report says, and that nothing that a watch says can become more than text in it."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.support import watches

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.journal import Event
from longwatch.learn.board import Experiment, LearnBoard, Round, Score
from longwatch.migrate.board import JobRow, MigrateBoard
from longwatch.migrate.state import Status as Standing
from longwatch.observe.report import reading
from longwatch.observe.report.drawing import draw
from longwatch.observe.report.telling import MOST_LINES, Facts, story
from longwatch.observe.report.writing import html, markdown

EVIL = "<script>alert(1)</script> | `x` <img src=http://evil.example> [a](http://evil.example)\n# head"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    watch = watches.migrate(tmp_path / "shop")
    watches.verified(watch)
    return reading.facts(watch)


def event(seq: int, kind: str, text: str, **data: float) -> Event:
    return Event(seq=seq, at="2026-01-01T00:00:00Z", generation=1, kind=kind, text=text, data=data)


JOBS = MigrateBoard(
    jobs=(
        JobRow(id="a", title="Do a", status=Standing.DONE, starts=2, commit="c" * 40, receipt="a" * 64),
        JobRow(id="b", title=EVIL, status=Standing.BLOCKED, starts=3, attempts=3, failure=EVIL),
        *(JobRow(id=f"n{n}", title="x", status=Standing.BLOCKED, failure="why") for n in range(9)),
    ),
    tokens=1234,
    usd=1.5,
)
LEARNT = LearnBoard(
    champion="d" * 64,
    experiments=(
        Experiment(number=1, decision="accepted", sentences=(EVIL,), adapter="d" * 64, receipt="b" * 64),
        Experiment(number=2, decision="train", running=True),
    ),
    rounds=tuple(
        Round(
            experiment=1,
            round=n,
            passed=2 * n,
            asked=20,
            total=20,
            champion=3,
            base=1,
            examples=50,
            loss_first=0.5,
            loss_last=0.4 / n,
        )
        for n in (1, 2)
    ),
    scores=(
        Score(
            look=1,
            language="python",
            void="",
            total=164,
            base=9,
            base_low=0.02,
            base_high=0.1,
            champion=12,
            champion_low=0.04,
            champion_high=0.12,
        ),
        Score(
            look=1,
            language="perl",
            void="no toolchain",
            total=0,
            base=0,
            base_low=0,
            base_high=0,
            champion=0,
            champion_low=0,
            champion_high=0,
        ),
    ),
    alpha_wealth=0.03,
    next_alpha=0.01,
)
BLOCKS = tuple(
    event(n, "block.confirmed", "x", experiment=1, judged=20.0 * n, evidence=10.0**n, needed=45.7)
    for n in (1, 2)
)


@pytest.mark.guarantee("L36", "K36")
def test_the_story_of_a_queue_says_what_moved_what_was_refused_and_what_is_needed(facts: Facts) -> None:
    refused = (event(1, "attempt.refused.checks", "b: no"), event(2, "attempt.refused.claim", "b: no"))
    told = story(msgspec.structs.replace(facts, board=JOBS, events=(*refused, event(3, "attempt.lost", "x"))))
    text = "\n".join(told.lines)
    assert len(told.lines) <= MOST_LINES
    assert "1 of 11 jobs are done and verified (10 blocked, 1 done)" in text
    assert "Blocked besides: 7" in text
    assert "Refused attempts: 2 (1 for its checks, 1 for its claim)" in text
    assert "1,234 tokens and 1.50 USD" in text
    assert "everything holds" in text
    assert told.decisions.rows == (("a", "Do a", "2", "c" * 12, "a" * 64),)
    assert told.health.command == "longwatch run"


@pytest.mark.guarantee("L36")
def test_the_story_of_a_student_has_its_plots_and_every_decision_with_its_receipt(facts: Facts) -> None:
    told = story(msgspec.structs.replace(facts, board=LEARNT, events=BLOCKS))
    assert [figure.title.split(",")[0] for figure in told.figures] == [
        "Development tasks passed",
        "Training loss",
        "Evidence of experiment 1",
        "Look 1 at the public benchmark",
        "Where the time went",
    ]
    assert told.figures[2].lines[0].points == ((0.0, 1.0), (20.0, 10.0), (40.0, 100.0))
    assert (told.figures[2].limit, told.figures[2].logarithmic) == (45.7, True)
    assert [bar.name for bar in told.figures[3].bars] == ["python, base", "python, champion"]
    assert told.decisions.rows[0][-1] == "b" * 64
    assert "python 9 -> 12 of 164" in "\n".join(told.lines)
    for figure in told.figures:
        drawn = ET.fromstring(draw(figure))
        assert drawn.attrib["role"] == "img"
        numbers = re.findall(r"-?[0-9.]+", " ".join(one.attrib.get("points", "") for one in drawn))
        assert all(0 <= float(number) <= 640 for number in numbers)


@pytest.mark.guarantee("L36")
def test_what_is_long_is_folded_away_and_every_decision_still_stands_in_the_page(facts: Facts) -> None:
    past = tuple(
        Experiment(number=n, decision="rejected", sentences=("no",), receipt=f"{n:064x}") for n in range(200)
    )
    blocks = tuple(
        event(n, "block.confirmed", "x", experiment=n, judged=20.0, evidence=2.0, needed=45.7)
        for n in range(200)
    )
    board = msgspec.structs.replace(LEARNT, experiments=past, rounds=LEARNT.rounds * 100)
    told = story(msgspec.structs.replace(facts, board=board, events=blocks))
    page = html([told])
    assert page.count("<svg") == len(told.figures) > 200
    assert page.partition("<details>")[0].count("<svg") < 8, "the newest, and what is not of one experiment"
    assert "Evidence of experiment 199," in page.partition("<details>")[0]
    assert all(f"<td>{n:064x}</td>" in page.rpartition("</details>")[2] for n in range(200))
    assert "<summary>200 rows</summary>" in page


@pytest.mark.guarantee("L36", "K34")
def test_a_report_needs_nothing_beside_it_and_runs_nothing_that_a_watch_says(facts: Facts) -> None:
    both = [story(msgspec.structs.replace(facts, board=board, events=BLOCKS)) for board in (JOBS, LEARNT)]
    page = html(both)
    tags = Tags(page)
    assert not tags.found & {"script", "img", "iframe", "object", "link", "form"}
    assert all(link.startswith("#") for link in tags.links)
    assert "default-src 'none'" in page
    text = markdown(both)
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows if "alert" in row}) <= 2
    assert not any(line.startswith("# head") for line in text.splitlines())


@pytest.mark.guarantee("L36", "K32")
def test_a_receipt_that_does_not_hold_is_the_first_to_be_seen(tmp_path: Path) -> None:
    watch = watches.migrate(tmp_path / "shop")
    receipt = watches.verified(watch)
    path = watch.receipts / f"{receipt}.json"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-9])
    (told,) = reading.read([tmp_path])
    assert told.lines[0].startswith("One thing does not hold: ")
    assert receipt[:16] in told.lines[0]


@pytest.mark.guarantee("L36")
def test_broken_settings_and_a_new_watch_and_no_watch(tmp_path: Path) -> None:
    watch = watches.migrate(tmp_path / "shop")
    (fresh,) = reading.read([tmp_path])
    assert "No supervisor has run yet." in fresh.lines
    html([fresh])
    watch.config.write_text("kind = ")
    (broken,) = reading.read([tmp_path])
    assert broken.health.level == "needs_you"
    assert "cannot be read" in "\n".join(broken.lines)
    markdown([broken])
    with pytest.raises(ConfigError, match="there is no watch"):
        reading.read([tmp_path / "shop" / "src"])
