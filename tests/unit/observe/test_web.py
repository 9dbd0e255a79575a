"""The page's answers and its door, asked as a browser and as a stranger would ask."""

import asyncio
import json
import os
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.support import watches

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.journal import Event, Note
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import finding
from longwatch.observe.web import answers, live
from longwatch.observe.web.access import HEADERS, Guard, door
from longwatch.observe.web.answers import Card, Excerpt, Listing, Page
from longwatch.observe.web.description import document
from longwatch.observe.web.routes import application

TOKEN = "the-key-of-this-page"
HOST = "127.0.0.1:8734"
KEY = {"Authorization": f"Bearer {TOKEN}"}
ASKED = {**KEY, "X-Longwatch": "1"}


def client(*folders: Path) -> TestClient:
    return TestClient(
        Guard(application(folders), door(TOKEN, "127.0.0.1", 8734)),
        base_url=f"http://{HOST}",
        follow_redirects=False,
    )


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    made = watches.migrate(tmp_path / "shop")
    watches.verified(made)
    return made


@pytest.fixture
def at(watch: Watch) -> str:
    return f"/api/watches/{finding.name_of(watch.root)}"


# -- the door


@pytest.mark.guarantee("K40")
@pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/watches", "/api/openapi.json", "/nothing"])
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Cookie": "longwatch-8734=wrong"}, {"Cookie": "=;=;"}]
)
def test_who_has_no_key_gets_nothing(tmp_path: Path, path: str, headers: dict[str, str]) -> None:
    answer = client(tmp_path).get(path, headers=headers)
    assert answer.status_code == 401
    assert "longwatch web" in answer.text
    assert "watches" not in answer.text


@pytest.mark.guarantee("K40")
def test_the_key_in_the_address_becomes_a_cookie_that_no_script_can_read(tmp_path: Path) -> None:
    page = client(tmp_path)
    entered = page.get(f"/?token={TOKEN}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite" in entered.headers["set-cookie"]
    index = page.get("/")
    assert index.status_code == 200
    assert {name: index.headers[name] for name in HEADERS} == HEADERS
    assert page.get("/?token=wrong").status_code == 200, "the cookie still opens"
    assert client(tmp_path).get(f"/api/watches?token={TOKEN}").status_code == 401, "only the page takes it"


@pytest.mark.guarantee("K40")
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8734", ""]
)
def test_another_hosts_name_is_refused(tmp_path: Path, host: str) -> None:
    assert client(tmp_path).get("/api/watches", headers={**KEY, "Host": host}).status_code == 421


@pytest.mark.guarantee("K40", "K11")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Longwatch": "1", "Origin": "http://evil.example"},
        {"X-Longwatch": "1", "Origin": "http://127.0.0.1:9999"},
        {"X-Longwatch": "1", "Origin": "null"},
        {"X-Longwatch": "1", "Sec-Fetch-Site": "cross-site"},
        {"X-Longwatch": "1", "Sec-Fetch-Site": "same-site"},
        {"Origin": f"http://{HOST}"},
    ],
)
def test_no_other_origin_presses_a_button(watch: Watch, at: str, headers: dict[str, str]) -> None:
    answer = client(watch.root).post(f"{at}/requests", json={"verb": "pause"}, headers={**KEY, **headers})
    assert answer.status_code == 403
    assert asked(watch) == ()


def asked(watch: Watch) -> tuple[Request, ...]:
    store = Store.read(watch.database)
    try:
        return tuple(request for _, request in store.requests(after=0))
    finally:
        store.close()


# -- the one thing that changes something


@pytest.mark.guarantee("K40", "K11", "K12")
def test_a_button_makes_a_durable_request(watch: Watch, at: str) -> None:
    own = {**ASKED, "Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    answer = client(watch.root).post(
        f"{at}/requests", json={"verb": "pause", "after_step": True}, headers=own
    )
    assert answer.status_code == 200
    assert "No supervisor runs" in answer.json()["text"]
    assert asked(watch) == (Request(verb=Verb.PAUSE, after_step=True),)


@pytest.mark.guarantee("K40")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"verb": "destroy"}', 400),
        (b'{"verb": "pause", "refresh": true}', 400),
        (b'{"verb": "pause", "accept": "yes"}', 400),
        (b" " * 5000, 413),
    ],
)
def test_what_is_no_request_is_refused(watch: Watch, at: str, body: bytes, code: int) -> None:
    assert client(watch.root).post(f"{at}/requests", content=body, headers=ASKED).status_code == code
    assert asked(watch) == ()


# -- what is shown


