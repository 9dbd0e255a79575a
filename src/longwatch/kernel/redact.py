"""Takes secrets out of everything that is written: named values, and tokens of well-known shape.

Bytes in, bytes out, so that invalid UTF-8 survives. A stream gives out whole lines only, and never a piece that may be
the beginning of a secret: a read boundary can't cut one in two (specification K24).
"""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from urllib.parse import quote

MASK = b"[secret]"
SHORTEST_SECRET = 4
"""A named value with fewer characters is none: masking it would destroy every text."""

_HOLD = 64 * 1024
"""So much of an unfinished line is held back before it is given out in pieces."""
_LONGEST_TOKEN = 4096

_TOKEN = rb"""
(?<![A-Za-z0-9])(?:
    sk-[A-Za-z0-9_-]{16,4096}
  | gh[a-z]_[A-Za-z0-9]{20,4096}
  | github_pat_[A-Za-z0-9_]{20,4096}
  | glpat-[A-Za-z0-9_-]{16,4096}
  | hf_[A-Za-z0-9]{20,4096}
  | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])
  | AIza[A-Za-z0-9_-]{30,4096}
  | xox[a-z]-[A-Za-z0-9-]{10,4096}
  | eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,4096}
)
| (?i:(?<=bearer\ )|(?<=bearer:))[A-Za-z0-9._~+/-]{16,4096}=*
"""
_KEY_NAME = rb"[A-Z0-9 ]{0,40}PRIVATE\ KEY-----"
_KEY_TEXT = rb"[A-Za-z0-9+/=:,\s\\-]"
_KEY_REST = rb"(?:" + _KEY_TEXT + rb"*?-----END\ " + _KEY_NAME + rb"|" + _KEY_TEXT + rb"*)"
_KEY = rb"-----BEGIN\ " + _KEY_NAME + _KEY_REST
_REST_OF_KEY = re.compile(_KEY_REST, re.VERBOSE)
_END_OF_KEY = re.compile(rb"-----END\ " + _KEY_NAME + rb"\Z", re.VERBOSE)


class Redactor:
    """Masks the given values and well-known tokens. Immutable; each stream gets its own `Stream`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Values are also masked as they look inside JSON and inside a URL."""
        self.values = _spellings(secrets)
        literal = [re.escape(value) for value in self.values]
        self._pattern = re.compile(b"|".join([*literal, _KEY, _TOKEN]), re.VERBOSE)

    def text(self, text: str) -> str:
        """Mask a whole text."""
        return self.bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def argv(self, argv: Iterable[str]) -> tuple[str, ...]:
        """Mask every argument of a command line."""
        return tuple(map(self.text, argv))

    def spans(self, data: bytes) -> tuple[tuple[int, int], ...]:
        """Where secrets stand in the data, in order, without overlap."""
        return tuple(match.span() for match in self._pattern.finditer(data))

    def stream(self) -> "Stream":
        """Begin a stream of output."""
        return Stream(self)

    def bytes(self, data: bytes) -> bytes:
        """Mask a whole text."""
        return self._pattern.sub(MASK, data)


class Stream:
    """Masks output that arrives in pieces. Feed every piece, give the last word to `close`."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = bytearray()
        self._inside_key = False
        self._longest = max((_LONGEST_TOKEN * 4, *map(len, redactor.values)))

    def feed(self, data: bytes) -> bytes:
        """Take a piece; return what can be given out, masked: whole lines, as a rule."""
        self._held += data
        if b"\n" not in data and b"\r" not in data and len(self._held) < _HOLD + self._longest:
            return b""
        return self._give(self._safe_cut(bytes(self._held)))

    def close(self) -> bytes:
        """Return the rest, masked."""
        return self._give(len(self._held))

    def _give(self, cut: int) -> bytes:
        data = bytes(self._held[:cut])
        del self._held[:cut]
        return self._mask(data) if data else b""

    def _mask(self, data: bytes) -> bytes:
        """Mask a piece that begins and ends outside every secret, except for the lines of a private key."""
        start = 0
        if self._inside_key:
            match = _REST_OF_KEY.match(data)
            start = match.end() if match else 0
            self._inside_key = start == len(data) and not _END_OF_KEY.search(data)
        spans = [(start + a, start + b) for a, b in self._redactor.spans(data[start:])]
        if spans and spans[-1][1] == len(data):
            self._inside_key = _is_open_key(data[slice(*spans[-1])])
        borders = [start, *(edge for span in spans for edge in span), len(data)]
        return MASK.join(data[a:b] for a, b in list(pairwise(borders))[::2])

    def _safe_cut(self, data: bytes) -> int:
        """Return the last place where no secret is cut, not even one of which only the beginning has arrived."""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if cut == 0 and len(data) >= _HOLD + self._longest:
            cut = len(data) - self._longest
        spans = self._redactor.spans(data)
        while (earlier := min(self._starts_across(data, cut, spans), default=cut)) < cut:
            cut = earlier
        return cut

    def _starts_across(self, data: bytes, cut: int, spans: tuple[tuple[int, int], ...]) -> list[int]:
        crossing = [a for a, b in spans if a < cut < b and not data.startswith(b"-----BEGIN", a)]
        begun = [len(data) - size for value in self._redactor.values if (size := _begun(data, value))]
        return crossing + begun


def _spellings(secrets: Iterable[str]) -> tuple[bytes, ...]:
    plain = [secret.strip() for secret in secrets]
    long_enough = [secret for secret in plain if len(secret) >= SHORTEST_SECRET]
    forms = {
        form for secret in long_enough for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))
    }
    # The longest first: of two secrets that begin alike the whole one must match.
    encoded = (form.encode("utf-8", "surrogateescape") for form in forms)
    return tuple(sorted(encoded, key=lambda value: (-len(value), value)))


def _begun(data: bytes, value: bytes) -> int:
    """Length of the longest proper beginning of the value with which the data ends."""
    longest = min(len(value) - 1, len(data))
    return next((size for size in range(longest, 0, -1) if data.endswith(value[:size])), 0)


def _is_open_key(text: bytes) -> bool:
    return text.startswith(b"-----BEGIN") and not _END_OF_KEY.search(text)
