"""The table `[teacher]` of a learn watch, and what can be wrong with it."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

import msgspec

from longwatch.kernel import config
from longwatch.kernel.config import Problem, at

NETWORK = (
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Variables that say how an endpoint is reached, and whom to trust there."""
LONGEST_S = 3600.0
MOST_PARALLEL = 32


class Teaching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[teacher]`: how the teacher of `[training] teacher` is asked, where it is a `model` or an `endpoint`."""

    model: str = ""
    """For `model`: a Hugging Face causal language model by local path or name. For `endpoint`: what the endpoint calls it."""
    device: str = "auto"
    """Of a local model: `auto`, `cpu` or `cuda`."""
    batch: int = 8
    """Answers that a local model generates at once: a power of two from 1 to 64."""
    base_url: str = ""
    """Of the endpoint, without `/chat/completions`, like `http://127.0.0.1:8000/v1`. Prompts of tasks are sent there."""
    key: str = ""
    """Name of the environment variable with the endpoint's API key; empty: none is sent."""
    samples: int = 1
    """Answers asked for each task that the student did not solve, from 1 to 16."""
    temperature: float = 0.2
    """Of its answers, from 0 to 2; above 0 where there are several samples."""
    max_new_tokens: int = 1024
    """The longest answer, in tokens."""
    limit_field: str = "max_tokens"
    """What the endpoint calls the longest answer; some want `max_completion_tokens`."""
    seed_field: str = "seed"
    """What it calls the seed of an answer; empty: it takes none, and none is sent."""
    timeout_s: float = 120.0
    """After so long without the whole answer a request is given up."""
    tries: int = 3
    """Requests for one answer at most, from 1 to 10: overload and cut lines are tried again, after a while."""
    parallel: int = 4
    """Requests to the endpoint at the same time, from 1 to 32."""
    required: bool = False
    """A teacher that fails, or may cost no more, stops the watch; otherwise an experiment goes on without it, and says so."""
    requests_per_experiment: int = 500
    """Most requests to the endpoint in one experiment; 0: no limit."""
    tokens_per_experiment: int = 1_000_000
    """Most tokens, asked and answered, in one experiment; 0: no limit."""
    usd_per_experiment: float = 0.0
    """Most money in one experiment, in US dollars; 0: no limit."""
    requests: int = 0
    """Most requests for the life of the watch; 0: no limit."""
    tokens: int = 0
    """Most tokens for the life of the watch; 0: no limit."""
    usd: float = 0.0
    """Most money for the life of the watch, in US dollars; 0: no limit."""
    usd_per_million_asked: float = 0.0
    """The endpoint's price of a million tokens of prompts, in US dollars."""
    usd_per_million_answered: float = 0.0
    """The endpoint's price of a million tokens of answers, in US dollars."""

    @property
    def origin(self) -> str:
        """Scheme, host and port of the endpoint: all of its address that is ever written anywhere."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def is_local(self) -> bool:
        """True if the endpoint is on this machine: no proxy leads there."""
        return is_loopback(urlsplit(self.base_url).hostname or "")


BOUNDS: dict[str, tuple[float, float]] = {
    "samples": (1, 16),
    "temperature": (0, 2),
    "max_new_tokens": (1, 65_536),
    "timeout_s": (0.1, LONGEST_S),
    "tries": (1, 10),
    "parallel": (1, MOST_PARALLEL),
}
_BUDGETS = (
    "requests_per_experiment",
    "tokens_per_experiment",
    "usd_per_experiment",
    "requests",
    "tokens",
    "usd",
    "usd_per_million_asked",
    "usd_per_million_answered",
)


def is_loopback(host: str) -> bool:
    """Pure: true if the name or address means this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def problems(teaching: Teaching, *, model: bool, endpoint: bool) -> Iterator[Problem]:
    """Yield what is wrong with the table; `model` and `endpoint` say whether such a teacher is asked. Pure."""
    for key, (least, most) in BOUNDS.items():
        value = getattr(teaching, key)
        if not least <= value <= most:
            yield Problem(at(f"teacher.{key}", value), f"must lie between {least:g} and {most:g}")
    if teaching.samples > 1 and teaching.temperature == 0:
        yield Problem(at("teacher.temperature", 0), "must be above 0, or all samples of a task are the same")
    if teaching.batch not in {1, 2, 4, 8, 16, 32, 64}:
        yield Problem(at("teacher.batch", teaching.batch), "must be a power of two from 1 to 64")
    yield from config.too_small("teacher", teaching, dict.fromkeys(_BUDGETS, 0))
    if (model or endpoint) and not teaching.model:
        yield Problem("teacher.model", "must name the model that teaches")
    if endpoint:
        yield from _address_problems(teaching)
        yield from _money_problems(teaching)
    yield from config.bad_variables("teacher.key", [teaching.key] if teaching.key else [])


def _address_problems(teaching: Teaching) -> Iterator[Problem]:
    """The address is not shown: it may well hold a secret that belongs elsewhere."""
    parts, port_is_right = _parted(teaching.base_url)
    if parts is None or not port_is_right or parts.scheme not in {"http", "https"} or not parts.hostname:
        yield Problem("teacher.base_url", 'must be an address like "http://127.0.0.1:8000/v1"')
        return
    if "@" in parts.netloc or parts.query or parts.fragment:
        mend = "must hold no name, password or query: put the key into an environment variable, and its name into key"
        yield Problem("teacher.base_url", mend)
    if teaching.key and parts.scheme == "http" and not is_loopback(parts.hostname):
        yield Problem("teacher.base_url", "must begin with https: a key is never sent in the clear")
    if not teaching.base_url.isprintable() or " " in teaching.base_url or not teaching.base_url.isascii():
        yield Problem("teacher.base_url", "must be plain ASCII without spaces")


def _parted(address: str) -> tuple[SplitResult | None, bool]:
    try:
        parts = urlsplit(address)
        has_port = parts.port != 0
    except ValueError:
        return None, False
    return parts, has_port


def _money_problems(teaching: Teaching) -> Iterator[Problem]:
    priced = teaching.usd_per_million_asked or teaching.usd_per_million_answered
    if (teaching.usd or teaching.usd_per_experiment) and not priced:
        mend = (
            "needs usd_per_million_asked and usd_per_million_answered: without prices no money can be counted"
        )
        yield Problem(at("teacher.usd", teaching.usd or teaching.usd_per_experiment), mend)
