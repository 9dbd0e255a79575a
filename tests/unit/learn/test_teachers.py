"""A teacher behind an endpoint: what is sent, what is believed, what it may cost, and what its failures do."""

import json
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from tests.support import chat_server
from tests.support.chat_server import KEY, ChatServer, answering, completion, refusing

from longwatch.kernel.errors import (
    AuthError,
    BudgetError,
    ConfigError,
    IntegrityError,
    QuotaError,
    TransientError,
)
from longwatch.kernel.redact import Redactor
from longwatch.kernel.settings import Backoff
from longwatch.learn.settings import LearnSettings, Recipe, problems
from longwatch.learn.stages import StoppedError
from longwatch.learn.teachers import asking, budget, endpoint, purse
from longwatch.learn.teachers.asking import Desk, ask
from longwatch.learn.teachers.budget import Ledger, Usage
from longwatch.learn.teachers.endpoint import Question, Reply, understood
from longwatch.learn.teachers.helping import key_of
from longwatch.learn.teachers.provenance import Teacher
from longwatch.learn.teachers.purse import Purse
from longwatch.learn.teachers.settings import Teaching

SOLUTION = "```python\ndef f(x):\n    return x\n```"
QUICK = Backoff(first_s=0.01, max_s=0.02)


def questions(count):
    return tuple(
        Question(task=f"t{number}", prompt=f"solve t{number}", sample=0, seed=number)
        for number in range(count)
    )


def desk(tmp_path, server, *, stop=lambda: False, experiment=1, key=KEY, **table):
    teaching = Teaching(
        **{"model": "large", "base_url": server.base_url, "key": "X", "timeout_s": 5.0, **table}
    )
    return Desk(
        teaching=teaching,
        key=key,
        purse=Purse(tmp_path / "teacher", teaching, experiment),
        redactor=Redactor((KEY,)),
        should_stop=stop,
        progress=lambda done, total: None,
        backoff=QUICK,
        grace_s=0.2,
    )


@pytest.fixture
def serving():
    servers = []

    def start(behave):
        server = ChatServer(behave)
        servers.append(server)
        return server.__enter__()

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def ledger(tmp_path):
    return purse.read(tmp_path / "teacher")


@pytest.mark.guarantee("L9")
def test_every_question_is_asked_once_and_an_answer_that_was_paid_for_never_again(tmp_path, serving):
    server = serving(answering(SOLUTION))
    heard = ask(desk(tmp_path, server), questions(9))
    assert [question.task for question, _ in heard.said] == [f"t{number}" for number in range(9)]
    assert {said.text for _, said in heard.said} == {SOLUTION}
    assert (heard.kept, heard.unanswered, heard.failure) == (0, (), None)
    assert ledger(tmp_path).life == Usage(requests=9, tokens=270)
    path, headers = server.seen[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    first = json.loads(server.bodies[0])
    assert first["seed"] == int(first["messages"][0]["content"].removeprefix("solve t"))

    again = ask(desk(tmp_path, server, experiment=2), (*questions(10),))
    assert (again.kept, len(again.said), len(server.bodies)) == (9, 10, 10)
    assert ledger(tmp_path).spent == Usage(requests=1, tokens=30), (
        "only what is new counts, in its own experiment"
    )
    other = ask(desk(tmp_path, server, temperature=0.9), questions(1))
    assert (other.kept, len(server.bodies)) == (0, 11), "asked in another way it is another question"


@pytest.mark.guarantee("L9", "K24")
def test_the_key_reaches_the_endpoint_and_no_file_whatever_the_endpoint_says(tmp_path, serving):
    def parrot(handler, asked):
        said = f"{handler.headers['Authorization']} {KEY} {'x' * 120} {KEY}"
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in said)
        raw = json.dumps(completion("@", id=said, model=said)).replace('"@"', f'"{escaped}"')
        handler.raw(raw.encode(), x_request_id=said)

    heard = ask(desk(tmp_path, serving(parrot)), questions(2))
    assert all(KEY not in msgspec.json.encode(said).decode() for _, said in heard.said)
    assert chat_server.holds(tmp_path, KEY) == []
    for padding in range(170, 200):
        said = f"{'x' * padding}{KEY}"
        for reply in (json.dumps({"error": {"message": said}}), json.dumps({"error": said}), said):
            refused = endpoint._refused(Reply(status=401, body=reply.encode()), Redactor((KEY,)).text)
            assert isinstance(refused, AuthError)
            assert KEY[:12] not in str(refused), "a cut leaves no half of it"


