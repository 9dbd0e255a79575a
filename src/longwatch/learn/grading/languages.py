"""The table of languages: what each needs on the machine, and how a file of answer and tests is built and run. Data only.

Where MultiPL-E's authors run a language in a certain way, so does this table: the dialect of C++, TypeScript without
strictness, Bash without `bc`. A figure that was got otherwise could not be compared with theirs.
"""

from collections.abc import Mapping

import msgspec

from longwatch.learn.tasks import Language

NAME, NONCE = "@name@", "@nonce@"


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """How one file that holds an answer and its tests is built and run: lines of shell, in an empty folder of its own."""

    file: str
    build: str = ""
    """Empty: nothing is built."""
    run: str
    binds: tuple[str, ...] = ()
    """What it reads outside /usr; what is not there is left out."""
    together: bool = False
    """Its programs are made of many short processes, which have one limit of CPU time together: the authors' is of wall time."""
    procfs: bool = False
    """It does not start without /proc."""
    hidden: tuple[str, ...] = ()
    """Programs that the benchmark's authors did not have, so that no machine judges otherwise because it has them."""
    environment: Mapping[str, str] = {}
    ends: str = r"\Z"
    """A regular expression for the end of the tests, which the witness takes the place of."""
    witness: str
    """It says the nonce, and only when all tests before it have passed."""
    head: str
    """A regular expression for what begins the definition of the function that is asked for."""
    closer: str = "}"
    """What the line begins with that ends a definition, in the definition's own indentation."""
    comment: str = "//"
    """A line that begins with it is none of code."""
    on_top: str = ""
    """Lines before an answer's definition that go to the top of the file (a regular expression); the others are left out.
    Empty: all of them stay where they are."""
    dropped: str = ""
    """What is left out of that which stands before a definition, because a file has it only once, or not at all."""
    imported: str = ""
    """What names one package in an import that is dropped (a regular expression), where an import without use is an error."""
    tricks: str
    """A regular expression for what reads its own file or disarms what compares: no honest answer has it."""


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What one language needs on the machine."""

    name: str
    """As people write it."""
    programs: tuple[str, ...]
    """In /usr/bin. The first one says the version."""
    version: tuple[str, ...] = ("--version",)
    files: tuple[str, ...] = ()
    """Libraries that the benchmark's tests load."""
    packages: tuple[str, ...]
    """Debian's packages that bring all of it."""
    fences: frozenset[str]
    """What a model calls it in a fence."""
    script: Script | None = None
    """`None`: answer and tests run in two processes, so nothing is ever built of both."""


# What follows the name of a variable that holds a function.
_ARROW = r"[^=\n]*=\s*(?:async\s*)?(?:function\b|\w+\s*=>|(?:<[^>]*>)?\([^;]*?\)\s*(?::[^;=]*)?=>)"
# One problem is honestly solved by evaluating what was put together: only with what hides a word is that a trick.
_EVALUATED = r"\b(?:eval|Function)\s*\("
_HIDDEN = r"(?:require|import|callee|constructor|reverse|atob|fromC(?:har|ode)|\\[xu]|['\"]\s*\+\s*['\"])"
# A line that has the name before its first parenthesis, and opens a block: no call, no comment and no declaration.
_BLOCK = rf"^(?![ \t]*\*)[^\n(/#=.]*\b{NAME}\s*\([^;]*?\)[^;{{}}]*\{{"
_BESIDE = f"8<<'END'\n{NONCE}\nEND"
"""The nonce comes by a pipe of its own."""
# PHP before 8.2, which the authors had, makes one empty piece of an empty text; a function that is disabled can be written.
_STR_SPLIT = """function str_split($text, $size = 1) {
    if (is_array($text)) { throw new TypeError('str_split(): Argument #1 ($string) must be of type string, array given'); }
    if ($size < 1) { throw new ValueError('str_split(): Argument #2 ($length) must be greater than 0'); }
    for ($pieces = [substr($text, 0, $size)], $at = $size; $at < strlen($text); $at += $size) {
        $pieces[] = substr($text, $at, $size);
    }
    return $pieces;
}
"""
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
_TUPLES = "/usr/share/java/javatuples.jar"

