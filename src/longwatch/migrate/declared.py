"""What a worker declares about the source system, where the profile asks for it. Values only; all of it is a claim."""

import msgspec


class Bound(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A file, by its content."""

    path: str
    sha256: str


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One behaviour that a check will show."""

    id: str
    kind: str
    runtime: str
    check: str
    """Name of the check that leaves its receipt; the check's kind is the case's."""
    units: tuple[str, ...]


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that the checks build or that the change brings."""

    path: str
    kind: str


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is declared besides the changed files."""

    units: tuple[str, ...]
    routes: tuple[str, ...]
    references: tuple[str, ...]
    """Sources that decided what is right, relative to the source root."""
    cases: tuple[Case, ...]
    artifacts: tuple[Product, ...]