@pytest.mark.guarantee("L9")
@pytest.mark.parametrize(
    ("behave", "failure", "asked"),
    [
        (refusing(401), AuthError, 1),
        (refusing(403), AuthError, 1),
        (refusing(402), BudgetError, 1),
        (refusing(404), ConfigError, 1),
        (refusing(307, location="/elsewhere"), ConfigError, 1),
        (refusing(429, retry_after="3600"), QuotaError, 1),
        (refusing(500), TransientError, 8),
        (refusing(400), ConfigError, 4),
        (chat_server.cut, TransientError, 8),
    ],
)
def test_an_endpoint_that_only_refuses_is_given_up_soon(tmp_path, serving, behave, failure, asked):
    server = serving(behave)
    heard = ask(desk(tmp_path, server, parallel=1, tries=2), questions(30))
    assert isinstance(heard.failure, failure)
    assert len(server.bodies) == asked
    assert heard.said == ()
    assert sum(count for _, count in heard.unanswered) == 30


@pytest.mark.guarantee("L9")
def test_overload_is_waited_for_as_the_endpoint_asks_and_tried_again(tmp_path, serving):
    def sometimes(handler, asked):
        if len(handler.server.bodies) == 1:
            refusing(429, retry_after="1")(handler, asked)
        elif len(handler.server.bodies) == 2:
            refusing(503)(handler, asked)
        else:
            answering(SOLUTION)(handler, asked)

    server = serving(sometimes)
    began_s = time.monotonic()
    heard = ask(desk(tmp_path, server, parallel=1), questions(2))
    assert chat_server.since(began_s) >= 1
    assert (len(heard.said), len(server.bodies), heard.failure) == (2, 4, None)
    reservation = endpoint.reservation(Teaching(), questions(1)[0]).tokens
    assert ledger(tmp_path).life == Usage(requests=4, tokens=60 + reservation), (
        "503 may have cost anything, 429 nothing"
    )


@pytest.mark.guarantee("L9")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no chat completion in JSON"),
        (b"<html>welcome</html>", "no chat completion in JSON"),
        (b"\xff\xfe{}", "no chat completion in JSON"),
        (b"[" * 100_000, "no chat completion in JSON"),
        (b'{"choices": ' + b"[" * 100_000, "no chat completion in JSON"),
        (b'{"choices": "none"}', "no chat completion in JSON"),
        (b'{"choices": []}', "empty"),
        (b'{"choices": [{"message": {"content": null}}]}', "empty"),
        (b'{"choices": [{"message": {"content": " \\n"}}]}', "empty"),
        (b'{"choices": [{"message": {"content": 7}}]}', "no chat completion in JSON"),
        (b'{"choices": [{"message": {"content": "a\\u0000b"}}]}', "no text that can be stored"),
        (b'{"choices": [{"message": {"content": "' + b"x" * 70_000 + b'"}}]}', "too long"),
    ],
)
def test_nonsense_is_no_answer_costs_its_reservation_and_is_not_paid_for_twice(tmp_path, serving, body, why):
    server = serving(lambda handler, asked: handler.raw(body))
    for kept in (0, 1):
        heard = ask(desk(tmp_path, server), questions(1))
        assert [(said.text, said.problem) for _, said in heard.said] == [("", why)]
        assert (heard.kept, len(server.bodies), heard.failure) == (kept, 1, None)
    assert ledger(tmp_path).life == endpoint.reservation(Teaching(), questions(1)[0])


@pytest.mark.guarantee("L9")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "message", "content", "usage", "prompt_tokens", "completion_tokens", "id"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_json_comes_back_is_understood_or_named(value):
    body = json.dumps(value).encode()
    said = understood(Reply(status=200, body=body), str, "now")
    assert bool(said.text) != bool(said.problem)
    assert (said.asked_tokens is None) == (said.answered_tokens is None)
    assert said.asked_tokens is None or said.asked_tokens >= 0
    msgspec.json.encode(said)
    assert str(endpoint._refused(Reply(status=500, body=body), str))


@pytest.mark.guarantee("L9")
def test_a_gigabyte_is_not_read(tmp_path, serving):
    server = serving(chat_server.gigabyte)
    heard = ask(desk(tmp_path, server), questions(1))
    assert [said.problem for _, said in heard.said] == ["more than 4194304 bytes"]
    assert server.sent_bytes < 100 * 1024 * 1024


