import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.redact import MASK, Redactor

SECRETS = ("hunter2-and-more", "two\nlines of secret", 'quo"ted\\value', "hunter2-and", "grün-ß-secret")
TOKENS = (
    b"sk-ant-api03-" + b"a1B2" * 10,
    b"sk-proj-" + b"Zz9_" * 8,
    b"ghp_" + b"a" * 36,
    b"gho_" + b"b" * 36,
    b"github_pat_" + b"c1_" * 20,
    b"AKIAIOSFODNN7EXAMPLE",
    b"xoxb-1234567890-abcdefghij",
    b"Bearer abcdefghijklmnop.qrstuvwxyz==",
    b"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC/+==\n-----END RSA PRIVATE KEY-----",
    b"-----BEGIN PRIVATE KEY-----\\nMIIEow\\nIBAAKC\\n-----END PRIVATE KEY-----",
)
CONFIDENTIAL = (*(secret.encode() for secret in SECRETS), *TOKENS)
FILLERS = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([b"\n", b"\r\n", b" ", b"word ", b"hunter2-", b"two\n", b"-----BEGIN "]),
)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    planted = draw(st.lists(st.sampled_from(CONFIDENTIAL), max_size=4))
    # A separator keeps a filler from turning a token into another word.
    parts = [draw(FILLERS) + b" " + one + b"\n" for one in planted] + [draw(FILLERS)]
    data = b"".join(parts)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return data, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def streamed(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = redactor.stream()
    return b"".join([*map(stream.feed, pieces), stream.close()])


@pytest.mark.guarantee("K24")
@given(outputs())
def test_no_secret_survives_however_it_is_cut(output: tuple[bytes, list[bytes]]) -> None:
    _, pieces = output
    told = streamed(Redactor(SECRETS), pieces)
    assert not [one for one in CONFIDENTIAL if one in told]


@pytest.mark.guarantee("K24")
@given(outputs())
def test_where_it_is_cut_changes_nothing(output: tuple[bytes, list[bytes]]) -> None:
    data, pieces = output
    redactor = Redactor(SECRETS)
    assert streamed(redactor, pieces) == streamed(redactor, [data])


@given(st.binary(max_size=300), st.integers(1, 7))
def test_other_bytes_pass_unchanged(data: bytes, size: int) -> None:
    redactor = Redactor(("never-in-random-bytes",))
    if redactor.bytes(data) == data:
        assert streamed(redactor, [data[i : i + size] for i in range(0, len(data), size)]) == data


@pytest.mark.guarantee("K24")
@pytest.mark.parametrize("position", [*range(65_000, 83_000, 997), 65_535, 65_536, 81_919, 81_920])
def test_a_secret_in_an_endless_line_is_found(position: int) -> None:
    line = b"." * position + b"hunter2-and-more" + b"." * 100_000 + b" " + TOKENS[0] + b"." * 90_000
    told = streamed(Redactor(SECRETS), [line[i : i + 4096] for i in range(0, len(line), 4096)])
    assert told == line.replace(b"hunter2-and-more", MASK).replace(TOKENS[0], MASK)


def test_a_finished_line_is_given_out_at_once() -> None:
    stream = Redactor(SECRETS).stream()
    assert stream.feed(b'{"type":"result"}\n{"ty') == b'{"type":"result"}\n'


def test_lines_after_an_unfinished_private_key_are_still_told() -> None:
    stream = Redactor().stream()
    told = [stream.feed(line) for line in (b"-----BEGIN PRIVATE KEY-----\n", b"MIIE\n", b'{"done": true}\n')]
    assert told == [MASK, b"", b'{"done": true}\n']


@pytest.mark.guarantee("K24")
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_found_inside_json(secret: str) -> None:
    told = Redactor((secret,)).text(json.dumps({"key": secret}))
    assert json.loads(told) == {"key": "[secret]"}


@pytest.mark.guarantee("K24")
def test_overlapping_secrets_leave_nothing() -> None:
    assert Redactor(("abcdef", "defghi")).bytes(b"xabcdefghiy") == b"x[secret]y"


def test_words_that_look_a_little_like_tokens_stay() -> None:
    text = "task-force risk-assessment-of-everything AKIAshort ghp_short the bearer of news"
    assert Redactor(("", " ", "abc")).text(text) == text


def test_masks_a_command_line() -> None:
    assert Redactor(("hunter22",)).argv(("run", "--password=hunter22")) == ("run", "--password=[secret]")


def test_text_that_is_not_utf8_survives() -> None:
    name = b"caf\xe9 hunter22".decode("utf-8", "surrogateescape")
    assert Redactor(("hunter22",)).text(name).encode("utf-8", "surrogateescape") == b"caf\xe9 [secret]"
