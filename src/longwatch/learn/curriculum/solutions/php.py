"""PHP: array functions around array functions. Its texts are bytes here: only those in ASCII are tested."""

from collections.abc import Mapping

from longwatch.learn.curriculum.solutions.solution import Solutions

_ITEMS: Mapping[str, str] = {
    "lists.numbers": "$numbers",
    "lists.steps": "array_map(fn($a, $b) => $b - $a, array_slice($numbers, 0, -1), array_slice($numbers, 1))",
    "lists.every_second": "array_values(array_filter($numbers, fn($i) => $i % 2 === 0, ARRAY_FILTER_USE_KEY))",
    "strings.letters": "preg_split('//', $text, -1, PREG_SPLIT_NO_EMPTY)",
    "strings.words": "$words",
    "strings.split": "explode(' ', $text)",
    "dictionaries.scores": "array_values($scores)",
    "dictionaries.names": "array_keys($scores)",
    "dictionaries.stock": "array_map(fn($pair) => $pair[0] * $pair[1], array_values($stock))",
    "numbers.up_to": "($n > 0 ? range(1, $n) : [])",
    "numbers.between": "($a <= $b ? range($a, $b) : [])",
    "numbers.digits": "array_map('intval', str_split((string) $n))",
    "numbers.divisors": "array_values(array_filter(range(1, $n), fn($d) => $n % $d === 0))",
    "dates.years": "array_map(fn($date) => (int) substr($date, 0, 4), $dates)",
    "dates.days": "array_map(fn($date) => (int) substr($date, 8), $dates)",
    "parsing.comma_numbers": "array_map('intval', explode(',', $text))",
    "parsing.settings": "array_map(fn($part) => (int) explode('=', $part)[1], explode(';', $text))",
    "recursion.leaves": "$leaves",
    "matrices.cells": "array_merge(...$matrix)",
    "matrices.diagonal": "array_map(fn($row, $i) => $row[$i], $matrix, array_keys($matrix))",
    "matrices.row_sums": "array_map('array_sum', $matrix)",
    "intervals.starts": "array_column($intervals, 0)",
    "intervals.lengths": "array_map(fn($pair) => $pair[1] - $pair[0], $intervals)",
    "graphs.degrees": "array_map('count', array_values($graph))",
    "graphs.weights": "array_column($edges, 2)",
    "tables.amounts": "array_map(fn($line) => (int) explode(',', $line)[1], explode(\"\\n\", $table))",
    "tables.names": "array_map(fn($line) => explode(',', $line)[0], explode(\"\\n\", $table))",
    "machines.positions": "$positions",
}
_HELPERS: Mapping[str, str] = {
    "recursion.leaves": """
$leaves = [];
array_walk_recursive($tree, function ($leaf) use (&$leaves) {
    $leaves[] = $leaf;
});
""",
    "machines.positions": """
$position = 0;
$positions = [];
foreach ($moves as $move) {
    $position += $move === 'up' ? 1 : -1;
    $positions[] = $position;
}
""",
}
_KEEPS: Mapping[str, str] = {
    "number.even": "@x % 2 === 0",
    "number.odd": "@x % 2 !== 0",
    "number.positive": "@x > 0",
    "number.negative": "@x < 0",
    "number.nonzero": "@x !== 0",
    "number.above": "@x > @k",
    "number.below": "@x < @k",
    "number.at_least": "@x >= @k",
    "number.multiple": "@x % @k === 0",
    "number.indivisible": "@x % @k !== 0",
    "number.other": "@x !== @k",
    "word.longer": "strlen(@x) > @k",
    "word.shorter": "strlen(@x) < @k",
    "word.starting": "str_starts_with(@x, @k)",
    "word.ending": "str_ends_with(@x, @k)",
    "word.containing": "str_contains(@x, @k)",
    "word.without": "!str_contains(@x, @k)",
    "word.even_length": "strlen(@x) % 2 === 0",
    "word.capital": "ctype_upper(substr(@x, 0, 1))",
    "character.vowels": "str_contains('aeiouAEIOU', @x)",
    "character.no_vowels": "!str_contains('aeiouAEIOU', @x)",
    "character.digits": "ctype_digit(@x)",
    "character.letters": "ctype_alpha(@x)",
    "character.capitals": "ctype_upper(@x)",
    "character.small": "ctype_lower(@x)",
    "character.no_space": "@x !== ' '",
    "character.except": "@x !== @k",
    "character.equal": "@x === @k",
}
_EACHES: Mapping[str, str] = {
    "number.square": "@x * @x",
    "number.cube": "@x ** 3",
    "number.negate": "-@x",
    "number.absolute": "abs(@x)",
    "number.last_digit": "abs(@x) % 10",
    "number.half": "(int) floor(@x / 2)",
    "number.times": "@x * @m",
    "number.plus": "@x + @m",
    "number.minus": "@x - @m",
    "number.cap": "min(@x, @m)",
    "word.length": "strlen(@x)",
    "word.upper": "strtoupper(@x)",
    "word.lower": "strtolower(@x)",
    "word.backwards": "strrev(@x)",
    "word.initial": "substr(@x, 0, 1)",
    "word.final": "substr(@x, -1)",
    "word.suffix": "@x . @m",
    "character.upper": "strtoupper(@x)",
    "character.lower": "strtolower(@x)",
    "character.repeat": "str_repeat(@x, @m)",
    "character.suffix": "@x . @m",
    "character.code": "ord(@x)",
}
_FINISHES: Mapping[str, str] = {
    "number.sum": "return array_sum(@a);",
    "number.count": "return count(@a);",
    "number.list": "return @a;",
    "number.max": "$items = @a;\nreturn $items ? max($items) : 0;",
    "number.min": "$items = @a;\nreturn $items ? min($items) : 0;",
    "number.sorted": "$items = @a;\nsort($items);\nreturn $items;",
    "number.reversed": "return array_reverse(@a);",
    "number.distinct": "return count(array_unique(@a));",
    "number.first": "$items = @a;\nreturn $items[0] ?? 0;",
    "number.last": "$items = @a;\nreturn $items ? end($items) : 0;",
    "text.count": "return count(@a);",
    "text.list": "return @a;",
    "text.joined": "return implode('', @a);",
    "text.dashed": "return implode('-', @a);",
    "text.sorted": "$items = @a;\nsort($items, SORT_STRING);\nreturn $items;",
    "text.reversed": "return array_reverse(@a);",
    "text.distinct": "return count(array_unique(@a));",
    "text.first": "$items = @a;\nreturn $items[0] ?? '';",
    "text.longest": """$longest = '';
foreach (@a as $item) {
    if (strlen($item) > strlen($longest)) {
        $longest = $item;
    }
}
return $longest;""",
}
SOLUTIONS = Solutions(
    classics="classics.php",
    items=_ITEMS,
    helpers=_HELPERS,
    keeps=_KEEPS,
    eaches=_EACHES,
    finishes=_FINISHES,
    kept="array_values(array_filter(@a, fn(@x) => @made))",
    made="array_map(fn(@x) => @made, @a)",
    indent="    ",
)