@pytest.mark.guarantee("L9")
@pytest.mark.parametrize(
    "behave", [chat_server.stalling, chat_server.stalling_in_the_body, chat_server.dripping]
)
def test_a_request_that_stalls_is_given_up_at_its_time_limit(tmp_path, serving, behave):
    began_s = time.monotonic()
    heard = ask(desk(tmp_path, serving(behave), timeout_s=0.3, tries=1), questions(2))
    assert heard.unanswered == (("no whole answer came", 2),)
    assert chat_server.since(began_s) < 5
    assert ledger(tmp_path).life.requests == 2
    assert ledger(tmp_path).life.tokens > 2 * 1024, "nobody knows what they cost: all that was reserved"


@pytest.mark.guarantee("L9", "L14")
@pytest.mark.parametrize(
    "behave", [chat_server.stalling, chat_server.stalling_in_the_body, chat_server.dripping]
)
def test_a_pause_is_obeyed_within_seconds_while_requests_stall_and_they_count_as_reserved(
    tmp_path, serving, behave
):
    server, stop = serving(behave), threading.Event()
    threading.Timer(0.3, stop.set).start()
    began_s = time.monotonic()
    with pytest.raises(StoppedError):
        ask(desk(tmp_path, server, stop=stop.is_set, timeout_s=600.0, parallel=2), questions(5))
    assert chat_server.since(began_s) < 5
    found = ledger(tmp_path)
    assert (found.life.requests, dict(found.open)) == (2, {})
    assert found.life.tokens == sum(endpoint.reservation(Teaching(), one).tokens for one in questions(2))


@pytest.mark.guarantee("L9", "L14")
def test_a_pause_keeps_what_was_answered_and_the_rest_is_asked_later(tmp_path, serving):
    stop = threading.Event()

    def slowly(handler, asked):
        stop.set()
        answering(SOLUTION)(handler, asked)

    server = serving(slowly)
    with pytest.raises(StoppedError):
        ask(desk(tmp_path, server, stop=stop.is_set, parallel=2), questions(6))
    paid = len(server.bodies)
    assert paid < 6
    stop.clear()
    server.behave = answering(SOLUTION)
    heard = ask(desk(tmp_path, server), questions(6))
    assert (heard.kept, len(heard.said), len(server.bodies)) == (paid, 6, 6)


@pytest.mark.guarantee("L9")
@pytest.mark.parametrize(
    "limit",
    [
        {"requests": 3},
        {"requests_per_experiment": 3},
        {"tokens": 3 * 1096 + 100},
        {"tokens_per_experiment": 3 * 1096 + 100},
        {"usd": 3.4, "usd_per_million_answered": 1000.0},
        {"usd_per_experiment": 3.4, "usd_per_million_answered": 1000.0},
    ],
)
def test_no_request_is_sent_that_a_budget_might_not_cover(tmp_path, serving, limit):
    """The server never says what it used, so each answer counts as its reservation."""
    server = serving(answering(SOLUTION, usage={"prompt_tokens": -5, "completion_tokens": "many"}))
    heard = ask(desk(tmp_path, server, parallel=8, **limit), questions(8))
    assert isinstance(heard.failure, BudgetError)
    assert len(server.bodies) == len(heard.said) == 3
    assert heard.unanswered == (("not asked", 5),)
    following = ask(desk(tmp_path, server, experiment=2, **limit), questions(8))
    renewed = any(name.endswith("_per_experiment") for name in limit)
    assert len(following.said) == (6 if renewed else 3)


@pytest.mark.guarantee("L9")
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2000)), max_size=25), st.integers(1, 5000))
def test_what_is_counted_is_never_less_than_what_was_used_however_often_the_program_dies(story, most):
    """An invariant: each request was covered when it was sent, so more than a budget is used by no more than its lies."""
    teaching, known, used = Teaching(tokens=most), Ledger(), 0
    for number, (dies, tokens) in enumerate(story):
        wanted = Usage(requests=1, tokens=2000)
        if budget.refusal(teaching, known, wanted):
            assert known.life.tokens + 2000 > most
            break
        known = budget.reserved(known, str(number), wanted)
        used += tokens
        known = (
            budget.begun(known, 1)
            if dies
            else budget.settled(known, str(number), Usage(requests=1, tokens=tokens))
        )
        assert used <= known.life.tokens <= most
    assert known.life.requests <= len(story)


