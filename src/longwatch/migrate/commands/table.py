"""What a check may say to each known program, as data (specification M14). Pure.

Everything that isn't listed is refused: an option that runs code from its argument, loads a module or reads a
configuration from elsewhere needs no entry here to be kept out. Such settings belong in the tool's own configuration
file, which is protected.
"""

from collections.abc import Mapping

import msgspec

from longwatch.migrate.commands.grammar import Grammar, Operand, Rest, words

_SHELL = Grammar(operand=Operand.SCRIPT, operands_needed=True)

_NODE_FLAGS = words("""
    --no-warnings --enable-source-maps --trace-warnings --trace-uncaught --expose-gc --experimental-strip-types
    --experimental-transform-types --throw-deprecation
""")
_NODE_VALUES = words("--max-old-space-size --stack-trace-limit --unhandled-rejections")

_NODE = Grammar(
    verbs={
        "--test": Grammar(
            flags=_NODE_FLAGS
            | words(
                "--test-only --test-force-exit --experimental-test-coverage --experimental-test-module-mocks"
            ),
            values=_NODE_VALUES
            | words("--test-name-pattern --test-skip-pattern --test-concurrency --test-timeout --test-shard"),
            choices={"--test-reporter": words("spec tap dot junit lcov")},
            operand=Operand.PATH,
        )
    },
    verb_optional=True,
    flags=_NODE_FLAGS | words("--check"),
    values=_NODE_VALUES,
    operand=Operand.SCRIPT,
    operands_needed=True,
)

_PACKAGE_MANAGER = Grammar(
    verbs={
        "test": Grammar(flags=words("--silent -s"), rest=Rest.TOOL),
        "run": Grammar(
            flags=words("--silent -s"), operand=Operand.PACKAGE_SCRIPT, operands_needed=True, rest=Rest.TOOL
        ),
    }
)

_PYTEST = Grammar(
    flags=words("""
        --verbose --quiet --exitfirst --showlocals --strict-markers --strict-config --strict --disable-warnings
        --no-header --full-trace --doctest-modules --cov --no-cov-on-fail --cov-branch --no-showlocals
    """),
    letters="vqxsl",
    values=words("""
        -k -m -n -r --maxfail --durations --durations-min --tb --timeout --color --cov --cov-report --cov-fail-under
        --dist --numprocesses --verbosity --hypothesis-profile --hypothesis-seed --randomly-seed --show-capture
    """),
    paths=words("--ignore --deselect"),
    operand=Operand.PATH,
)

_UNITTEST = Grammar(
    verbs={
        "discover": Grammar(letters="vfb", paths=words("-s -t"), values=words("-p -k"), operand=Operand.NONE)
    },
    verb_optional=True,
    letters="vfb",
    flags=words("--verbose --failfast --buffer --locals"),
    values=words("-k"),
    operand=Operand.PATH,
)

_CARGO_COMMON = Grammar(
    flags=words("""
        --workspace --all --all-features --no-default-features --release --locked --offline --frozen --lib --bins
        --examples --tests --benches --all-targets --no-fail-fast --verbose --quiet --keep-going --doc --no-deps
    """),
    letters="qvr",
    values=words("""
        -p --package --exclude -F --features --profile --bin --test --example --bench --message-format --color
    """),
    numbers=words("-j --jobs"),
    paths=words("--manifest-path"),
)


def _cargo(*, operand: Operand = Operand.NONE, rest: Rest = Rest.NONE) -> Grammar:
    return msgspec.structs.replace(_CARGO_COMMON, operand=operand, rest=rest)


_GO = Grammar(
    flags=words("-v -x -race -short -cover -failfast -benchmem -json -trimpath"),
    values=words(
        "-count -run -skip -timeout -tags -p -parallel -cpu -bench -benchtime -shuffle -covermode -mod -vet"
    ),
    operand=Operand.PATH,
)

_GRADLE = Grammar(
    flags=words("""
        --offline --no-daemon --quiet --stacktrace --info --continue --parallel --rerun-tasks --no-build-cache --warn
    """),
    letters="q",
    values=words("--tests --max-workers -x --exclude-task"),
    choices={"--console": words("plain auto")},
    operand=Operand.TASK,
    operands_needed=True,
)

_MAVEN = Grammar(
    flags=words(
        "--quiet --batch-mode --offline --no-transfer-progress --errors --fail-at-end --also-make -ntp -am -fae"
    ),
    letters="qBoeV",
    values=words("-T -pl --projects --threads -Dtest"),
    operand=Operand.WORD,
    operands_needed=True,
)

