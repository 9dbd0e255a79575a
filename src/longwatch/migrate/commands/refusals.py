"""May this command line be a check (specification M14)? Pure; what each program may be told stands in `table`.

A command line is refused unless every argument is known to be harmless: code comes from files of the repository, never
from an argument. The guard keeps an honest repository honest; what its own files do is for the sandbox to bound.
"""

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

from longwatch.migrate.commands.grammar import (
    ALIASES,
    PYTHON_MODULES,
    SUBSTITUTES,
    WRAPPERS,
    Grammar,
    Operand,
    Rest,
)
from longwatch.migrate.commands.table import GRAMMARS


class RepositoryView(Protocol):
    """What the guard asks about a repository. Paths are relative to its root, with `/`, without `.` and `..`."""

    def is_file(self, path: str) -> bool:
        """True for a regular file."""

    def exists(self, path: str) -> bool:
        """True for anything of this name."""

    def leads_outside(self, path: str) -> bool:
        """True if a symlink on the way, or the path itself, leads out of the repository or into its git folder."""

    def package_scripts(self, folder: str) -> frozenset[str]:
        """Return the names of the scripts in the folder's package.json; empty without one."""


class _Place(msgspec.Struct, frozen=True):
    """Where paths of the command line begin."""

    cwd: str
    repository: RepositoryView


_PYTHON = re.compile(r"python(?:3(?:\.\d{1,2})?)?")
_WORD = re.compile(r"[A-Za-z0-9_.%+@-][A-Za-z0-9_.%+/@-]*")
_TASK = re.compile(r":?[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,3})?")
_CODE_FLAG = re.compile(r"-[A-Za-z]*[ecprmIE].*", re.DOTALL)
_CODE_OPTION = re.compile(
    r"--(?:eval|print|exec|execute|command|code|require|import|loader|experimental-loader|config|preload|rcfile|init-file"
    r"|node-options?|script-shell|prefix|plugin|rootdir|globalSetup|setupFiles\w*|runner|transform|reporters?)(?:=.*)?",
    re.DOTALL,
)
_INLINE = re.compile(r"-[ce].*|--(?:eval|print|exec|execute|command|code|require|import)(?:=.*)?", re.DOTALL)
_LINT_LEVELS = frozenset({"-D", "-W", "-A", "-F"})
_FILE_MEND = "put the code into a script file of the repository and name that"


def refusals(
    argv: tuple[str, ...],
    cwd: str,
    *,
    allowed_extra: tuple[str, ...] = (),
    forbidden_words: tuple[str, ...] = (),
    repository: RepositoryView,
) -> tuple[str, ...]:
    """Return every reason why this command may not be a check; empty: it may.

    `cwd` is relative to the repository's root. `allowed_extra` names more programs, or absolute paths of programs.
    """
    broken = tuple(_broken(argv, cwd, repository))
    if broken:
        return broken
    words = _forbidden(argv, forbidden_words)
    return (*words, *_command(argv, _Place(_normal(cwd), repository), frozenset(allowed_extra)))


def _broken(argv: tuple[str, ...], cwd: str, repository: RepositoryView) -> Iterator[str]:
    if not argv or not argv[0]:
        yield "the command is empty; name a program first"
    for argument in argv:
        if re.search(r"[\x00\r\n]", argument):
            yield f"{argument!r} contains a line break or a NUL; {_FILE_MEND}"
    if cwd not in {"", "."}:
        yield from _path(cwd, _Place("", repository), what="working folder ")


def _forbidden(argv: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        f"{argument!r} contains the word {word!r}, which [policy] forbidden_words excludes; take another tool"
        for argument in argv
        for word in words
        if word and word.casefold() in argument.casefold()
    )


def _command(argv: tuple[str, ...], place: _Place, extra: frozenset[str]) -> Iterator[str]:
    program, arguments = argv[0], argv[1:]
    name = program.rpartition("/")[2]
    if name in WRAPPERS and (name == program or program.startswith("/")):
        yield f"{program!r} starts other programs or changes files; name the program that proves something itself"
        return
    objection = _program(program, place, extra)
    if objection is not None:
        yield objection
        return
    if "/" in program and _canonical(name) not in GRAMMARS and program not in extra:
        return  # a script of the repository: its arguments are its own
    yield from _arguments(_canonical(name), arguments, place, extra)


def _program(program: str, place: _Place, extra: frozenset[str]) -> str | None:
    if program in extra:
        return None
    if program.startswith("/"):
        return f"{program!r} is an absolute path; list it in [policy] executables, or name the program alone"
    if "/" in program:
        return _script(program, place)
    if _canonical(program) not in {*GRAMMARS, *SUBSTITUTES} - {"unittest"}:
        return f"{program!r} isn't on the list of programs; add it to [policy] executables, or call a script (`./check.sh`)"
    return None


