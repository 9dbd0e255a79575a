"""Classics of text tables."""

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.classic import Classic

TABLES = (
    Classic(
        level=3,
        sentence='`table` has lines such as "ann,12,Oslo". Return a dictionary from each city in the third column to the sum of its amounts in the second.',
        python="""
def sum_by_city(table):
    totals = {}
    for line in table.splitlines():
        name, amount, city = line.split(",")
        totals[city] = totals.get(city, 0) + int(amount)
    return totals
""",
        javascript="""
function sumByCity(table) {
  const totals = {};
  for (const line of table.split('\\n')) {
    const [name, amount, city] = line.split(',');
    totals[city] = (totals[city] || 0) + Number(amount);
  }
  return totals;
}
""",
        data=lambda r: (chance.table(r),),
        edges=(("a,1,X",), ("a,1,X\nb,2,X",), ("a,-1,Orléans\nb,1,Y",)),
    ),
    Classic(
        level=2,
        sentence='`table` has lines such as "ann,12,Oslo". Return the list of the names in the first column of the lines whose amount in the second is at least $k.',
        python="""
def names_with_at_least(table):
    rows = [line.split(",") for line in table.splitlines()]
    return [row[0] for row in rows if int(row[1]) >= $k]
""",
        javascript="""
function namesWithAtLeast(table) {
  const rows = table.split('\\n').map(line => line.split(','));
  return rows.filter(row => Number(row[1]) >= $k).map(row => row[0]);
}
""",
        data=lambda r: (chance.table(r),),
        edges=(("a,0,X",), ("a,30,X\nb,-9,Y",), ("é,14,X\nb,15,Y\nc,3,Z",)),
        constants={"k": tuple(range(20))},
    ),
    Classic(
        level=2,
        sentence='`table` has lines such as "ann,12,Oslo". Return the name in the line with the greatest amount; the first such line if there are several.',
        python="""
def name_of_greatest(table):
    rows = [line.split(",") for line in table.splitlines()]
    return max(rows, key=lambda row: int(row[1]))[0]
""",
        javascript="""
function nameOfGreatest(table) {
  const rows = table.split('\\n').map(line => line.split(','));
  return rows.reduce((best, row) => (Number(row[1]) > Number(best[1]) ? row : best))[0];
}
""",
        data=lambda r: (chance.table(r),),
        edges=(("a,0,X",), ("a,3,X\nb,3,Y",), ("a,-3,X\nb,-2,Y\nc,-9,Z",)),
    ),
    Classic(
        level=1,
        sentence="Return the list of the fields in column `column` (counted from 0) of `rows`, a list of lists.",
        python="""
def pick_column(rows, column):
    return [row[column] for row in rows]
""",
        javascript="""
function pickColumn(rows, column) {
  return rows.map(row => row[column]);
}
""",
        data=lambda r: (
            [[name, r.randint(0, 9), r.choice("xyz")] for name in chance.names(r)],
            r.randint(0, 2),
        ),
        edges=(([], 0), ([["a", "b"]], 1), ([[1], [None], ["é"]], 0)),
    ),
    Classic(
        level=3,
        sentence="Return `rows`, a list of lists of strings, as text: the fields of each row joined by $k, each field filled up with spaces on the right to the width of the longest field of its column, and the rows joined by line breaks.",
        python="""
def align_columns(rows):
    widths = [max(len(field) for field in column) for column in zip(*rows)]
    lines = [$k.join(field.ljust(width) for field, width in zip(row, widths)) for row in rows]
    return "\\n".join(lines)
""",
        javascript="""
function alignColumns(rows) {
  const widths = rows.length ? rows[0].map((_, i) => Math.max(...rows.map(row => row[i].length))) : [];
  return rows.map(row => row.map((field, i) => field.padEnd(widths[i])).join($k)).join('\\n');
}
""",
        data=lambda r: ([chance.words(r, 1) + chance.words(r, 1) for _ in range(r.randint(1, 4))],),
        edges=(([],), ([["a"]],), ([["", "bb"], ["é", ""]],)),
        constants={"k": ("|", " | ", ", ", ";")},
    ),
    Classic(
        level=2,
        sentence="The first line of `table` holds the names of the columns and each other line a row; fields are separated by $k. Return the rows as a list of dictionaries from column name to field.",
        python="""
def read_records(table):
    head, *lines = table.splitlines()
    names = head.split($k)
    return [dict(zip(names, line.split($k))) for line in lines]
""",
        javascript="""
function readRecords(table) {
  const [head, ...lines] = table.split('\\n');
  const names = head.split($k);
  return lines.map(line => Object.fromEntries(line.split($k).map((field, i) => [names[i], field])));
}
""",
        data=lambda r: ("name,amount,city\n" + chance.table(r),),
        edges=(("a,b",), ("a\n1\n2",), ("x;y\n1;2",)),
        constants={"k": (",",)},
    ),
)