_CMAKE = Grammar(
    verbs={
        "--build": Grammar(
            flags=words("-v --verbose --clean-first"),
            values=words("-t --target --config"),
            numbers=words("-j --parallel"),
            operand=Operand.PATH,
            operands_needed=True,
        ),
        "-S": Grammar(
            paths=words("-B"),
            values=words("-G --preset"),
            choices={
                "-DCMAKE_BUILD_TYPE": words("Debug Release RelWithDebInfo MinSizeRel"),
                "-DBUILD_TESTING": words("ON OFF 1 0"),
            },
            operand=Operand.PATH,
            operands_needed=True,
        ),
    }
)

_CTEST = Grammar(
    flags=words(
        "--output-on-failure --stop-on-failure --verbose --extra-verbose --progress --schedule-random -VV"
    ),
    letters="VQ",
    values=words("-R -E -L -LE -C --build-config --timeout --preset --tests-regex --label-regex"),
    numbers=words("-j --parallel"),
    choices={"--no-tests": words("error")},
    paths=words("--test-dir"),
)

_JEST = Grammar(
    flags=words("""
        --ci --runInBand --coverage --verbose --silent --no-cache --detectOpenHandles --errorOnDeprecated --no-coverage
        --forceExit --no-watchman --bail --color
    """),
    letters="i",
    values=words(
        "-w -t --maxWorkers --testNamePattern --testPathPattern --testPathPatterns --testTimeout --bail"
    ),
    operand=Operand.PATH,
)

_VITEST = Grammar(
    flags=words("--coverage --no-coverage --no-file-parallelism --silent --no-color"),
    values=words("-t --testNamePattern --bail --pool --project --testTimeout --maxWorkers --minWorkers"),
    choices={"--reporter": words("default verbose tap tap-flat junit dot")},
    operand=Operand.PATH,
)

_MOCHA = Grammar(
    flags=words(
        "--recursive --exit --bail --forbid-only --forbid-pending --parallel --check-leaks --full-trace --sort"
    ),
    letters="b",
    values=words("-t -g -f -j --timeout --grep --fgrep --jobs --slow --extension"),
    choices={"--reporter": words("spec tap dot min xunit")},
    operand=Operand.PATH,
)

_GIT_READ = Grammar(
    flags=words("""
        --check --exit-code --quiet --stat --name-only --name-status --cached --staged --porcelain --oneline --short
        --no-ext-diff --no-textconv --error-unmatch --others --exclude-standard --untracked-files --show-toplevel
        --is-inside-work-tree --abbrev-ref --verify --tags --always --dirty -z -s -q -r -p -t -e
    """),
    values=words("-n --max-count --format --diff-filter"),
    operand=Operand.TEXT,
    rest=Rest.OPERANDS,
)

_DOTNET = Grammar(
    flags=words("--no-restore --no-build --nologo"),
    values=words("-c --configuration -v --verbosity --filter -f --framework"),
    operand=Operand.PATH,
)

_PLAIN_INTERPRETERS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "perl",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "julia",
    "elixir",
)