def _canonical(name: str) -> str:
    return "python" if _PYTHON.fullmatch(name) else ALIASES.get(name, name)


def _arguments(name: str, arguments: tuple[str, ...], place: _Place, extra: frozenset[str]) -> Iterator[str]:
    if name == "python" and "-m" in arguments[:1]:
        yield from _module(arguments[1:], place)
    elif name in SUBSTITUTES:
        yield from _substitute(name, arguments, place, extra)
    elif name in GRAMMARS:
        yield from _judged(name, GRAMMARS[name], arguments, place)
    else:
        yield from (_inline(argument) for argument in arguments if _INLINE.fullmatch(argument))


def _inline(argument: str) -> str:
    return f"{argument!r} could carry code or name another configuration; {_FILE_MEND}"


def _module(arguments: tuple[str, ...], place: _Place) -> Iterator[str]:
    name = arguments[0] if arguments else ""
    if name not in PYTHON_MODULES:
        yield f"'-m {name}' runs a module by its name; only pytest and unittest may be named so, {_FILE_MEND}"
        return
    for shadow in (f"{name}.py", name):
        if place.repository.exists(_joined(place.cwd, shadow)):
            yield f"'-m {name}' would run the repository's own {shadow!r}; rename that"
    yield from _judged(name, GRAMMARS[name], arguments[1:], place)


def _substitute(name: str, arguments: tuple[str, ...], place: _Place, extra: frozenset[str]) -> Iterator[str]:
    if arguments[:1] != ("exec",) or len(arguments) < 2:
        yield f"{name!r} may only be told `exec PROGRAM`"
    else:
        yield from _command(arguments[1:], place, extra)


def _judged(name: str, grammar: Grammar, arguments: tuple[str, ...], place: _Place) -> Iterator[str]:
    if grammar.verbs:
        verb = arguments[0] if arguments else ""
        if verb in grammar.verbs:
            yield from _judged(f"{name} {verb}", grammar.verbs[verb], arguments[1:], place)
            return
        if not grammar.verb_optional:
            known = ", ".join(grammar.verbs)
            yield f"{verb!r} isn't what {name!r} may be told first; it may be: {known}"
            return
    yield from _Reading(name, grammar, place).reasons(arguments)