@pytest.mark.guarantee("K40")
def test_watches_below_a_folder_are_found_and_no_link_is_followed(watch: Watch, tmp_path: Path) -> None:
    second = watches.migrate(tmp_path / "deep" / "er" / "second")
    (tmp_path / "link").symlink_to(second.root)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "longwatch.toml").write_text("kind = 'migrate'\n")
    found = finding.watches([tmp_path, watch.root])
    assert {one.root for one in found.values()} == {watch.root, second.root}
    with pytest.raises(ConfigError, match="nowhere is no folder"):
        finding.watches([tmp_path / "nowhere"])


@pytest.mark.guarantee("K40")
def test_a_watch_with_broken_settings_is_shown_with_its_trouble_and_does_not_hide_the_others(
    watch: Watch, at: str, tmp_path: Path
) -> None:
    second = watches.migrate(tmp_path / "second")
    watch.config.write_text("kind = ")
    page = client(tmp_path)
    listing = msgspec.json.decode(page.get("/api/watches", headers=KEY).content, type=Listing)
    assert [card.health.level for card in listing.watches] == ["needs_you", "stale"]
    assert "longwatch.toml" in listing.watches[0].health.sentence
    assert listing.watches[1].status.watch == str(second.root)
    board = page.get(f"{at}/board", headers=KEY)
    assert (board.status_code, "longwatch.toml" in board.json()["problem"]) == (409, True)
    second.database.write_bytes(b"no database")
    listing = msgspec.json.decode(page.get("/api/watches", headers=KEY).content, type=Listing)
    assert [folder for folder, _ in listing.broken] == [str(second.root)]


@pytest.mark.guarantee("K40")
def test_the_board_and_the_change_of_a_job(watch: Watch, at: str) -> None:
    page = client(watch.root)
    board = page.get(f"{at}/board", headers=KEY).json()
    assert board["kind"] == "migrate"
    assert [(job["id"], job["status"]) for job in board["jobs"]] == [("greeting", "done")]
    change = page.get(f"{at}/patches/greeting", headers=KEY).json()
    assert (change["commit"], change["cut"]) == (board["jobs"][0]["commit"], False)
    assert "prompt.md" in change["text"], "the commit of the watch's own files"
    assert page.get(f"{at}/patches/unknown", headers=KEY).status_code == 409
    assert page.get("/api/watches/unknown/board", headers=KEY).status_code == 404


@pytest.mark.guarantee("K40", "K5")
def test_events_come_newest_first_in_stretches_and_can_be_filtered(watch: Watch, at: str) -> None:
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "x"))
    notes = [Note("job.done" if n % 2 else "job.claimed", f"Number {n} of them, 100 %") for n in range(40)]
    store.commit(generation, notes=notes)
    store.close()
    page = client(watch.root)

    def asked_for(query: str) -> Page:
        return msgspec.json.decode(page.get(f"{at}/events?{query}", headers=KEY).content, type=Page)

    first = asked_for("kind=job.&limit=30")
    second = asked_for(f"kind=job.&limit=30&before={first.events[-1].seq}")
    texts = [event.text for event in (*first.events, *second.events) if event.text.startswith("Number")]
    assert texts == [f"Number {n} of them, 100 %" for n in reversed(range(40))]
    assert (first.more, second.more) == (True, False)
    assert [event.text for event in asked_for("text=NUMBER 7 ").events] == ["Number 7 of them, 100 %"]
    assert {event.kind for event in asked_for("kind=job.done").events} == {"job.done"}
    assert asked_for("kind=job.%25").events == ()
    assert asked_for("text=%27%3B DROP TABLE events").events == ()
    assert len(asked_for("limit=99999999999&before=x").events) > 40


@pytest.mark.guarantee("K40", "K5")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("50 % of", 1),
        ("5_ %", 0),
        ('said "no"', 1),
        ("c:\\temp", 1),
        ("ünïcode", 1),
        ("two\nlines", 1),
        ("%", 1),
        ("_", 0),
    ],
)
def test_words_are_searched_for_as_they_are(watch: Watch, words: str, found: int) -> None:
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "x"))
    said = ("50 % of it", 'it said "no"', "c:\\temp", "ünïcode", "two\nlines")
    store.commit(generation, notes=[Note("job.told", text) for text in said])
    store.close()
    assert len(answers.page(watch, before=2**62, kind="job.told", text=words, limit=100).events) == found