@pytest.mark.guarantee("L9", "K5")
def test_a_request_that_a_crash_cut_counts_and_a_lost_ledger_is_refused(tmp_path):
    teaching = Teaching(tokens=5000)
    before = Purse(tmp_path, teaching, 1)
    before.reserve("a", Usage(requests=1, tokens=3000))
    after = Purse(tmp_path, teaching, 1)
    assert purse.read(tmp_path).life == Usage(requests=1, tokens=3000)
    with pytest.raises(BudgetError, match=r"teacher\.tokens from 3000 to 6000, and 5000 are allowed"):
        after.reserve("b", Usage(requests=1, tokens=3000))
    after.keep(endpoint.name_of(teaching, questions(1)[0]), endpoint.Said(text="x"))
    (tmp_path / purse.LEDGER).unlink()
    with pytest.raises(IntegrityError, match="restore it"):
        Purse(tmp_path, teaching, 1)
    (tmp_path / purse.LEDGER).write_text("{")
    with pytest.raises(IntegrityError, match="damaged"):
        Purse(tmp_path, teaching, 1)


@pytest.mark.guarantee("L9", "K24")
@pytest.mark.parametrize(
    ("table", "mend"),
    [
        ({"base_url": ""}, "must be an address"),
        ({"base_url": "ftp://127.0.0.1/v1"}, "must be an address"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "must be an address"),
        ({"base_url": "https://me:hunter22@example.org/v1"}, "must hold no name"),
        ({"base_url": "https://example.org/v1?key=hunter22"}, "must hold no name"),
        ({"base_url": "http://example.org/v1", "key": "SOME_KEY"}, "must begin with https"),
        ({"key": "hunter22 is my key"}, "not its value"),
        ({"model": ""}, "must name the model"),
        ({"usd": 5.0}, "without prices"),
        ({"tokens": -1}, "must be at least 0"),
        ({"samples": 3, "temperature": 0.0}, "must be above 0"),
        ({"timeout_s": 0.0}, "must lie between"),
        ({"batch": 3}, "power of two"),
    ],
)
def test_a_wrong_table_is_refused_with_the_mend_and_without_a_secret(table, mend):
    right = {"model": "large", "base_url": "http://127.0.0.1:1/v1", "key": "SOME_KEY"}
    recipe = Recipe(teacher=Teacher.ENDPOINT)
    assert list(problems(LearnSettings(kind="learn", training=recipe, teacher=Teaching(**right)))) == []
    found = list(
        problems(LearnSettings(kind="learn", training=recipe, teacher=Teaching(**{**right, **table})))
    )
    assert any(mend in problem.mend for problem in found)
    assert "hunter22" not in str(found)


@pytest.mark.guarantee("L9", "K24")
@pytest.mark.parametrize("value", [None, "", " ", "two words", "bad\nkey", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_its_value(monkeypatch, value):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(AuthError, match="SOME_KEY") as error:
        key_of("SOME_KEY")
    assert not value or not value.strip() or value not in str(error.value)
    assert key_of("") == ""


def certificate(folder):
    """A certificate for 127.0.0.1 that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), 7, now - timedelta(days=1), now + timedelta(days=1)
        )
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "server.pem").write_bytes(private + made.public_bytes(Encoding.PEM))
    return folder / "server.pem"


@pytest.mark.guarantee("L9", "K24")
def test_a_key_is_sent_only_to_whom_a_trusted_certificate_names(tmp_path, serving, monkeypatch):
    server = serving(answering(SOLUTION))
    path = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    secure = server.base_url.replace("http:", "https:")
    heard = ask(desk(tmp_path, server, base_url=secure, tries=1), questions(1))
    assert heard.unanswered == (("no whole answer came", 1),)
    assert server.bodies == []
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    assert len(ask(desk(tmp_path, server, base_url=secure), questions(1)).said) == 1


@pytest.mark.guarantee("L9")
def test_a_proxy_leads_to_other_machines_and_never_to_this_one(tmp_path, serving, monkeypatch):
    server = serving(answering(SOLUTION))
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", server.url)
    far = "http://teacher.invalid/v1"
    assert len(ask(desk(tmp_path, server, base_url=far, key=""), questions(1)).said) == 1
    assert server.seen[0][0] == f"{far}/chat/completions"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert len(ask(desk(tmp_path, server), questions(1)).said) == 1


@pytest.mark.guarantee("L9", "K27")
@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("30", 30.0),
        ("Tue, 01 Dec 2026 00:01:00 GMT", 60.0),
        ("Mon, 30 Nov 2026 00:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("9" * 400, None),
    ],
)
def test_a_providers_own_time_is_read_in_both_of_its_forms(header, wanted):
    assert endpoint.retry_after_s(header, datetime(2026, 12, 1, tzinfo=UTC)) == wanted


def test_the_longest_wait_is_shorter_than_a_pause_would_notice():
    assert asking.TICK_S + asking.GRACE_S < 4
