"""What a worker is told about the source system: units with their sources and routes, and what has to be shown. Pure."""

from collections.abc import Iterable, Iterator

from longwatch.migrate.profiles import Profile
from longwatch.migrate.queue.accounting import Account

_LISTED = 200


def told(profile: Profile, account: Account, units: Iterable[str], root: str) -> str:
    """Return a Markdown text; `root` is where the worker finds the source system, empty where there is none."""
    return "\n".join(_lines(profile, account, tuple(units), root))


def _lines(profile: Profile, account: Account, units: tuple[str, ...], root: str) -> Iterator[str]:
    yield f"The source system lies, read-only, in `{root}`. Read there first: it decides what is right."
    yield "Declare every source file that you went by in `references`, relative to that folder. The units to port:"
    yield ""
    yield from _units(account, units)
    yield ""
    yield "Declare these units in `units`, their routes in `routes`, and in `cases` each behaviour that the checks will show:"
    yield ""
    for kind in profile.case_kinds:
        laws = ", or ".join(f"`{' and '.join(law)}`" for law in kind.laws)
        need = "at least one" if kind.name in profile.required_kinds else "if there is one"
        every = ", and one for every unit" if kind.name in profile.unit_cases else ""
        yield f"- kind `{kind.name}` ({need}{every}): it must observe {laws}"
    yield ""
    yield from _rules(profile)


def _units(account: Account, units: tuple[str, ...]) -> Iterator[str]:
    chosen = [one for one in account.inventory.units if not units or one.id in units]
    for unit in chosen[:_LISTED]:
        routes = [one.route for one in account.catalog.routes if unit.id in one.units]
        sources = ", ".join(f"`{one.path}`" for one in unit.references)
        yield f"- `{unit.id}`: sources {sources}; routes {', '.join(f'`{one}`' for one in routes) or 'none'}"
    if len(chosen) > _LISTED:
        yield f"- and {len(chosen) - _LISTED} more, in the inventory"


def _rules(profile: Profile) -> Iterator[str]:
    yield f"A case names its runtime, one of {', '.join(f'`{one}`' for one in profile.runtimes)}, and the check that shows it."
    if profile.required_runtimes:
        yield f"At least one case must come from {' and from '.join(f'`{one}`' for one in profile.required_runtimes)}."
    yield (
        "The check finds an empty folder in `LONGWATCH_RECEIPTS` and a random word in `LONGWATCH_RUN`, and leaves "
        "`ID.case.json` there for each case, with the states that it observed beside it. Only receipts of our own run "
        "count; when you try the checks yourself, set both variables to a scratch folder and a word of yours."
    )
    if profile.artifact_kinds:
        kinds = ", ".join(
            f"`{one}`{' (required)' if one in profile.required_artifacts else ''}"
            for one in profile.artifact_kinds
        )
        yield f"Declare in `artifacts` what the checks build: the path in the checkout, and its kind: {kinds}."