@pytest.mark.guarantee("K40", "K5")
def test_one_answer_looks_through_a_stretch_and_says_how_far_it_came(
    watch: Watch, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "rare words"))
    rare = store.snapshot().seq
    store.commit(generation, notes=[Note("job.claimed", f"Number {n}") for n in range(95)])
    store.close()
    monkeypatch.setattr(answers, "SCANNED", 10)
    page, before, asked_for = client(watch.root), 2**62, 0
    found: tuple[Event, ...] = ()
    while before > 1:
        query = f"text=RARE words&before={before}"
        answer = msgspec.json.decode(page.get(f"{at}/events?{query}", headers=KEY).content, type=Page)
        assert before - answer.reached >= 10 or not answer.more
        assert answer.more == (answer.reached > 1)
        before, found, asked_for = answer.reached, (*found, *answer.events), asked_for + 1
    assert [event.seq for event in found] == [rare]
    assert asked_for == -(-(rare + 95) // 10)


@pytest.mark.guarantee("K40")
def test_the_stream_tells_the_card_first_then_each_event_once_and_then_what_changed(watch: Watch) -> None:
    follower = live.Follower("w", watch, after=0)
    first = follower.news()
    assert first[0].startswith(b"event: card\ndata: ")
    assert all(one.startswith(b"id: ") for one in first[1:])
    assert follower.news() == []
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "two\nlines"))
    store.close()
    news = follower.news()
    assert [one.partition(b"event: ")[2].split(b"\n")[0] for one in news] == [b"card", b"event"]
    event = json.loads(news[1].split(b"data: ")[1])
    assert (event["text"], event["generation"]) == ("two\nlines", generation)
    watch.database.write_bytes(b"damaged")
    assert b"event: trouble" in live.Follower("w", watch, after=0).news()[0]


@pytest.mark.guarantee("K40")
def test_between_an_event_and_its_message_lies_at_most_half_a_second(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            store = Store.open(watch.database)
            store.begin_generation(Note("job.told", "news"))
            store.close()

    async def first_news() -> bytes:
        async for one in live.stream("w", watch, after=2**40):
            if len(naps) >= 3:
                return one
        return b""

    store = Store.read(watch.database)
    seen = store.snapshot().seq
    store.close()
    monkeypatch.setattr(live.anyio, "sleep", nap)
    assert b"event: card" in asyncio.run(first_news())
    # It comes with the very next look, and between two looks nothing else waits.
    assert len(naps) == 3
    assert max(naps) <= 0.5
    assert [b"news" in one for one in live.Follower("w", watch, after=seen).news()][-1]


@pytest.mark.guarantee("K40")
def test_trouble_is_told_once_and_its_end_too(watch: Watch) -> None:
    follower = live.Follower("w", watch, after=2**40)
    assert len(follower.news()) == 1
    kept = watch.database.rename(watch.database.with_name("kept"))
    assert [b"event: trouble" in one for one in follower.news()] == [True]
    assert follower.news() == []
    kept.rename(watch.database)
    assert [b"event: card" in one for one in follower.news()] == [True]
    assert follower.news() == []


@pytest.mark.guarantee("K40")
def test_of_a_log_the_two_ends_are_shown(watch: Watch, at: str) -> None:
    folder = watch.hidden / "attempts" / "a.1"
    folder.mkdir(parents=True)
    (folder / "worker.log").write_bytes(b"begin\n" + b"x" * 200_000 + b"\nend\xff")
    page = client(watch.root)
    names = [one["name"] for one in page.get(f"{at}/logs?of=a.1", headers=KEY).json()]
    assert names == ["attempts/a.1/worker.log"]
    found = msgspec.json.decode(page.get(f"{at}/log?name={names[0]}", headers=KEY).content, type=Excerpt)
    assert found.head.startswith("begin")
    assert found.tail.endswith("end\N{REPLACEMENT CHARACTER}")
    assert found.left_out == found.size - 80 * 1024


@pytest.mark.guarantee("K40", "K34")
@pytest.mark.parametrize(
    "name",
    [
        "../longwatch.toml",
        "key/ed25519.pem",
        "watch.db",
        "/etc/passwd",
        "../../../../../etc/log.txt",
        "attempts/link.log",
        "attempts/pipe.log",
        "attempts/missing.log",
        "attempts/folder.log",
        "",
        "%00.log",
    ],
)
def test_nothing_but_logs_is_shown(watch: Watch, at: str, name: str) -> None:
    attempts = watch.hidden / "attempts"
    attempts.mkdir(exist_ok=True)
    (attempts / "link.log").symlink_to(watch.keys / "ed25519.pem")
    os.mkfifo(attempts / "pipe.log")
    (attempts / "folder.log").mkdir()
    answer = client(watch.root).get(f"{at}/log?name={name}", headers=KEY)
    assert answer.status_code == 409, answer.text
    assert "PRIVATE" not in answer.text


@pytest.mark.guarantee("K40")
def test_the_description_names_every_address_and_fits_what_is_answered(watch: Watch, at: str) -> None:
    page = client(watch.root)
    described = document()
    assert page.get("/api/openapi.json", headers=KEY).content == msgspec.json.encode(described)
    routes = {route.path for route in application([watch.root]).routes if route.path.startswith("/api/")}
    assert set(described["paths"]) == routes - {"/api/openapi.json"}
    assert msgspec.json.decode(page.get(at, headers=KEY).content, type=Card).status.kind == "migrate"
    for rest in ("timings", "verification", "logs"):
        assert page.get(f"{at}/{rest}", headers=KEY).status_code == 200
