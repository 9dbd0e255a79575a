"""Holds what a worker declares against inventory, catalog, source system and policy (specification M13). Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from longwatch.kernel.config import nearest
from longwatch.migrate.declared import Case, Declared
from longwatch.migrate.names import bad_name
from longwatch.migrate.profiles import Profile
from longwatch.migrate.queue.accounting import Account
from longwatch.migrate.queue.forms import bad_file
from longwatch.migrate.settings import Check


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What declarations are held against."""

    profile: Profile
    account: Account
    checks: tuple[Check, ...]
    """Of the job."""
    units: tuple[str, ...]
    """That the job is there to port; empty: any."""
    has_source: Callable[[str], bool]
    """Whether a path, relative to the source root, is a regular file below it."""


def faults(declared: Declared, known: Known) -> Iterator[str]:
    """Yield everything that is wrong with a declaration."""
    yield from _units(declared, known)
    yield from _routes(declared, known)
    yield from _references(declared, known)
    for case in declared.cases:
        yield from _case(case, declared, known)
    yield from _repeated("cases: the id", (case.id.lower() for case in declared.cases))
    yield from _coverage(declared, known)
    yield from _artifacts(declared, known)


def _units(declared: Declared, known: Known) -> Iterator[str]:
    yield from _repeated("units:", declared.units)
    if not declared.units:
        yield "units: none is declared; name the units of the inventory that the change ports"
    for unit in declared.units:
        if unit not in known.account.units:
            yield f"units: {unit!r} is no unit of the inventory{nearest(unit, known.account.units)}"
        elif known.units and unit not in known.units:
            yield f"units: {unit!r} is not this job's: it ports {', '.join(known.units)}"
    for unit in known.units:
        if unit not in declared.units:
            yield f"units: {unit!r} is this job's and is not declared"


def _routes(declared: Declared, known: Known) -> Iterator[str]:
    routes: Mapping[str, tuple[str, ...]] = {one.route: one.units for one in known.account.catalog.routes}
    yield from _repeated("routes:", declared.routes)
    for route in declared.routes:
        if route not in routes:
            yield f"routes: {route!r} is no route of the catalog{nearest(route, routes)}"
        elif not set(routes[route]) & set(declared.units):
            yield f"routes: {route!r} leads to none of the declared units"
    reached = {unit for route in declared.routes for unit in routes.get(route, ())}
    shown = {unit for units in routes.values() for unit in units}
    for unit in declared.units:
        if unit in shown - reached:
            yield f"routes: {unit!r} has a route in the catalog, and none is declared for it"


def _references(declared: Declared, known: Known) -> Iterator[str]:
    yield from _repeated("references:", declared.references)
    if not declared.references:
        yield "references: none is declared; name the sources that decided what is right"
    for path in declared.references:
        if bad_file(path):
            yield f"references: {bad_file(path)}"
        elif not known.has_source(path):
            yield f"references: {path!r} is no file below the source root"


def _case(case: Case, declared: Declared, known: Known) -> Iterator[str]:
    where, profile = f"case {case.id!r}:", known.profile
    kinds = {kind.name for kind in profile.case_kinds}
    checks = {check.name: check.kind for check in known.checks}
    if bad_name(case.id):
        yield f"{where} its id {bad_name(case.id)}"
    if case.kind not in kinds:
        yield f"{where} {case.kind!r} is no kind of case{nearest(case.kind, kinds)}"
    if case.runtime not in profile.runtimes:
        yield f"{where} {case.runtime!r} is no runtime{nearest(case.runtime, profile.runtimes)}"
    if case.check not in checks:
        yield f"{where} {case.check!r} is no check of this job{nearest(case.check, checks)}"
    elif checks[case.check] != case.kind:
        yield f"{where} check {case.check!r} is of kind {checks[case.check]!r}, not {case.kind!r}"
    if not case.units:
        yield f"{where} it names no unit"
    yield from _repeated(f"{where} the unit", case.units)
    for unit in case.units:
        if unit not in declared.units:
            yield f"{where} its unit {unit!r} is not among the declared units"


def _coverage(declared: Declared, known: Known) -> Iterator[str]:
    profile = known.profile
    kinds = {case.kind for case in declared.cases}
    runtimes = {case.runtime for case in declared.cases}
    for kind in profile.case_kinds:
        if kind.name in profile.required_kinds and kind.name not in kinds:
            yield f"cases: none of the required kind {kind.name!r} is declared"
    for runtime in profile.required_runtimes:
        if runtime not in runtimes:
            yield f"cases: none comes from the required runtime {runtime!r}"
    for kind_name in profile.unit_cases:
        covered = {unit for case in declared.cases if case.kind == kind_name for unit in case.units}
        for unit in dict.fromkeys(declared.units):
            if unit not in covered:
                yield f"cases: unit {unit!r} has no case of kind {kind_name!r}"


def _artifacts(declared: Declared, known: Known) -> Iterator[str]:
    profile = known.profile
    yield from _repeated("artifacts:", (one.path for one in declared.artifacts))
    for one in declared.artifacts:
        if bad_file(one.path):
            yield f"artifacts: {bad_file(one.path)}"
        if one.kind not in profile.artifact_kinds:
            yield f"artifacts: {one.kind!r} of {one.path!r} is no kind{nearest(one.kind, profile.artifact_kinds)}"
    for kind in profile.required_artifacts:
        if kind not in {one.kind for one in declared.artifacts}:
            yield f"artifacts: none of the required kind {kind!r} is declared"


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name!r} stands {count} times"
