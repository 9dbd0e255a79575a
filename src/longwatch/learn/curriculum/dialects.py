"""The table of languages that problems are put in beside Python and JavaScript. Data only.

Their tests stand in one file with the answer (docs/adr/0008): literals, and a comparison of each result by value, as our
own process compares elsewhere. Whole and broken numbers are equal by value, truth values equal only truth values, lists
only lists. What is filled in is marked with `@`.
"""

import math
from collections.abc import Mapping
from string import Template as Text

import msgspec

from longwatch.learn.curriculum.literals import Literals
from longwatch.learn.tasks import Language


class Filled(Text):
    """A text with `@name` where something is filled in: `$` means something else in most of these languages."""

    delimiter = "@"


class Types(msgspec.Struct, frozen=True, kw_only=True):
    """How a language names the kinds of values of `shapes`; a problem with a kind that has no name is left out."""

    names: Mapping[str, str]
    list_of: str
    dict_of: str


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a problem is put and tested in one language."""

    literals: Literals
    camel: bool = False
    """Names are `camelCase`, not `snake_case`."""
    sigil: str = ""
    """What a parameter's name begins with in code."""
    reserved: frozenset[str] = frozenset()
    """Words of the language that our parameters have as names; an underscore makes names of them."""
    types: Types | None = None
    like: Language | None = None
    """Its references are those of this language, with types."""
    head: str
    """What a student is shown, and what its function begins with: `@name`, `@parameters`, `@returns`."""
    parameter: str = "@name"
    opening: str = ""
    """What stands between a head and the body."""
    before: str = ""
    """What stands before the head in the file."""
    check: str
    """One comparison: `@arguments`, `@expected`."""
    tests: str
    """What stands after the answer: `@name`, `@checks`."""


# Its comparison calls nothing that an answer can put something else in the place of.
_TYPESCRIPT = """
declare var require: any;
function longwatchSame(found: any, wanted: any): boolean {
  if (wanted === null || typeof wanted !== 'object') return found === wanted;
  if (found === null || typeof found !== 'object' || found.length !== wanted.length) return false;
  if (found.constructor !== wanted.constructor && found.constructor !== undefined) return false;
  let more = 0;
  for (const key in wanted) {
    if (!(key in found) || !longwatchSame(found[key], wanted[key])) return false;
    more -= 1;
  }
  for (const key in found) more += 1;
  return more === 0;
}
function longwatchTest() {
  const candidate: any = @name;
  const check = (found: any, wanted: any) => {
    if (!longwatchSame(found, wanted)) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
  };
@checks
}
longwatchTest();
"""
_RUBY = """
require 'test/unit'
class TestLongwatch < Test::Unit::TestCase
  def test_longwatch
    candidate = method(:@name)
@checks
  end
end
"""
_PHP = """
function longwatch_same($found, $wanted) {
    if (is_array($wanted)) {
        if (!is_array($found) || count($found) !== count($wanted) || array_is_list($found) !== array_is_list($wanted)) {
            return false;
        }
        foreach ($wanted as $key => $part) {
            if (!array_key_exists($key, $found) || !longwatch_same($found[$key], $part)) {
                return false;
            }
        }
        return true;
    }
    $numbers = (is_int($found) || is_float($found)) && (is_int($wanted) || is_float($wanted));
    return $numbers ? $found == $wanted : $found === $wanted;
}
function longwatch_check($found, $wanted) {
    if (!longwatch_same($found, $wanted)) {
        throw new Exception(json_encode($found) . ' is not ' . json_encode($wanted));
    }
}
function longwatch_test() {
@checks
}
longwatch_test();
"""
_LUA = """
lu = require('luaunit')
function test_longwatch()
    local candidate = @name
@checks
end
os.exit(lu.LuaUnit.run())
"""

DIALECTS: Mapping[Language, Dialect] = {
    Language.TYPESCRIPT: Dialect(
        # Every object has both already.
        literals=Literals(null="null", largest=2**53, unusual_keys=frozenset({"__proto__", "constructor"})),
        camel=True,
        types=Types(
            names={
                "null": "null",
                "bool": "boolean",
                "int": "number",
                "float": "number",
                "text": "string",
                "nothing": "any",
                "mixed": "any",
            },
            list_of="{}[]",
            dict_of="{{[key: string]: {}}}",
        ),
        like=Language.JAVASCRIPT,
        head="function @name(@parameters): @returns",
        parameter="@name: @type",
        opening=" {",
        check="  check(candidate(@arguments), @expected);",
        tests=_TYPESCRIPT,
    ),
    Language.RUBY: Dialect(
        literals=Literals(null="nil", pair="{} => {}", escapes={"#": "\\#"}, largest=math.inf),
        reserved=frozenset({"end"}),
        head="def @name(@parameters)",
        check="    assert_equal(@expected, candidate.call(@arguments))",
        tests=_RUBY,
    ),
    Language.PHP: Dialect(
        literals=Literals(
            null="null",
            dict_in=("[", "]"),
            pair="{} => {}",
            escapes={"$": "\\$"},
            bytewise=True,
            lists_as_keys=True,
        ),
        camel=True,
        sigil="$",
        head="function @name(@parameters)",
        opening=" {",
        before="<?php\n",
        check="    longwatch_check(@name(@arguments), @expected);",
        tests=_PHP,
    ),
    Language.LUA: Dialect(
        literals=Literals(
            null="nil",
            list_in=("{", "}"),
            pair="[{}] = {}",
            bytewise=True,
            holes=False,
        ),
        reserved=frozenset({"end", "table"}),
        head="local function @name(@parameters)",
        check="    lu.assertEquals(candidate(@arguments), @expected)",
        tests=_LUA,
    ),
}
