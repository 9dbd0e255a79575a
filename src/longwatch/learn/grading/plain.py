"""Plain data as tagged JSON, for the two sandboxed Python processes: its text is sent into them as it stands.

A scalar is itself; everything else is a list that starts with its tag: `l` list, `t` tuple, `S` set, `F` frozenset,
`d` dict (keys and values in turn), `b` bytes, `i` int too large for a double (hexadecimal), `f` nan or an infinity,
`c` complex, `s` string with surrogates (hexadecimal). Only the base types' own methods are called on a value, so that
a subclass crosses as what it inherits and never as what it claims. `json` is not imported: that costs more than a start.
"""

# The C half of `json`, which is the part without its 9 ms of imports.
from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than a cell's start
    from collections.abc import Callable
    from typing import Any

DEEPEST = 100
LARGEST_EXACT = 2**53
BUILT: "dict[str, Callable[[Any], Any]]" = {"l": list, "t": tuple, "S": set, "F": frozenset}
TAGS: dict[type, str] = {list: "l", tuple: "t", set: "S", frozenset: "F"}
PLAIN: "dict[type, Callable[[Any], Any]]" = {
    int: lambda value: int.__add__(value, 0),
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""How a value of a subclass becomes one of the base type, by the base type's own methods."""


class NotPlainError(Exception):
    """A value that is not plain data."""


class _Reading:
    """What the scanner wants to know."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


scan = make_scanner(_Reading())  # type: ignore[arg-type] # any object with these attributes will do


def encode(value: "Any") -> str:
    """Return the JSON text of a value; `NotPlainError` names what cannot cross."""
    parts: list[str] = []
    _write(value, parts.append, 0)
    return "".join(parts)


def _write(value: "Any", put: "Callable[[str], None]", depth: int) -> None:
    # Every value of a test goes through here: in the order of how often a type occurs.
    kind = type(value)
    if kind is int:
        put(str(value) if -LARGEST_EXACT <= value <= LARGEST_EXACT else f'["i","{value:x}"]')
    elif kind is str:
        put(_text(value))
    elif value is None:
        put("null")
    elif kind is bool:
        put("true" if value else "false")
    elif kind is float:
        put(_float(value))
    elif depth >= DEEPEST:
        raise NotPlainError(f"a value nested more than {DEEPEST} deep")
    elif kind in TAGS:
        put(f'["{TAGS[kind]}"')
        for part in value:
            put(",")
            _write(part, put, depth + 1)
        put("]")
    elif kind is dict:
        _pairs(value, put, depth)
    else:
        _rarer(value, put, depth)


def _pairs(value: "Any", put: "Callable[[str], None]", depth: int) -> None:
    put('["d"')
    for pair in dict.items(value):
        for part in pair:
            put(",")
            _write(part, put, depth + 1)
    put("]")


def _rarer(value: "Any", put: "Callable[[str], None]", depth: int) -> None:
    kind = type(value)
    if kind is bytes:
        put(f'["b","{value.hex()}"]')
    elif kind is complex:
        put(f'["c",{_float(value.real)},{_float(value.imag)}]')
    else:
        _write(_inherited(value, kind), put, depth)


def _inherited(value: "Any", kind: type) -> "Any":
    """Return the value that a subclass of a plain type inherits."""
    for base in type.mro(kind)[1:]:
        if base in PLAIN:
            return PLAIN[base](value)
    raise NotPlainError(f"a value of type {type.__dict__['__name__'].__get__(kind)}")


def _text(value: "Any") -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        return f'["s","{value.encode("utf-8", "surrogatepass").hex()}"]'
    return encode_basestring_ascii(value)


def _float(value: "Any") -> str:
    return repr(value) if value - value == 0 else f'["f","{value!r}"]'


def parse(text: str) -> "Any":
    """Read JSON text that our own process wrote."""
    return scan(text, 0)[0]


def decode(tree: "Any") -> "Any":
    """Return the value that a parsed text stands for."""
    if type(tree) is not list:
        return tree
    tag = tree[0]
    if tag in BUILT:
        return BUILT[tag](map(decode, tree[1:]))
    if tag == "d":
        parts = iter(map(decode, tree[1:]))
        return dict(zip(parts, parts, strict=True))
    return _scalar(tag, tree[1:])


def _scalar(tag: str, rest: list["Any"]) -> "Any":
    if tag == "i":
        return int(rest[0], 16)
    if tag == "f":
        return float(rest[0])
    if tag == "c":
        return complex(*map(decode, rest))
    if tag == "b":
        return bytes.fromhex(rest[0])
    if tag == "s":
        return bytes.fromhex(rest[0]).decode("utf-8", "surrogatepass")
    raise NotPlainError(f"a value of the other language ({tag})")
