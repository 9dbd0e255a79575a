"""The laws of cases: what the digests of states that a case observed must have to do with each other. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Self

import msgspec

from longwatch.kernel.errors import ConfigError

_RELATION = re.compile(r"([a-z][a-z0-9_]*) (==|!=) ([a-z][a-z0-9_]*)")


class Relation(msgspec.Struct, frozen=True):
    """Two observations, and whether they must be equal."""

    left: str
    right: str
    equal: bool

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what `before != after` says.

        Raises:
            ConfigError: it is no relation.
        """
        found = _RELATION.fullmatch(text)
        if found is None or found[1] == found[3]:
            raise ConfigError(
                f"{text!r} is no law: write two different observations like `before != after` or `undo == before`"
            )
        return cls(found[1], found[3], found[2] == "==")

    def __str__(self) -> str:
        return f"{self.left} {'==' if self.equal else '!='} {self.right}"


class CaseKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of behaviour, with its law."""

    name: str
    """What cases, checks and required kinds call it."""
    laws: tuple[tuple[str, ...], ...]
    """Alternatives; of at least one all observations must be there. Whatever else is there must hold too."""

    def alternatives(self) -> tuple[tuple[Relation, ...], ...]:
        """Return the laws, read. Raises `ConfigError` as `Relation.read`."""
        return tuple(tuple(Relation.read(text) for text in law) for law in self.laws)


def broken(kind: CaseKind, observed: Mapping[str, str]) -> Iterator[str]:
    """Yield every way in which observations break the law of their kind."""
    alternatives = kind.alternatives()
    known = {name for law in alternatives for one in law for name in (one.left, one.right)}
    for name in sorted(observed.keys() - known):
        yield f"observation {name[:80]!r} is none of a {kind.name} case, which has {', '.join(sorted(known))}"
    if not any(_complete(law, observed) for law in alternatives):
        wanted = ", or ".join(" and ".join(map(str, law)) for law in alternatives)
        yield f"observations are missing: a {kind.name} case must show {wanted}"
    for relation in dict.fromkeys(one for law in alternatives for one in law):
        if _complete((relation,), observed) and not _holds(relation, observed):
            yield f"the law of {kind.name} cases is broken: {relation} does not hold"


def _complete(law: tuple[Relation, ...], observed: Mapping[str, str]) -> bool:
    return all(name in observed for one in law for name in (one.left, one.right))


def _holds(relation: Relation, observed: Mapping[str, str]) -> bool:
    return (observed[relation.left] == observed[relation.right]) is relation.equal
