"""JUnit XML: what most test runners can write. Pure. The document is a worker's, so no DTD and no entity is read."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.parsers import expat

from longwatch.migrate.checks.census.tests import (
    Counts,
    DisagreementError,
    Outcome,
    Tests,
    numbered,
    tally,
    worst,
)

MAX_BYTES = 64 * 1024**2
_MAX_DEPTH = 32
_MEND = "let the test runner write it anew"


def parse(document: bytes) -> Tests | None:
    """Return the tests; `None` if the document has no test suite. A malformed or unsafe one is a `DisagreementError`."""
    _check_form(document)
    root = ET.fromstring(document)  # noqa: S314 - checked just before
    if root.tag not in {"testsuites", "testsuite"}:
        return None
    listing = [(_name(case, suites), _outcome(case)) for case, suites in _cases(root, ())]
    _check_totals(root, tally(listing))
    # pytest writes a test once more when its tear-down fails; elsewhere an id that comes again is another test.
    outcomes = worst(listing) if any(".py::" in name for name, _ in listing) else numbered(listing)
    return Tests(runner="junit", counts=tally(outcomes.items()), outcomes=outcomes)


def _check_form(document: bytes) -> None:
    if len(document) > MAX_BYTES:
        raise DisagreementError(
            f"the JUnit file has {len(document)} bytes, more than {MAX_BYTES}; split the check"
        )
    parser = expat.ParserCreate()
    depth = _Depth()
    parser.StartDoctypeDeclHandler = _refuse_dtd
    parser.StartElementHandler = depth.enter
    parser.EndElementHandler = depth.leave
    try:
        parser.Parse(document, True)
    except (expat.ExpatError, ValueError) as error:
        raise DisagreementError(f"the JUnit file is no XML ({error}); {_MEND}") from error


def _refuse_dtd(*_: object) -> None:
    raise DisagreementError(f"the JUnit file declares a document type, which no test runner does; {_MEND}")


class _Depth:
    """Counts how deep the elements stand: each level costs the reader stack."""

    def __init__(self) -> None:
        self._depth = 0

    def enter(self, _name: str, _attributes: object) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise DisagreementError(f"the JUnit file nests more than {_MAX_DEPTH} elements; {_MEND}")

    def leave(self, _name: str) -> None:
        self._depth -= 1


def _cases(element: ET.Element, suites: tuple[str, ...]) -> Iterator[tuple[ET.Element, tuple[str, ...]]]:
    for child in element:
        if child.tag == "testcase":
            yield child, suites
        elif child.tag == "testsuite":
            yield from _cases(child, (*suites, child.get("name", "")))


def _name(case: ET.Element, suites: tuple[str, ...]) -> str:
    name, classname, file = case.get("name", ""), case.get("classname", ""), case.get("file", "")
    if file.endswith(".py"):
        return "::".join((file, *_classes(file, classname), name))
    if classname and classname not in {"test", name}:
        return f"{classname} > {name}"
    return " > ".join(part for part in (*suites, name) if part)


def _classes(file: str, classname: str) -> tuple[str, ...]:
    """Return pytest's classes: what is left of the class name behind the module's."""
    module = file.removesuffix(".py").replace("/", ".")
    rest = classname.removeprefix(module).strip(".")
    return tuple(rest.split(".")) if classname.startswith(module) and rest else ()


def _outcome(case: ET.Element) -> Outcome:
    tags = {child.tag for child in case}
    if "error" in tags:
        return Outcome.ERROR
    if "failure" in tags or case.get("status") == "fail":
        return Outcome.FAILED
    if "skipped" in tags or case.get("status") == "disabled":
        return Outcome.SKIPPED
    return Outcome.PASSED


def _check_totals(root: ET.Element, counts: Counts) -> None:
    suites = [suite for suite in root.iter("testsuite") if suite.find("testsuite") is None]
    claimed = sum(_number(suite, "failures") + _number(suite, "errors") for suite in suites)
    if bool(claimed) and not counts.failed + counts.errors:
        raise DisagreementError(f"the JUnit file claims {claimed} failures and shows none; {_MEND}")


def _number(element: ET.Element, name: str) -> int:
    text = element.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def agrees(tests: Tests, printed: list[Counts]) -> bool:
    """True if what the runner printed last bears the document out. Counts of failed fixtures and sub-tests differ."""
    if not printed:
        return True
    told = printed[-1]
    if bool(told.failed + told.errors) != bool(tests.counts.failed + tests.counts.errors):
        return False
    clean = not told.failed + told.errors
    return tests.counts.passed == told.passed if clean else tests.counts.passed <= told.passed