RUNTIMES: Mapping[Language, Runtime] = {
    Language.PYTHON: Runtime(
        name="Python",
        programs=("python3",),
        packages=("python3",),
        fences=frozenset({"python", "python3", "py"}),
    ),
    Language.JAVASCRIPT: Runtime(
        name="JavaScript",
        programs=("node",),
        packages=("nodejs",),
        fences=frozenset({"javascript", "js", "node"}),
    ),
    Language.TYPESCRIPT: Runtime(
        name="TypeScript",
        programs=("tsc", "node"),
        packages=("node-typescript", "nodejs"),
        fences=frozenset({"typescript", "ts"}),
        script=Script(
            file="program.ts",
            # From version 6 on it would be strict by itself: what does not compile fails, as with the authors.
            build="tsc --target esnext --strict false program.ts",
            run="node program.js",
            witness=f"\nrequire('fs').writeSync(1, '{NONCE}\\n');\n",
            # A variable of the function's own name is no definition: only what is a function.
            head=rf"(?:^|(?<=^export ))[ \t]*(?:async\s+)?(?:function\s+{NAME}\b|(?:const|let|var)\s+{NAME}\b{_ARROW})",
            # It would make a module of the file, in which the tests' `require` does not exist.
            dropped=r"^export\s+(?:default\s+)?",
            tricks=r"\brequire\s*\(\s*['\"](?!(?:node:)?crypto['\"])|\bprocess\s*[.\[]|\bglobalThis\b|__(?:file|dir)name"
            rf"|\bassert\s*[.=\[]|(?s:{_EVALUATED}.*{_HIDDEN}|{_HIDDEN}.*{_EVALUATED})",
        ),
    ),
    Language.JAVA: Runtime(
        name="Java",
        programs=("javac", "java"),
        files=(_TUPLES,),
        packages=("default-jdk-headless", "libjavatuples-java"),
        fences=frozenset({"java"}),
        script=Script(
            file="Problem.java",
            build=f"javac {_JAVA.replace('-X', '-J-X')} -encoding UTF8 -cp {_TUPLES} -d . Problem.java",
            run=f"java {_JAVA} -Xmx512m -ea -cp .:{_TUPLES} Problem",
            binds=(
                "/etc/alternatives",
                "/etc/java-11-openjdk",
                "/etc/java-17-openjdk",
                "/etc/java-21-openjdk",
            ),
            procfs=True,
            ends=r"\}\s*\}\s*\Z",
            witness=f'System.out.println("{NONCE}");\n}}\n}}\n',
            head=_BLOCK,
            on_top=r"^\s*import\s+(?:static\s+)?[\w.*]+\s*;",
            tricks=r"\bSystem\s*\.\s*(?:in\b|setOut|getProperty)|\bRuntime\s*\.|\bProcess(?:Builder|Handle)\b|\bFiles\s*\."
            r"|\bFile(?:Reader|InputStream)?\s*\(|\bClass\s*\.\s*forName|\.getDeclared|\bsetAccessible\b|AssertionStatus"
            r"|\bUnsafe\b|\bboolean\s+equals\s*\(|/proc/",
        ),
    ),
    Language.CPP: Runtime(
        name="C++",
        programs=("g++",),
        packages=("g++", "libssl-dev"),
        fences=frozenset({"cpp", "c++", "cc", "cxx"}),
        script=Script(
            file="program.cpp",
            # One problem asks for a digest, which the standard library does not have.
            build="if grep -q openssl program.cpp; then ssl='-lcrypto -lssl'; else ssl=''; fi; "
            "g++ -std=c++17 program.cpp -o program $ssl",
            run="./program",
            binds=("/etc/alternatives",),
            ends=r"\}\s*\Z",
            witness=f'puts("{NONCE}");\n}}\n',
            head=_BLOCK,
            tricks=r"\boperator\s*[=!]=|#\s*define\s+(?:assert|NDEBUG|main|puts)\b|#\s*undef\s+assert\b|\bi?fstream\b|\bfopen\b|__FILE__"
            r"|__assert_fail",
        ),
    ),
    Language.GO: Runtime(
        name="Go",
        programs=("go",),
        version=("version",),
        packages=("golang-go",),
        fences=frozenset({"go", "golang"}),
        script=Script(
            file="program_test.go",
            run="go test -v program_test.go",
            environment={
                "GOCACHE": "/tmp/cache",  # noqa: S108 - the sandbox's own
                "GOPATH": "/tmp/path",  # noqa: S108 - the same
                "GO111MODULE": "off",
                "GOTOOLCHAIN": "local",
            },
            witness=f'\nfunc TestMain(m *testing.M) {{\n\tif m.Run() == 0 {{\n\t\tfmt.Println("{NONCE}")\n\t}}\n}}\n',
            head=rf"^func\s+{NAME}\b",
            dropped=r"^package .*$|^import\s+(?:\((?:.|\n)*?^\)|.*$)",
            imported=r'"([\w/]+)"',
            tricks=r"\)\s*(?:Go)?String\s*\(\s*\)|\)\s*Format\s*\(|\bTestMain\b|\btesting\s*\.|\bgo:embed\b",
        ),
    ),
    Language.RUST: Runtime(
        name="Rust",
        programs=("rustc",),
        packages=("rustc",),
        fences=frozenset({"rust", "rs"}),
        script=Script(
            file="program.rs",
            build="rustc program.rs -o program",
            run="./program",
            binds=("/etc/alternatives",),
            procfs=True,
            ends=r"\}\s*\Z",
            witness=f'println!("{NONCE}");\n}}\n',
            head=rf"^[ \t]*(?:pub\s+)?fn\s+{NAME}\b",
            tricks=r"\bPartialEq\b[^;{]*\bfor\b|\bmacro_rules!\s*(?:assert|println)|\bstd\s*::\s*(?:fs|env)\b"
            r"|\binclude(?:_str|_bytes)?!|\bfile!|/proc/",
        ),
    ),
    Language.RUBY: Runtime(
        name="Ruby",
        programs=("ruby",),
        packages=("ruby", "ruby-test-unit"),
        fences=frozenset({"ruby", "rb"}),
        script=Script(
            file="program.rb",
            run="ruby program.rb",
            # By itself it would run the tests after the last line, where nothing can be said any more.
            witness="\nTest::Unit::AutoRunner.need_auto_run = false\n"
            f"exit!(1) unless Test::Unit::AutoRunner.run\nputs '{NONCE}'\n",
            head=rf"^[ \t]*def\s+(?:self\.)?{NAME}\b",
            closer="end",
            comment="#",
            tricks=r"\bTest::|\b(?:module|class)\s+Test\b|__FILE__|\$0\b|\$PROGRAM_NAME|\bDATA\b|\b(?:File|IO|ObjectSpace)\s*\."
            r"|\bTracePoint\b|\bdef\s+(?:==|to_str\b|method\b|assert)",
        ),
    ),
    Language.PHP: Runtime(
        name="PHP",
        programs=("php",),
        packages=("php-cli",),
        fences=frozenset({"php"}),
        script=Script(
            file="program.php",
            # Behind a `?>` the rest of a file is printed as it stands: so the nonce does not stand in it.
            run=f"php -d disable_functions=str_split program.php {_BESIDE}",
            binds=("/etc/alternatives", "/etc/php"),
            ends=r"(?:\?>\s*)?\Z",
            witness=f"\nreadfile('php://fd/8');\n{_STR_SPLIT}",
            head=rf"^[ \t]*function\s+&?{NAME}\b",
            dropped=r"^\s*<\?php",
            tricks=r"php://|\bfile_get_contents\b|\bfopen\b|\bfile\s*\(|\breadfile\b|\b(?:show_source|highlight_file)\b|__(?:FILE|DIR)__"
            r"|\b(?:include|require)(?:_once)?\s*[('\"]|^\s*namespace\b|\bSplFileObject\b|\bini_(?:set|get|restore)\b",
        ),
    ),
    Language.PERL: Runtime(
        name="Perl",
        programs=("perl",),
        files=("/usr/share/perl5/Test/Deep.pm",),
        packages=("perl", "libtest-deep-perl"),
        fences=frozenset({"perl", "pl"}),
        script=Script(
            file="program.pl",
            run="perl program.pl",
            witness=f'\nprint "{NONCE}\\n";\n',
            head=rf"^[ \t]*sub\s+{NAME}\b",
            comment="#",
            tricks=r"\bTest::Deep\b|\beq_deeply\b|\boverload\b|CORE::GLOBAL|\$0\b|__(?:FILE|DATA|END)__|\bopen\s*[(\s]\s*(?:my\b|[A-Z])",
        ),
    ),
    Language.LUA: Runtime(
        name="Lua",
        programs=("lua5.4",),
        version=("-v",),
        files=("/usr/share/lua/5.4/luaunit.lua",),
        packages=("lua5.4", "lua-unit"),
        fences=frozenset({"lua"}),
        script=Script(
            file="program.lua",
            run="lua5.4 program.lua",
            ends=r"os\.exit\(lu\.LuaUnit\.run\(\)\)\s*\Z",
            witness=f"local failed = lu.LuaUnit.run()\nif failed == 0 then print('{NONCE}') end\nos.exit(failed)\n",
            head=rf"^[ \t]*(?:local\s+)?(?:function\s+{NAME}\b|{NAME}\s*=\s*function\b)",
            closer="end",
            comment="--",
            tricks=r"\bluaunit\b|\blu\s*\.|\bpackage\s*\.|\bio\s*(?:\[|\.\s*(?:open|lines|input|popen))|\bdebug\s*\.|\b(?:do|load)file\b|__eq\b"
            r"|\b_G\b|\b(?:require|lu)\s*=(?!=)|\bfunction\s+require\b",
        ),
    ),
    Language.BASH: Runtime(
        name="Bash",
        programs=("bash",),
        packages=("bash",),
        fences=frozenset({"bash", "sh", "shell"}),
        script=Script(
            file="program.sh",
            # Programs of awk have a $0, too: so the nonce does not stand in the file.
            run=f"bash program.sh {_BESIDE}",
            together=True,
            binds=("/etc/alternatives",),
            hidden=tuple(f"/usr/bin/{one}" for one in ("bc", "dc", "jq", "xxd")),
            witness="\ncat <&8\n",
            head=rf"^[ \t]*(?:function\s+{NAME}\b|{NAME}\s*\(\s*\))",
            comment="#",
            tricks=r"<&\s*[\d$]|/dev/fd|\bBASH_(?:SOURCE|ARGV0|ENV)\b|\btrap\b|\b(?:readonly|declare|typeset|export)\s+-\w*f"
            r"|\bshopt\b(?!\s+-[su]\s+(?:nocasematch|nocaseglob|extglob|nullglob|globstar)\s*(?:$|[;&|]))"
            r"|\b(?:set|cat|candidate|run_test)\s*\(\s*\)|\bfunction\s+(?:set|cat|candidate|run_test)\b",
        ),
    ),
    Language.R: Runtime(
        name="R",
        programs=("Rscript",),
        packages=("r-base-core",),
        fences=frozenset({"r"}),
        script=Script(
            file="program.r",
            run="Rscript program.r",
            binds=("/etc/alternatives", "/etc/R"),
            witness=f'\ncat("{NONCE}\\n")\n',
            head=rf"^[ \t]*{NAME}\s*(?:<-|=)\s*function\b",
            comment="#",
            tricks=r"\b(?:stopifnot|isTRUE|all\.equal(?:\.\w+)?)[\"'`]?\s*(?:<<?-|=[^=]|,)|\bcommandArgs\b|\breadLines\b"
            r"|\bfile\s*\(|\bsource\s*\(|\bsys\.\w+\s*\(|\bon\.exit\b",
        ),
    ),
    Language.CSHARP: Runtime(
        name="C#",
        programs=("mcs", "mono"),
        packages=("mono-mcs",),
        fences=frozenset({"csharp", "cs", "c#"}),
        script=Script(
            file="program.cs",
            build="mcs -d:DEBUG -r:System.Numerics.dll program.cs",
            # An assertion that does not hold is only written down: its word is what the authors look for, too.
            run="mono program.exe 2>trace; code=$?; cat trace >&2; if grep -q TraceListener.Fail trace; then code=1; fi; exit $code",
            binds=("/etc/mono",),
            procfs=True,
            environment={"MONO_TRACE_LISTENER": "Console.Error"},
            ends=r"\}\s*\}\s*\Z",
            witness=f'Console.WriteLine("{NONCE}");\n}}\n}}\n',
            head=_BLOCK,
            on_top=r"^\s*using\s+[\w.=\s]+;",
            tricks=r"\bDebug\s*\.(?!\s*(?:Assert|Write))|\bTrace\s*\.|\bListeners\b|\bclass\s+Debug\b|\bFile\s*\.|\bStreamReader\b"
            r"|\bReflection\b|\boperator\s*==|\bbool\s+Equals\s*\(|\bEnvironment\s*\.(?!\s*NewLine\b)|\bSetError\b|/proc/",
        ),
    ),
}
"""Every language that can be graded."""

SCRIPTS: Mapping[Language, Script] = {
    language: runtime.script for language, runtime in RUNTIMES.items() if runtime.script is not None
}