GRAMMARS: Mapping[str, Grammar] = {
    **dict.fromkeys(_PLAIN_INTERPRETERS, _SHELL),
    # `-O` is missing on purpose: it turns assertions off.
    "python": Grammar(
        letters="BEIbdqsSuv",
        choices={
            "-W": words("error default always ignore"),
            "-X": words("dev utf8 utf8=1 faulthandler tracemalloc"),
        },
        operand=Operand.SCRIPT,
        operands_needed=True,
    ),
    "node": _NODE,
    "deno": Grammar(
        verbs={
            "test": Grammar(
                flags=words(
                    "-A --allow-all --allow-read --allow-write --allow-net --allow-env --allow-run --parallel -q"
                ),
                values=words("--filter --fail-fast"),
                operand=Operand.PATH,
            ),
            "check": Grammar(operand=Operand.PATH, operands_needed=True),
            "lint": Grammar(operand=Operand.PATH),
            "fmt": Grammar(flags=words("--check"), operand=Operand.PATH, needs=words("--check")),
            "run": Grammar(
                flags=words(
                    "-A --allow-all --allow-read --allow-write --allow-net --allow-env --allow-run -q"
                ),
                operand=Operand.SCRIPT,
                operands_needed=True,
            ),
        }
    ),
    "bun": Grammar(
        verbs={
            "test": Grammar(
                flags=words("--bail --coverage --only"), values=words("-t --timeout"), operand=Operand.PATH
            ),
            "run": Grammar(operand=Operand.PACKAGE_SCRIPT, operands_needed=True, rest=Rest.TOOL),
        }
    ),
    "ruby": Grammar(flags=words("-w"), paths=words("-I"), operand=Operand.SCRIPT, operands_needed=True),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _PACKAGE_MANAGER),
    **dict.fromkeys(("pytest", "py.test"), _PYTEST),
    "unittest": _UNITTEST,
    "cargo": Grammar(
        verbs={
            "test": _cargo(operand=Operand.WORD, rest=Rest.OWN),
            **{verb: _cargo() for verb in ("build", "check", "doc")},
            "clippy": _cargo(rest=Rest.LINTS),
            "fmt": Grammar(flags=words("--all --check"), values=words("-p"), needs=words("--check")),
        }
    ),
    "go": Grammar(verbs=dict.fromkeys(("test", "build", "vet"), _GO)),
    "make": Grammar(
        flags=words("--silent --quiet --always-make --no-print-directory --keep-going"),
        letters="skBw",
        numbers=words("-j -l --jobs"),
        paths=words("-C"),
        operand=Operand.WORD,
    ),
    "cmake": _CMAKE,
    "ctest": _CTEST,
    "ninja": Grammar(
        flags=words("--verbose --quiet"),
        letters="v",
        numbers=words("-j -k -l"),
        paths=words("-C"),
        operand=Operand.WORD,
    ),
    "mvn": _MAVEN,
    "gradle": _GRADLE,
    "tox": Grammar(
        verbs={"run": Grammar(values=words("-e -m"), flags=words("-q -v"))},
        verb_optional=True,
        values=words("-e -m"),
        letters="qv",
    ),
    "nox": Grammar(
        values=words("-s --session --sessions -t -k"), flags=words("--error-on-missing-interpreters -r -R")
    ),
    "ruff": Grammar(
        verbs={
            "check": Grammar(
                flags=words("--no-cache --quiet -q -v --preview --statistics --no-fix --diff"),
                values=words(
                    "--select --ignore --extend-select --target-version --line-length --output-format --exclude"
                ),
                operand=Operand.PATH,
            ),
            "format": Grammar(
                flags=words("--check --diff --no-cache --quiet -q --preview"),
                values=words("--exclude"),
                operand=Operand.PATH,
                needs=words("--check --diff"),
            ),
        }
    ),
    "mypy": Grammar(
        flags=words("""
            --strict --no-incremental --no-error-summary --ignore-missing-imports --warn-unused-ignores --pretty
            --show-error-codes --namespace-packages --explicit-package-bases --no-color-output --check-untyped-defs
        """),
        values=words("-p --package -m --module --python-version --platform --exclude"),
        operand=Operand.PATH,
    ),
    "pyright": Grammar(
        flags=words("--warnings --outputjson --stats"),
        values=words("--pythonversion --level"),
        operand=Operand.PATH,
    ),
    "flake8": Grammar(
        flags=words("--count --statistics --show-source --benchmark -q -v"),
        values=words(
            "--max-line-length --max-complexity --select --ignore --extend-ignore --exclude -j --jobs"
        ),
        operand=Operand.PATH,
    ),
    "eslint": Grammar(
        flags=words(
            "--quiet --report-unused-disable-directives --no-inline-config --no-error-on-unmatched-pattern"
        ),
        values=words("--max-warnings --ext --ignore-pattern"),
        operand=Operand.PATH,
    ),
    "tsc": Grammar(
        flags=words("--noEmit --strict --skipLibCheck -b --build --verbose"),
        values=words("--pretty --incremental --target --module"),
        paths=words("-p --project"),
        operand=Operand.PATH,
    ),
    "prettier": Grammar(
        flags=words("--check --list-different -l --no-color"),
        values=words("--log-level"),
        operand=Operand.PATH,
        operands_needed=True,
        needs=words("--check --list-different -l"),
    ),
    "jest": _JEST,
    "vitest": Grammar(verbs={"run": _VITEST}),
    "mocha": _MOCHA,
    "shellcheck": Grammar(
        values=words("-s -S -e"), flags=words("-x"), operand=Operand.PATH, operands_needed=True
    ),
    "rspec": Grammar(
        values=words("--tag -t --seed --example -e"),
        choices={
            "-f": words("d p documentation progress"),
            "--format": words("documentation progress json"),
        },
        flags=words("--fail-fast --no-color --backtrace"),
        operand=Operand.PATH,
    ),
    "rake": Grammar(flags=words("--trace --quiet"), operand=Operand.WORD),
    "phpunit": Grammar(
        flags=words("--testdox --no-coverage --stop-on-failure --no-progress"),
        values=words("--filter --testsuite --group"),
        operand=Operand.PATH,
    ),
    "dotnet": Grammar(verbs={"test": _DOTNET, "build": _DOTNET}),
    "git": Grammar(
        verbs=dict.fromkeys(
            (
                "status",
                "diff",
                "log",
                "show",
                "ls-files",
                "ls-tree",
                "rev-parse",
                "cat-file",
                "describe",
                "diff-tree",
            ),
            _GIT_READ,
        )
    ),
}
"""By the program's name."""
