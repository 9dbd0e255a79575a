"""Takes secrets out of everything that is written: named values, and tokens of well-known shape.

Bytes in, bytes out, so that invalid UTF-8 survives. A stream gives out whole lines only, and never a piece that may be
the beginning of a secret: a read boundary can't cut one in two (specification K24).
"""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

MASK = b"[secret]"
SHORTEST_SECRET = 4
"""A named value with fewer characters is none: masking it would destroy every text."""

_HOLD = 64 * 1024
"""So much of an unfinished line is held back before it is given out in pieces."""
_LONGEST_TOKEN = 16_384

_KEY_NAME = rb"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
_KEY_TEXT = rb"[A-Za-z0-9+/=:,\s\\-]"
_KEY_REST = rb"(?:" + _KEY_TEXT + rb"*?-----END " + _KEY_NAME + rb"|" + _KEY_TEXT + rb"*)"
_KEY = re.compile(rb"-----BEGIN " + _KEY_NAME + _KEY_REST)
_REST_OF_KEY = re.compile(_KEY_REST)
_END_OF_KEY = re.compile(rb"-----END " + _KEY_NAME + rb"\Z")


class _Shape(msgspec.Struct, frozen=True):
    """A pattern, and a literal part of it: where that is missing, the pattern need not be tried."""

    anchor: bytes
    pattern: re.Pattern[bytes]


def _token(anchor: bytes, rest: bytes) -> _Shape:
    """A token that begins with its anchor, and not in the middle of a word."""
    return _Shape(anchor, re.compile(anchor + rb"(?<![A-Za-z0-9]" + anchor + rb")" + rest))


_SHAPES = (
    _token(b"sk-", rb"[A-Za-z0-9_-]{16,4096}"),
    *(
        _token(anchor, rb"[A-Za-z0-9]{20,4096}")
        for anchor in (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"hf_")
    ),
    _token(b"github_pat_", rb"[A-Za-z0-9_]{20,4096}"),
    _token(b"glpat-", rb"[A-Za-z0-9_-]{16,4096}"),
    *(_token(anchor, rb"[A-Z0-9]{16}(?![A-Z0-9])") for anchor in (b"AKIA", b"ASIA")),
    _token(b"AIza", rb"[A-Za-z0-9_-]{30,4096}"),
    _token(b"xox", rb"[a-z]-[A-Za-z0-9-]{10,4096}"),
    _token(b"eyJ", rb"[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,4096}"),
    *(
        _Shape(word, re.compile(word + rb":? {1,4}[A-Za-z0-9._~+/-]{16,4096}={0,4}"))
        for word in (b"Bearer", b"bearer", b"BEARER")
    ),
    _Shape(b"-----BEGIN ", _KEY),
)


class Redactor:
    """Masks the given values and well-known tokens. Immutable; each stream gets its own `Stream`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Values are also masked as they look inside JSON and inside a URL."""
        self.values = _spellings(secrets)
        self._shapes = (*(_Shape(value, re.compile(re.escape(value))) for value in self.values), *_SHAPES)

    def text(self, text: str) -> str:
        """Mask a whole text."""
        return self.bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def argv(self, argv: Iterable[str]) -> tuple[str, ...]:
        """Mask every argument of a command line."""
        return tuple(map(self.text, argv))

    def spans(self, data: bytes) -> tuple[tuple[int, int], ...]:
        """Where secrets stand in the data: in order, and those that overlap as one."""
        found = sorted(
            match.span()
            for shape in self._shapes
            if shape.anchor in data
            for match in shape.pattern.finditer(data)
        )
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return tuple(merged)

    def stream(self) -> "Stream":
        """Begin a stream of output."""
        return Stream(self)

    def bytes(self, data: bytes) -> bytes:
        """Mask a whole text."""
        return _masked(data, self.spans(data))


class Stream:
    """Masks output that arrives in pieces. Feed every piece, give the last word to `close`."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = bytearray()
        self._inside_key = False
        self._longest = max((_LONGEST_TOKEN, *map(len, redactor.values)))

    def feed(self, data: bytes) -> bytes:
        """Take a piece; return what can be given out, masked: whole lines, as a rule."""
        self._held += data
        if b"\n" not in data and b"\r" not in data and len(self._held) < _HOLD + self._longest:
            return b""
        held = bytes(self._held)
        spans = self._redactor.spans(held)
        cut = self._safe_cut(held, spans)
        if spans or self._inside_key:
            return self._give(cut)
        del self._held[:cut]
        return held[:cut]

    def close(self) -> bytes:
        """Return the rest, masked."""
        return self._give(len(self._held))

    def _give(self, cut: int) -> bytes:
        data = bytes(self._held[:cut])
        del self._held[:cut]
        return self._mask(data) if data else b""

    def _mask(self, data: bytes) -> bytes:
        """Mask a piece that begins and ends outside every secret, except for a private key of many lines."""
        if self._inside_key:
            rest = _REST_OF_KEY.match(data)
            data = data[rest.end() :] if rest else data
            if rest and not data:
                self._inside_key = not _END_OF_KEY.search(rest.group())
                return b""
        last = max((match.span() for match in _KEY.finditer(data)), default=(0, -1))
        self._inside_key = last[1] == len(data) and not _END_OF_KEY.search(data)
        return _masked(data, self._redactor.spans(data))

    def _safe_cut(self, data: bytes, found: Iterable[tuple[int, int]]) -> int:
        """Return the last place where no secret is cut, not even one of which only the beginning has arrived."""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if cut == 0:
            cut = len(data) - self._longest
        cut = min(
            (cut, *(len(data) - size for value in self._redactor.values if (size := _begun(data, value))))
        )
        spans = [(a, b) for a, b in found if not data.startswith(b"-----BEGIN ", a)]
        return min((cut, *(start for start, stop in spans if start < cut < stop)))


def _masked(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [data[end:start], MASK]
        end = stop
    return b"".join((*pieces, data[end:]))


def _spellings(secrets: Iterable[str]) -> tuple[bytes, ...]:
    long_enough = [secret.strip() for secret in secrets if len(secret.strip()) >= SHORTEST_SECRET]
    forms = {
        form for secret in long_enough for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))
    }
    return tuple(sorted(form.encode("utf-8", "surrogateescape") for form in forms))


def _begun(data: bytes, value: bytes) -> int:
    """Length of the longest proper beginning of the value with which the data ends."""
    longest = min(len(value) - 1, len(data))
    return next((size for size in range(longest, 0, -1) if data.endswith(value[:size])), 0)
