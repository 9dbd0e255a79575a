"""One file of what a benchmark gives, an answer, and the tests. Pure.

MultiPL-E was made for models that go on writing: its program is *what it gives + completion + tests*. A chat model answers
with the whole function, and sometimes with more. Then its function takes the place of the head that was given.
"""

import re

import msgspec

from longwatch.learn.grading.languages import NAME, NONCE, Script
from longwatch.learn.tasks import OneFile

_NO_HELPER = frozenset({"main", "Main", "if", "for", "while", "switch", "catch", "test", "candidate"})
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")


class UnknownTestsError(ValueError):
    """The tests are not built as those of the benchmark are; the message says what is missing."""


def asked_for(given: str, script: Script) -> str:
    """Return the name of the function whose open head ends what is given.

    Raises:
        UnknownTestsError: there is none.
    """
    heads = list(re.finditer(script.head.replace(NAME, r"(\w+)"), given, re.MULTILINE))
    if not heads:
        raise UnknownTestsError("what is given has no head of a function")
    return next(name for name in heads[-1].groups() if name)


def join(answer: str, tests: OneFile, name: str, script: Script) -> str:
    """Return the program of an answer; `name` is the function that is asked for.

    Raises:
        UnknownTestsError: what is given does not end with the head of that function.
    """
    top, opening, own, code = _parts(answer, tests, name, script)
    return f"{top}{opening}{own}{code}"


def own(answer: str, tests: OneFile, name: str, script: Script) -> str:
    """Return what of an answer comes into its program.

    Raises:
        UnknownTestsError: as `join`.
    """
    top, _, kept, _ = _parts(answer, tests, name, script)
    return top + kept


def _parts(answer: str, tests: OneFile, name: str, script: Script) -> tuple[str, str, str, str]:
    """What a program is made of: imports, what was given, what is the answer's, and the tests."""
    if tests.literal:
        return "", tests.given, answer, tests.code
    head = head_in(tests.given, name, script)
    if not head:
        raise UnknownTestsError(f"what is given has no head of {name}")
    found = _heads(name, script).search(answer)
    if found is None:
        return "", tests.given, f"{_cut(answer, tests.stops)}\n", tests.code
    opening = tests.given.removesuffix(head)
    function = definition(answer[found.start() :], script.closer)
    top, before = _before(answer[: found.start()], opening, script)
    after = _helpers(answer[found.start() + len(function) :], name, script)
    imports = _imports(answer, f"{before}{function}{after}", opening, script)
    return top, opening, f"{imports}{before}{function}\n{after}", _without_closer(tests.code, script.closer)


def head_in(given: str, name: str, script: Script) -> str:
    """Return the end of what is given, from where it defines the function; empty: it does not."""
    found = [one.start() for one in _heads(name, script).finditer(given)]
    return given[found[-1] :] if found else ""


def _heads(name: str, script: Script) -> re.Pattern[str]:
    return re.compile(script.head.replace(NAME, re.escape(name)), re.MULTILINE)


def _cut(completion: str, stops: tuple[str, ...]) -> str:
    ends = [completion.find(stop) for stop in stops if stop in completion]
    return completion[: min(ends)] if ends else completion


def _before(text: str, opening: str, script: Script) -> tuple[str, str]:
    """What an answer has before its function: what goes to the top of the file, and what stays.

    Often it says again what it was given.
    """
    text = text.replace(opening.strip(), "")
    if script.on_top:
        top = "".join(f"{line.strip()}\n" for line in re.findall(script.on_top, text, re.MULTILINE))
        return top, _helpers(text, "", script)
    return "", re.sub(script.dropped, "", text, flags=re.MULTILINE) if script.dropped else text


def _helpers(text: str, name: str, script: Script) -> str:
    """The functions that a text defines beside the one that is asked for; what starts a program is none of them."""
    found, at = "", 0
    head = re.compile(script.head.replace(NAME, r"(\w+)"), re.MULTILINE)
    while match := head.search(text, at):
        function = definition(text[match.start() :], script.closer)
        at = match.start() + max(len(function), 1)
        if not _NO_HELPER.intersection(match.groups()) and name not in match.groups():
            found += f"{function}\n"
    return found


def _imports(answer: str, code: str, opening: str, script: Script) -> str:
    """What an answer imports, its code uses and the file does not import yet: a language that has this forbids the rest."""
    if not script.imported:
        return ""
    declared = "".join(one[0] for one in re.finditer(script.dropped, answer, re.MULTILINE))
    names = dict.fromkeys(re.findall(script.imported, declared))
    used = (one for one in names if re.search(rf"\b{one.split('/')[-1]}\.", code))
    return "".join(f'import "{one}"\n' for one in used if f'"{one}"' not in opening)


def definition(text: str, closer: str) -> str:
    """Return the function that a text begins with, to the line that closes it in its own indentation, or all of it."""
    lines = text.split("\n")
    if lines[0].rstrip().endswith(closer):
        return lines[0]
    # Not `} else {`, which some write where the function's own end would stand.
    end = re.compile(rf"\s*{closer}[;)]*\s*(?:(?:#|//).*)?")
    ends = [
        "\n".join(lines[: number + 1])
        for number, line in enumerate(lines)
        if number and end.fullmatch(line) and _indentation(line) <= _indentation(lines[0])
    ]
    # Where nothing is indented, the first closer is that of some block inside.
    return next((one for one in ends if _balanced(one)), ends[0] if ends else text)


def _balanced(code: str) -> bool:
    bare = _QUOTED.sub("", code)
    return bare.count("{") == bare.count("}")


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_closer(code: str, closer: str) -> str:
    """The tests of many languages begin by closing the function that was given open."""
    begun = code.lstrip()
    return begun.removeprefix(closer) if begun.startswith(closer) else code


def witnessed(tests: OneFile, script: Script, nonce: str) -> OneFile:
    """Return tests that say the nonce after they have passed.

    Raises:
        UnknownTestsError: they do not end as those of the benchmark.
    """
    end = re.search(script.ends, tests.code)
    if end is None:
        raise UnknownTestsError("its tests do not end as the benchmark's do")
    witness = script.witness.replace(NONCE, nonce)
    return msgspec.structs.replace(tests, code=tests.code[: end.start()] + witness)


def trick(answer: str, given: str, script: Script) -> str:
    """Return what in an answer no honest answer has; empty: nothing. What it was given it may say again, and comments.

    `answer` is what of it comes into the program.
    """
    said = {line.strip() for line in given.split("\n")}
    lines = (line for line in answer.split("\n") if line.strip() not in said)
    own_lines = "\n".join(line for line in lines if not line.lstrip().startswith(script.comment))
    found = re.search(script.tricks, own_lines, re.MULTILINE)
    return found[0].strip() if found else ""
