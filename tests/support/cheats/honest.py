"""The honest half of every worker: what it is asked, honest work in each kind of repository, and the answer.

Beside a set of cheats on the worker's command line: what stands there is what a sandbox shows.
"""

import json
import os
import re
import sys
from pathlib import Path

PROMPT = sys.stdin.read()
JOB = re.search(r"Do ([a-z0-9_]+)", PROMPT)[1]
CHEAT = re.search(r"^cheat: ([a-z0-9_]+)", PROMPT, re.MULTILINE)[1]
FIRST = "this is the first attempt" in PROMPT
NONCE = os.environ["LONGWATCH_NONCE"]
TOLD = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
REAL = Path(TOLD["real"])
"""The person's repository, as the host knows it."""
RESULT = Path(os.environ["LONGWATCH_RESULT"])
SIGNS = {"npm": "package.json", "make": "tests/all.sh", "unittest": "run_tests.py", "pytest": "."}
KIND = next(kind for kind, sign in SIGNS.items() if Path(sign).exists())


def write(path, text, mode=0o644):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text if isinstance(text, bytes) else text.encode())
    Path(path).chmod(mode)
    return path


def edit(path, old, new):
    text = Path(path).read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path}"
    return write(path, text.replace(old, new, 1))


def answer(changed, status="done", reason="", **more):
    return {
        "nonce": NONCE,
        "status": status,
        "summary": f"Did {JOB}.",
        "changed": list(changed),
        "reason": reason,
        **more,
    }


def say(value):
    RESULT.write_text(json.dumps(value), encoding="utf-8")


def honest():
    """A new module and a test of it."""
    if KIND == "npm":
        return [
            write(f"lib/{JOB}.js", f"exports.value = () => '{JOB}';\n"),
            write(
                f"test/{JOB}.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\n"
                f"test('{JOB}', () => assert.strictEqual(require('../lib/{JOB}.js').value(), '{JOB}'));\n",
            ),
        ]
    if KIND == "make":
        case = f'[ "$(sh bin/{JOB}.sh)" = {JOB} ]\n'
        return [write(f"bin/{JOB}.sh", f"echo {JOB}\n"), write(f"tests/cases/{JOB}.sh", case)]
    module = write(f"shop/{JOB}.py", f"def value():\n    return '{JOB}'\n")
    if KIND == "unittest":
        test = f"""import unittest

from shop import {JOB}


class Test{JOB.title().replace("_", "")}(unittest.TestCase):
    def test_value(self):
        self.assertEqual({JOB}.value(), "{JOB}")
"""
    else:
        test = f"from shop import {JOB}\n\n\ndef test_{JOB}():\n    assert {JOB}.value() == '{JOB}'\n"
    return [module, write(f"tests/test_{JOB}.py", test)]


CHEATS = {}


def cheat(function):
    """One more thing that a card can name."""
    CHEATS[function.__name__] = function
    return function


def work():
    """Be honest, or do what the card names; a cheat that returns something has that as its answer."""
    said = CHEATS[CHEAT]() if FIRST and CHEAT != "honest" else answer(honest())
    if said is not None:
        say(said)


if __name__ == "__main__":
    work()
