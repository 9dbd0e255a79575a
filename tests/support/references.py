"""Runs many references on their own tests, one process for each language."""

import json
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from longwatch.learn.tasks import Cases, Language, Task

PYTHON = """
import json, sys
wrong = []
for name, code, entry, cases in json.load(sys.stdin):
    space = {}
    exec(code, space)
    for arguments, expected in cases:
        got = json.loads(json.dumps(space[entry](*arguments)))
        if got != expected or type(got) is not type(expected):
            wrong.append([name, arguments, expected, got])
            break
print(json.dumps(wrong))
"""
JAVASCRIPT = """
const { isDeepStrictEqual } = require('node:util');
const wrong = [];
for (const [name, code, entry, cases] of JSON.parse(require('node:fs').readFileSync(0, 'utf8'))) {
  const call = (args) => {
    try {
      return JSON.parse(JSON.stringify(new Function(code + '\\nreturn ' + entry + ';')()(...args)) ?? 'null');
    } catch (error) {
      return `raised ${error}`;
    }
  };
  for (const [args, expected] of cases) {
    const got = call(args);
    if (!isDeepStrictEqual(got, expected)) { wrong.push([name, args, expected, got]); break; }
  }
}
console.log(JSON.stringify(wrong));
"""
PROGRAMS = {
    Language.PYTHON: [sys.executable, "-c", PYTHON],
    Language.JAVASCRIPT: ["node", "-e", JAVASCRIPT],
}


def wrong(tasks: Sequence[Task], language: Language) -> list[list[object]]:
    """What the references of one language get wrong: task, arguments, expected, returned."""
    shown = [
        (task.id, task.reference, task.entry_point, task.tests.cases)
        for task in tasks
        if task.language is language and isinstance(task.tests, Cases)
    ]
    done = subprocess.run(
        PROGRAMS[language], input=msgspec.json.encode(shown), capture_output=True, check=True, timeout=250
    )
    found: list[list[object]] = json.loads(done.stdout)
    return found
