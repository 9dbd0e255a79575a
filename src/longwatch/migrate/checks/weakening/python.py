"""Compares two versions of a Python test file. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from longwatch.migrate.checks.weakening.finding import Finding, Kind, lost, shortened
from longwatch.migrate.checks.weakening.form import form
from longwatch.migrate.checks.weakening.python_assertions import Assertion
from longwatch.migrate.checks.weakening.python_model import Class, Function, Module, read

_SKIPPING = re.compile(
    r"(?i).*(?:skip|xfail|expectedfailure|flaky|rerun|todo|ignore|disabled?|slow|manual|no_?run)"
)
_HARMLESS = re.compile(
    r"(?:pytest\.mark\.(?:parametrize|usefixtures|timeout|asyncio|anyio|django_db|filterwarnings)|(?:hypothesis\.)?(?:given|settings|example)"
    r"|staticmethod|classmethod|pytest\.fixture|(?:typing\.)?override)\b"
)
_GENERATED = re.compile(r"(?:hypothesis\.)?(?:given|example)\b|(?:\w+\.)?(?:data|ddt|parameterized)\b")


def compare(path: str, before: Module, after: Module) -> Iterator[Finding]:
    """Yield what the new version proves less than the old one."""
    moved = _moved(before, after)
    for name, old in before.functions.items():
        new = after.functions.get(name) or moved.get(name)
        if new is None:
            yield from _gone(path, old, after)
        else:
            yield from (Finding(kind, path, name, shortened(text)) for kind, text in _function(old, new))
    for name, old_class in before.classes.items():
        new_class = after.classes.get(name)
        if new_class is not None:
            yield from (
                Finding(kind, path, name, shortened(text)) for kind, text in _class(old_class, new_class)
            )
    for text in lost(after.hidden, before.hidden):
        yield Finding(Kind.SKIPPED_TEST, path, "", shortened(text))


def _moved(before: Module, after: Module) -> Mapping[str, Function]:
    """Find the new name of renamed tests: the same body, or everything that the old one proved, in a new test."""
    free = {name: new for name, new in after.functions.items() if name not in before.functions}
    moved: dict[str, Function] = {}
    for same in (_same_body, _proves_all):
        for name, old in before.functions.items():
            if name in after.functions or name in moved:
                continue
            found = next(
                (new for new in free.values() if new.is_test == old.is_test and same(old, new)), None
            )
            if found is not None:
                moved[name] = free.pop(found.name)
    return moved


def _same_body(old: Function, new: Function) -> bool:
    return old.body == new.body


def _proves_all(old: Function, new: Function) -> bool:
    needed = _proofs(old)
    return bool(needed) and not any(lost(needed, _proofs(new)))


def _proofs(function: Function) -> list[str]:
    return [assertion.text for assertion in function.assertions if assertion.effective] or list(
        function.calls
    )


def _gone(path: str, old: Function, after: Module) -> Iterator[Finding]:
    if old.is_test:
        yield Finding(Kind.DELETED_TEST, path, old.name, f"{old.name} is gone")
        return
    there = [
        assertion.text
        for new in after.functions.values()
        for assertion in new.assertions
        if assertion.effective
    ]
    for text in lost((assertion.text for assertion in old.assertions if assertion.effective), there):
        yield Finding(Kind.LOST_ASSERTION, path, old.name, shortened(text))


def _function(old: Function, new: Function) -> Iterator[tuple[Kind, str]]:
    if old.is_test and new.trivial and not old.trivial:
        yield Kind.EMPTIED_TEST, f"nothing is left of {old.name}"
        return
    yield from _assertions(old.assertions, new.assertions)
    if old.is_test and not old.assertions and not new.assertions:
        yield from ((Kind.LOST_ASSERTION, text) for text in lost(old.calls, new.calls))
    yield from _decorators(old.decorators, new.decorators)
    yield from _cases(old, new)
    if old.is_test:
        yield from ((Kind.MOCKED, text) for text in lost(new.mocks, old.mocks))
        yield from ((Kind.WRAPPED, f"it became {form}") for form in sorted(new.form - old.form))


def _assertions(old: Iterable[Assertion], new: Iterable[Assertion]) -> Iterator[tuple[Kind, str]]:
    """Match each effective old assertion with a new one of the same text, under no more conditions."""
    there: dict[str, list[int]] = defaultdict(list)
    void: list[str] = []
    for assertion in new:
        if assertion.effective:
            there[assertion.text].append(assertion.guards)
        else:
            void.append(assertion.text)
    for guards in there.values():
        guards.sort(reverse=True)
    fresh = _fresh(old, new)
    for assertion in sorted(old, key=lambda assertion: assertion.guards):
        if not assertion.effective:
            continue
        if not there[assertion.text]:
            yield _lost(assertion, void, fresh), assertion.text
        elif there[assertion.text].pop() > assertion.guards:
            yield Kind.CONDITIONAL, assertion.text


def _fresh(old: Iterable[Assertion], new: Iterable[Assertion]) -> Counter[tuple[str, int]]:
    """Count the assertions that were not there before, by form and place."""
    known = Counter(assertion.text for assertion in old if assertion.effective)
    fresh: Counter[tuple[str, int]] = Counter()
    for assertion in new:
        if assertion.effective and known[assertion.text] > 0:
            known[assertion.text] -= 1
        elif assertion.effective:
            fresh[_place(assertion)] += 1
    return fresh


def _place(assertion: Assertion) -> tuple[str, int]:
    return form(assertion.text), assertion.guards


def _lost(assertion: Assertion, void: list[str], fresh: Counter[tuple[str, int]]) -> Kind:
    """Tell what became of an assertion whose text is gone. One of the same form takes the place of one only."""
    if assertion.text in void:
        return Kind.UNREACHABLE
    if fresh[_place(assertion)] > 0:
        fresh[_place(assertion)] -= 1
        return Kind.CHANGED_ASSERTION
    return Kind.LOST_ASSERTION


def _decorators(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[Kind, str]]:
    for text in lost(new, old):
        name = text.partition("(")[0]
        if _SKIPPING.match(name):
            yield Kind.SKIPPED_TEST, f"@{text}"
        elif re.search(r"\bpatch\b", name):
            yield Kind.MOCKED, f"@{text}"
        elif not _HARMLESS.match(name):
            yield Kind.WRAPPED, f"@{text}"
    for text in lost(
        (text for text in old if _GENERATED.match(text)), (text for text in new if _GENERATED.match(text))
    ):
        yield Kind.FEWER_CASES, f"@{text}"


def _cases(old: Function, new: Function) -> Iterator[tuple[Kind, str]]:
    for names, cases in old.parameters.items():
        for case in lost(cases, new.parameters.get(names, ())):
            yield Kind.FEWER_CASES, f"parametrize {names}: {case}"
    skipping = [
        case
        for cases in new.parameters.values()
        for case in cases
        if re.search(r"mark[s=.\w]*(?:skip|xfail)", case)
    ]
    known = [case for cases in old.parameters.values() for case in cases]
    yield from ((Kind.SKIPPED_TEST, case) for case in lost(skipping, known))
    yield from (
        (Kind.FEWER_CASES, f"loop over {case}") for case in lost(old.loops, new.loops) if old.assertions
    )


def _class(old: Class, new: Class) -> Iterator[tuple[Kind, str]]:
    yield from ((Kind.SKIPPED_TEST, text) for text in lost(new.hidden, old.hidden))
    yield from (
        (Kind.DELETED_TEST, f"{old.name} has no base {base} any more") for base in lost(old.bases, new.bases)
    )
    yield from _decorators(old.decorators, new.decorators)


__all__ = ["compare", "read"]
