"""Lua: a loop that gathers results, then another over them. Its texts are bytes, and its dictionaries have no order."""

from collections.abc import Mapping

from longwatch.learn.curriculum.solutions.solution import Loop, Solutions

_ITEMS: Mapping[str, str] = {
    "lists.numbers": "for _, @x in ipairs(numbers) do",
    "lists.steps": "for i = 2, #numbers do\n  local @x = numbers[i] - numbers[i - 1]",
    "lists.every_second": "for i = 1, #numbers, 2 do\n  local @x = numbers[i]",
    "strings.letters": 'for @x in text:gmatch(".") do',
    "strings.words": "for _, @x in ipairs(words) do",
    "strings.split": 'for @x in text:gmatch("[^ ]+") do',
    "dictionaries.scores": "for _, @x in pairs(scores) do",
    "dictionaries.names": "for @x in pairs(scores) do",
    "dictionaries.stock": "for _, pair in pairs(stock) do\n  local @x = pair[1] * pair[2]",
    "numbers.up_to": "for @x = 1, n do",
    "numbers.between": "for @x = a, b do",
    "numbers.digits": 'for char in tostring(n):gmatch(".") do\n  local @x = tonumber(char)',
    "numbers.divisors": "for _, @x in ipairs(divisors) do",
    "dates.years": "for _, date in ipairs(dates) do\n  local @x = tonumber(date:sub(1, 4))",
    "dates.days": "for _, date in ipairs(dates) do\n  local @x = tonumber(date:sub(9))",
    "parsing.comma_numbers": 'for part in text:gmatch("[^,]+") do\n  local @x = tonumber(part)',
    "parsing.settings": 'for part in text:gmatch("=([^;]+)") do\n  local @x = tonumber(part)',
    "recursion.leaves": "for _, @x in ipairs(leaves) do",
    "matrices.cells": "for _, @x in ipairs(cells) do",
    "matrices.diagonal": "for i, row in ipairs(matrix) do\n  local @x = row[i]",
    "matrices.row_sums": "for _, row in ipairs(matrix) do\n  local @x = 0\n  for _, cell in ipairs(row) do\n    @x = @x + cell\n  end",
    "intervals.starts": "for _, pair in ipairs(intervals) do\n  local @x = pair[1]",
    "intervals.lengths": "for _, pair in ipairs(intervals) do\n  local @x = pair[2] - pair[1]",
    "graphs.degrees": "for _, neighbours in pairs(graph) do\n  local @x = #neighbours",
    "graphs.weights": "for _, edge in ipairs(edges) do\n  local @x = edge[3]",
    "tables.amounts": 'for part in table_:gmatch("[^,\\n]+,([^,]+),") do\n  local @x = tonumber(part)',
    "tables.names": 'for @x in table_:gmatch("([^,\\n]+),[^\\n]+") do',
    "machines.positions": "for _, @x in ipairs(positions) do",
}
_HELPERS: Mapping[str, str] = {
    "numbers.divisors": """
local divisors = {}
for d = 1, n do
  if n % d == 0 then
    table.insert(divisors, d)
  end
end
""",
    "recursion.leaves": """
local leaves = {}
local function gather(node)
  for _, part in ipairs(node) do
    if type(part) == "table" then
      gather(part)
    else
      table.insert(leaves, part)
    end
  end
end
gather(tree)
""",
    "matrices.cells": """
local cells = {}
for _, row in ipairs(matrix) do
  for _, number in ipairs(row) do
    table.insert(cells, number)
  end
end
""",
    "machines.positions": """
local position = 0
local positions = {}
for _, move in ipairs(moves) do
  position = position + (move == "up" and 1 or -1)
  table.insert(positions, position)
end
""",
}
_KEEPS: Mapping[str, str] = {
    "number.even": "@x % 2 == 0",
    "number.odd": "@x % 2 ~= 0",
    "number.positive": "@x > 0",
    "number.negative": "@x < 0",
    "number.nonzero": "@x ~= 0",
    "number.above": "@x > @k",
    "number.below": "@x < @k",
    "number.at_least": "@x >= @k",
    "number.multiple": "@x % @k == 0",
    "number.indivisible": "@x % @k ~= 0",
    "number.other": "@x ~= @k",
    "word.longer": "#@x > @k",
    "word.shorter": "#@x < @k",
    "word.starting": "@x:sub(1, 1) == @k",
    "word.ending": "@x:sub(-1) == @k",
    "word.containing": "@x:find(@k, 1, true)",
    "word.without": "not @x:find(@k, 1, true)",
    "word.even_length": "#@x % 2 == 0",
    "word.capital": '@x:match("^%u")',
    "character.vowels": '("aeiouAEIOU"):find(@x, 1, true)',
    "character.no_vowels": 'not ("aeiouAEIOU"):find(@x, 1, true)',
    "character.digits": '@x:match("%d")',
    "character.letters": '@x:match("%a")',
    "character.capitals": '@x:match("%u")',
    "character.small": '@x:match("%l")',
    "character.no_space": '@x ~= " "',
    "character.except": "@x ~= @k",
    "character.equal": "@x == @k",
}
_EACHES: Mapping[str, str] = {
    "number.square": "@x * @x",
    "number.cube": "@x * @x * @x",
    "number.negate": "-@x",
    "number.absolute": "math.abs(@x)",
    "number.last_digit": "math.abs(@x) % 10",
    "number.half": "@x // 2",
    "number.times": "@x * @m",
    "number.plus": "@x + @m",
    "number.minus": "@x - @m",
    "number.cap": "math.min(@x, @m)",
    "word.length": "#@x",
    "word.upper": "@x:upper()",
    "word.lower": "@x:lower()",
    "word.backwards": "@x:reverse()",
    "word.initial": "@x:sub(1, 1)",
    "word.final": "@x:sub(-1)",
    "word.suffix": "@x .. @m",
    "character.upper": "@x:upper()",
    "character.lower": "@x:lower()",
    "character.repeat": "@x:rep(@m)",
    "character.suffix": "@x .. @m",
    "character.code": "@x:byte()",
}
_REVERSED = """local reversed = {}
for i = #@a, 1, -1 do
  table.insert(reversed, @a[i])
end
return reversed"""
_DISTINCT = """local seen = {}
local count = 0
for _, value in ipairs(@a) do
  if not seen[value] then
    seen[value] = true
    count = count + 1
  end
end
return count"""
_EXTREME = """local {0} = @a[1] or 0
for _, value in ipairs(@a) do
  {0} = math.{1}({0}, value)
end
return {0}"""
_FINISHES: Mapping[str, str] = {
    "number.sum": "local sum = 0\nfor _, value in ipairs(@a) do\n  sum = sum + value\nend\nreturn sum",
    "number.count": "return #@a",
    "number.list": "return @a",
    "number.max": _EXTREME.format("largest", "max"),
    "number.min": _EXTREME.format("smallest", "min"),
    "number.sorted": "table.sort(@a)\nreturn @a",
    "number.reversed": _REVERSED,
    "number.distinct": _DISTINCT,
    "number.first": "return @a[1] or 0",
    "number.last": "return @a[#@a] or 0",
    "text.count": "return #@a",
    "text.list": "return @a",
    "text.joined": "return table.concat(@a)",
    "text.dashed": 'return table.concat(@a, "-")',
    "text.sorted": "table.sort(@a)\nreturn @a",
    "text.reversed": _REVERSED,
    "text.distinct": _DISTINCT,
    "text.first": 'return @a[1] or ""',
    "text.longest": """local longest = ""
for _, value in ipairs(@a) do
  if #value > #longest then
    longest = value
  end
end
return longest""",
}
SOLUTIONS = Solutions(
    classics="classics.lua",
    items=_ITEMS,
    helpers=_HELPERS,
    keeps=_KEEPS,
    eaches=_EACHES,
    finishes=_FINISHES,
    loop=Loop(
        before="local results = {}",
        keep="if @kept then\n@line\nend",
        made="table.insert(results, @made)",
        end="end",
    ),
    unordered=frozenset(
        {"dictionaries.scores", "dictionaries.names", "dictionaries.stock", "graphs.degrees"}
    ),
    indent="  ",
)
