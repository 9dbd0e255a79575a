"""What the inventory proves: which units are verified, which are not, and which have drifted from their sources."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from longwatch.kernel.config import Problem
from longwatch.migrate.profiles import QueueSettings
from longwatch.migrate.queue import forms
from longwatch.migrate.queue.folder import Folder, document, unbound
from longwatch.migrate.queue.forms import Catalog, Coverage, Inventory, Parity, Unit

_NAMED = 20
T = TypeVar("T", bound=msgspec.Struct)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The documents about the source system; empty ones where the queue has none."""

    inventory: Inventory = Inventory(units=())
    catalog: Catalog = Catalog(routes=())
    parity: Parity = Parity(ports=())

    @property
    def units(self) -> frozenset[str]:
        """Return the ids of all units."""
        return frozenset(unit.id for unit in self.inventory.units)


class InventoryProof(msgspec.Struct, frozen=True, kw_only=True):
    """Where each unit stands (specification M32, M36)."""

    verified: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    """A source of theirs, or what shows that they are ported, is not what it was."""
    invalid: tuple[str, ...] = ()
    """References and evidence that do not hold, each with the reason."""

    @property
    def complete(self) -> bool:
        """True if every unit is verified and none has drifted."""
        return not (self.unverified or self.drifted or self.invalid)

    def open_units(self) -> str:
        """Say what is not proved."""
        told = [f"{len(self.unverified)} unverified: {_listed(self.unverified)}"] if self.unverified else []
        told += [f"{len(self.drifted)} drifted: {_listed(self.drifted)}"] if self.drifted else []
        told += [f"invalid: {_listed(self.invalid)}"] if self.invalid else []
        return "; ".join(told)


def read(queue: QueueSettings, folder: Folder) -> tuple[Account, tuple[Problem, ...]]:
    """Return the documents about the source system, and everything that is wrong with them."""
    inventory, wrong = _read(folder, queue.inventory, Inventory(units=()), forms.inventory_problems)
    units = frozenset(unit.id for unit in inventory.units)
    catalog, more = _read(
        folder, queue.catalog, Catalog(routes=()), lambda name, one: forms.catalog_problems(name, one, units)
    )
    parity, last = _read(
        folder, queue.parity, Parity(ports=()), lambda name, one: forms.parity_problems(name, one, units)
    )
    return Account(inventory=inventory, catalog=catalog, parity=parity), (*wrong, *more, *last)


def _read(
    folder: Folder, path: str, empty: T, rules: Callable[[str, T], Iterable[Problem]]
) -> tuple[T, tuple[Problem, ...]]:
    if not path:
        return empty, ()
    value, found = document(folder, path, type(empty), lambda one: rules(path, one))
    return value or empty, found


def prove(inventory: Inventory, repository: Folder, source: Folder | None) -> InventoryProof:
    """Look at every source and every piece of evidence of every unit."""
    standing = [(unit, tuple(_faults(unit, repository, source))) for unit in inventory.units]
    return InventoryProof(
        verified=tuple(u.id for u, faults in standing if u.status is Coverage.VERIFIED and not faults),
        unverified=tuple(u.id for u, _ in standing if u.status is Coverage.UNVERIFIED),
        drifted=tuple(u.id for u, faults in standing if u.status is Coverage.VERIFIED and faults),
        invalid=tuple(fault for _, faults in standing for fault in faults),
    )


def _faults(unit: Unit, repository: Folder, source: Folder | None) -> Iterator[str]:
    found = list(unbound(f"evidence of {unit.id}", unit.evidence, repository))
    if source is not None:
        found += unbound(f"source of {unit.id}", unit.references, source)
    yield from (f"{one.where} {one.mend}" for one in found)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
