"""The protocol of an OpenAI-compatible endpoint: what is sent, and what an answer means. Pure; what comes back is untrusted."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from longwatch.kernel.digest import Digest, of_bytes
from longwatch.kernel.errors import (
    AuthError,
    BudgetError,
    ConfigError,
    LongwatchError,
    QuotaError,
    TransientError,
)
from longwatch.learn.teachers import budget
from longwatch.learn.teachers.budget import Usage
from longwatch.learn.teachers.settings import Teaching

PATH = "/chat/completions"
MOST_CHARACTERS = 64 * 1024
"""No program that is taught is longer."""
_TEMPLATE_TOKENS = 64
"""Room for what the endpoint writes around a prompt."""
_MOST_TOKENS = 10**9
_SHOWN = 200
_NOT_NOW = frozenset({408, 409, 425})


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that is wanted."""

    task: str
    prompt: str
    sample: int
    seed: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, before anybody understood it."""

    status: int
    body: bytes
    retry_after: str = ""
    request: str = ""
    """The header `x-request-id`."""
    encoding: str = ""
    problem: str = ""
    """Why the body cannot be used: it is too large, or cut."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is kept. It was paid for, whatever it is worth."""

    text: str = ""
    problem: str = ""
    """Why there is no text that can be graded."""
    request: str = ""
    model: str = ""
    """What the endpoint says that it is."""
    asked_tokens: int | None = None
    answered_tokens: int | None = None
    at: str = ""

    def used(self, teaching: Teaching) -> Usage | None:
        """Return what it cost; `None`: the endpoint did not say."""
        if self.asked_tokens is None or self.answered_tokens is None:
            return None
        usd = budget.cost(teaching, self.asked_tokens, self.answered_tokens)
        return Usage(requests=1, tokens=self.asked_tokens + self.answered_tokens, usd=usd)


REFUSED = Usage(requests=1)
"""What a refused request used (status 4xx): it was never answered, so it cost no tokens."""


def payload(teaching: Teaching, question: Question) -> bytes:
    """Return the body of a request."""
    wanted: dict[str, Any] = {
        "model": teaching.model,
        "messages": [{"role": "user", "content": question.prompt}],
        "temperature": teaching.temperature,
        teaching.limit_field: teaching.max_new_tokens,
        "stream": False,
    }
    if teaching.seed_field:
        wanted[teaching.seed_field] = question.seed
    return msgspec.json.encode(wanted)


def name_of(teaching: Teaching, question: Question) -> Digest:
    """Return the digest of everything that an answer depends on: it is kept under it. The key is not in it."""
    asked = (teaching.base_url.rstrip("/"), payload(teaching, question).decode(), question.sample)
    return of_bytes(msgspec.json.encode(asked))


def reservation(teaching: Teaching, question: Question) -> Usage:
    """Return the most that a request can use: no tokenizer makes more tokens of a text than it has bytes."""
    asked = len(question.prompt.encode()) + _TEMPLATE_TOKENS
    usd = budget.cost(teaching, asked, teaching.max_new_tokens)
    return Usage(requests=1, tokens=asked + teaching.max_new_tokens, usd=usd)


def understood(reply: Reply, masked: Callable[[str], str], at: str) -> Said:
    """Return what was said. `masked` takes secrets out of a text: a server may repeat the key that it was given.

    Raises:
        AuthError, QuotaError, BudgetError, ConfigError, TransientError: it refused; the class says what that means.
    """
    if not 200 <= reply.status < 300:
        raise _refused(reply, masked)
    request = _short(masked(_clean(reply.request)))
    if reply.problem or reply.encoding not in {"", "identity"}:
        return Said(problem=reply.problem or "compressed, unasked", request=request, at=at)
    try:
        found = msgspec.json.decode(reply.body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Said(problem="no chat completion in JSON", request=request, at=at)
    text = found.choices[0].message.content if found.choices else None
    asked, answered = _counts(found)
    return Said(
        text=masked(_usable(text)),
        problem=_problem(text),
        request=request or _short(masked(_clean(found.id))),
        model=_short(masked(_clean(found.model))),
        asked_tokens=asked,
        answered_tokens=answered,
        at=at,
    )


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    id: str = ""
    model: str = ""
    usage: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Error(msgspec.Struct):
    error: Any = None


def _counts(found: _Completion) -> tuple[int | None, int | None]:
    """What the endpoint counted, if that can be: anything else is unknown."""
    try:
        usage = msgspec.convert(found.usage, _Usage)
    except msgspec.ValidationError:
        return None, None
    counts = usage.prompt_tokens, usage.completion_tokens
    return counts if all(0 <= count <= _MOST_TOKENS for count in counts) else (None, None)


def _problem(text: str | None) -> str:
    if not text or not text.strip():
        return "empty"
    if len(text) > MOST_CHARACTERS:
        return "too long"
    return "" if _is_clean(text) else "no text that can be stored"


def _usable(text: str | None) -> str:
    return text if text and not _problem(text) else ""


def _is_clean(text: str) -> bool:
    """A lone surrogate or a NUL is no text of a program, and cannot be written to every place."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _short(text: str) -> str:
    """At most so much of a foreign text, on one line."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[:_SHOWN])
    return _clean(line).strip()


def _refused(reply: Reply, masked: Callable[[str], str]) -> LongwatchError:
    told = f"the teacher's endpoint answered {reply.status}: {_short(_message(reply, masked)) or 'no reason given'}"
    after_s = retry_after_s(reply.retry_after, datetime.now(UTC))
    match reply.status:
        case 401 | 403:
            return AuthError(f"{told}. Check the variable that [teacher] key names")
        case 402:
            return BudgetError(f"{told}. The account there has no money left")
        case 429:
            return QuotaError(told, retry_after_s=after_s)
        case status if status >= 500 or status in _NOT_NOW:
            return TransientError(told, retry_after_s=after_s)
        case status if 300 <= status < 400:
            return ConfigError(
                f"{told}. It leads elsewhere, and a key is sent nowhere else: correct base_url"
            )
        case _:
            return ConfigError(f"{told}. Check base_url, model, limit_field and seed_field of [teacher]")


def _message(reply: Reply, masked: Callable[[str], str]) -> str:
    """The endpoint's own words. They are masked before anything is cut: half a secret is not recognised."""
    try:
        error = msgspec.json.decode(reply.body, type=_Error).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return masked(reply.body.decode("utf-8", "replace"))
    said = error.get("message") if isinstance(error, dict) else error
    return masked(_clean(said)) if isinstance(said, str) else ""


def retry_after_s(header: str, now: datetime) -> float | None:
    """Return the seconds that the header Retry-After asks for (RFC 9110, 10.2.3); `None` if it says nothing clear. Pure."""
    text = header.strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())