class _Reading:
    """Reads one command line against its grammar, from left to right."""

    def __init__(self, name: str, grammar: Grammar, place: _Place) -> None:
        self._name, self._grammar, self._place = name, grammar, place
        self._seen: set[str] = set()
        self._operands = 0

    def reasons(self, arguments: tuple[str, ...]) -> Iterator[str]:
        """Yield one reason for each argument that isn't allowed, then for what is missing."""
        at = 0
        while at < len(arguments):
            argument = arguments[at]
            if argument == "--":
                yield from self._rest(arguments[at + 1 :])
                break
            if not argument.startswith("-"):
                yield from self._operand(argument)
                if self._grammar.operand is Operand.SCRIPT:
                    break  # everything else is the script's
                at += 1
                continue
            follows = arguments[at + 1] if at + 1 < len(arguments) else None
            used, reasons = self._option(argument, follows)
            yield from reasons
            at += 1 + used
        yield from self._missing()

    def _missing(self) -> Iterator[str]:
        if self._grammar.operands_needed and not self._operands:
            yield f"{self._name!r} is told nothing to work on; name a file or target"
        if self._grammar.needs and not self._grammar.needs & self._seen:
            yield f"{self._name!r} changes files without {' or '.join(sorted(self._grammar.needs))}; add it"

    def _option(self, argument: str, follows: str | None) -> tuple[int, tuple[str, ...]]:
        """Return how many arguments after this one it takes, and the objections."""
        name, joined, value = argument.partition("=")
        grammar = self._grammar
        self._seen.add(name)
        if not joined and (name in grammar.flags or _cluster(name, grammar.letters)):
            return 0, ()
        if name in grammar.numbers and not joined:
            return int(follows is not None and _NUMBER.fullmatch(follows) is not None), ()
        if joined and name.startswith("-") and self._takes_value(name):
            return 0, tuple(self._value(name, value))
        if self._takes_value(name):
            return 1, tuple(self._separate(name, follows))
        return 0, tuple(self._attached(argument))

    def _takes_value(self, name: str) -> bool:
        grammar = self._grammar
        return (
            name in grammar.values
            or name in grammar.paths
            or name in grammar.choices
            or name in grammar.numbers
        )

    def _separate(self, name: str, value: str | None) -> Iterator[str]:
        if value is None or value.startswith("-"):
            yield f"{name!r} has no value of its own; write it as one argument with `=`"
        else:
            yield from self._value(name, value)

    def _attached(self, argument: str) -> Iterator[str]:
        name, value = argument[:2], argument[2:]
        if value and not argument.startswith("--") and self._takes_value(name):
            yield from self._value(name, value)
        else:
            yield f"{argument!r} isn't an option that {self._name!r} may be given; {_mend(argument)}"

    def _value(self, name: str, value: str) -> Iterator[str]:
        grammar = self._grammar
        if name in grammar.paths:
            yield from _path(value.partition("::")[0], self._place, what=f"{name} ")
        elif name in grammar.choices and value not in grammar.choices[name]:
            yield f"{name}={value!r}: only {', '.join(sorted(grammar.choices[name]))} may be given"
        elif name in grammar.numbers and not _NUMBER.fullmatch(value):
            yield f"{name}={value!r}: only a number may be given"
        elif value.startswith("@"):
            yield f"{name}={value!r} would read arguments from a file; write them out"

    def _operand(self, argument: str) -> Iterator[str]:
        self._operands += 1
        kind = self._grammar.operand
        if argument.startswith("@"):
            yield f"{argument!r} would read arguments from a file; write them out"
        elif kind is Operand.NONE:
            yield f"{argument!r} isn't something that {self._name!r} may be told; leave it out"
        elif kind is Operand.SCRIPT:
            yield from filter(None, (_script(argument, self._place),))
        elif kind is Operand.PATH:
            yield from _path(argument.partition("::")[0], self._place)
        elif kind is Operand.PACKAGE_SCRIPT:
            yield from self._package_script(argument)
        elif kind in {Operand.WORD, Operand.TASK}:
            yield from self._word(argument, _WORD if kind is Operand.WORD else _TASK)

    def _word(self, argument: str, form: re.Pattern[str]) -> Iterator[str]:
        if not form.fullmatch(argument) or ".." in argument:
            yield f"{argument!r} isn't a plain name of a target; settings belong in the build file"

    def _package_script(self, argument: str) -> Iterator[str]:
        if self._operands > 1:
            yield f"{argument!r}: only one script may be run; arguments stand behind `--`"
        elif argument not in self._place.repository.package_scripts(self._place.cwd):
            yield f"{argument!r} is no script in package.json; add it there, or name one that is"

    def _rest(self, arguments: tuple[str, ...]) -> Iterator[str]:
        rest = self._grammar.rest
        if rest is Rest.NONE and arguments:
            yield f"{'--'!r}: {self._name!r} may not be given arguments behind it; leave them out"
        elif rest is Rest.OPERANDS:
            for argument in arguments:
                yield from _path(argument, self._place)
        elif rest is Rest.TOOL:
            yield from (_inline(argument) for argument in arguments if _carries_code(argument))
        elif rest is Rest.LINTS:
            yield from (_inline(argument) for argument in arguments if not _is_lint(argument))


def _cluster(argument: str, letters: str) -> bool:
    return len(argument) > 1 and argument[1] != "-" and all(letter in letters for letter in argument[1:])


def _mend(argument: str) -> str:
    if argument == "-" or _CODE_FLAG.fullmatch(argument) or _CODE_OPTION.fullmatch(argument):
        return _FILE_MEND
    return "set it in the tool's own configuration file"


def _carries_code(argument: str) -> bool:
    if argument == "-" or argument.startswith("@"):
        return True
    return _CODE_FLAG.fullmatch(argument) is not None or _CODE_OPTION.fullmatch(argument) is not None


def _is_lint(argument: str) -> bool:
    return argument in _LINT_LEVELS or re.fullmatch(r"(?:-[DWAF])?[a-z][a-z0-9_:]*", argument) is not None


def _script(argument: str, place: _Place) -> str | None:
    for reason in _path(argument, place):
        return reason
    if not place.repository.is_file(_joined(place.cwd, argument)):
        return f"{argument!r} is no file of the repository; {_FILE_MEND}"
    return None


def _path(argument: str, place: _Place, what: str = "") -> Iterator[str]:
    components = argument.split("/")
    if (
        not argument
        or argument.startswith(("/", "~", "-"))
        or "\\" in argument
        or re.match(r"[\w+.-]+:", argument)
    ):
        yield f"{what}{argument!r} is no path inside the repository; write it relative to the working folder"
    elif ".." in components:
        yield f"{what}{argument!r} climbs with `..`; set the check's cwd instead"
    elif any(component.casefold().rstrip(". ") == ".git" for component in components):
        yield f"{what}{argument!r} reaches into the git folder; leave it out"
    elif place.repository.leads_outside(_joined(place.cwd, argument)):
        yield f"{what}{argument!r} leads out of the repository by a symlink; name a file that lies inside"


def _normal(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in {"", "."})


def _joined(cwd: str, path: str) -> str:
    return _normal(f"{cwd}/{path}")
