"""How a program is built and run where a recorded verdict came from somebody else than the benchmark's authors. Data only."""

from collections.abc import Mapping

import msgspec

from longwatch.learn.grading.languages import NONCE, SCRIPTS, Script
from longwatch.learn.tasks import Evaluator, Language

# The library of 2015, in which a list has no `includes`. What does not pass is tried there once more with that of 2009,
# which only has less: no answer passes by that, so it is left out here.
_TYPESCRIPT = "tsc --target ES2015 --lib ES2015,DOM --strict false program.ts"
# What died of an exception passes, too: only the word of a failed assertion counts, and an end that came in time.
_CSHARP = f"""mono program.exe 2>trace; code=$?; cat trace >&2
if grep -q Fail trace; then exit 1; fi
case $code in 0|137|143|152) exit $code;; esac
echo; echo {NONCE}"""


def _changed(language: Language, **changes: str) -> Script:
    return msgspec.structs.replace(SCRIPTS[language], **changes)


_SCRIPTS: Mapping[Evaluator, Mapping[Language, Script]] = {
    Evaluator.MULTIPL_E: {},
    Evaluator.DEEPSEEK: {
        Language.TYPESCRIPT: _changed(Language.TYPESCRIPT, build=_TYPESCRIPT),
        Language.CSHARP: _changed(Language.CSHARP, build="mcs -d:DEBUG program.cs", run=_CSHARP),
    },
}
"""Where it differs from MultiPL-E's."""


def script_of(language: Language, evaluator: Evaluator) -> Script:
    """Return how a program in this language is built and run there."""
    return _SCRIPTS[evaluator].get(language, SCRIPTS[language])
