"""Items that have to be made first: of dates, texts, nested lists, matrices, intervals, graphs, tables, machines."""

from random import Random

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.pipeline import Items
from longwatch.learn.curriculum.template import Arguments

_UNSIGNED = frozenset({"positive", "negative", "absolute"})
_LEAVES_PYTHON = """
def leaves(node):
    for part in node:
        if isinstance(part, list):
            yield from leaves(part)
        else:
            yield part
""".lstrip("\n")
_POSITIONS_PYTHON = """
position = 0
positions = []
for move in moves:
    position += 1 if move == "up" else -1
    positions.append(position)
""".lstrip("\n")
_POSITIONS_JAVASCRIPT = """
let position = 0;
const positions = [];
for (const move of moves) {
  position += move === 'up' ? 1 : -1;
  positions.push(position);
}
""".lstrip("\n")


def _moves(random: Random) -> Arguments:
    return ([random.choice(("up", "up", "up", "down")) for _ in range(random.randint(2, 24))],)


def _graph(random: Random) -> Arguments:
    nodes = chance.names(random)
    return ({node: random.sample(nodes, random.randint(0, len(nodes))) for node in nodes},)


def _amounts(random: Random) -> Arguments:
    return (",".join(str(number) for number in chance.numbers(random)),)


def _weights(random: Random) -> Arguments:
    return ([[a, b, random.randint(1, 20)] for a, b in chance.edges(random)],)


ITEMS = (
    Items(
        family="dates",
        name="years",
        cost=1,
        kind="number",
        noun="years",
        where="of `dates`",
        about="`dates` is a list of strings such as 2024-03-09.",
        parameters=("dates",),
        item="year",
        python="[int(date[:4]) for date in dates]",
        javascript="dates.map(date => Number(date.slice(0, 4)))",
        data=lambda random: (chance.days(random),),
        edges=(([],), (["2000-02-29"],), (["1999-12-31", "2004-05-06", "1999-01-01"],)),
        without=_UNSIGNED | {"nonzero", "above", "below", "at_least", "other", "cap", "cube"},
    ),
    Items(
        family="dates",
        name="days",
        cost=1,
        kind="number",
        noun="days of the month",
        where="of `dates`",
        about="`dates` is a list of strings such as 2024-03-09.",
        parameters=("dates",),
        item="day",
        python="[int(date[8:]) for date in dates]",
        javascript="dates.map(date => Number(date.slice(8)))",
        data=lambda random: (chance.days(random),),
        edges=(([],), (["2000-02-29"],), (["1999-12-31", "2004-05-06", "1999-01-12"],)),
        without=_UNSIGNED | {"nonzero"},
    ),
    Items(
        family="parsing",
        name="comma_numbers",
        cost=1,
        kind="number",
        noun="whole numbers",
        where="in `text`",
        about="The numbers in `text` are separated by commas.",
        parameters=("text",),
        item="number",
        python='[int(part) for part in text.split(",")]',
        javascript="text.split(',').map(Number)",
        data=_amounts,
        edges=(("0",), ("-7",), ("4,15,-2,4,9",)),
    ),
    Items(
        family="parsing",
        name="settings",
        cost=2,
        kind="number",
        noun="numbers after the equals signs",
        where="in `text`",
        about='`text` looks like "a=5;b=-2".',
        parameters=("text",),
        item="value",
        python='[int(part.split("=")[1]) for part in text.split(";")]',
        javascript="text.split(';').map(part => Number(part.split('=')[1]))",
        data=lambda random: (";".join(f"{name}={value}" for name, value in chance.scores(random).items()),),
        edges=(("a=0",), ("x=-12",), ("one=1;two=12;six=9;ten=12",)),
    ),
    Items(
        family="recursion",
        name="leaves",
        cost=1,
        kind="number",
        noun="numbers",
        where="in `tree`",
        about="`tree` is a list of numbers and of lists of the same kind; its numbers are taken from left to right.",
        parameters=("tree",),
        item="leaf",
        python="leaves(tree)",
        javascript="leaves(tree)",
        python_helper=_LEAVES_PYTHON,
        javascript_helper="const leaves = node => (Array.isArray(node) ? node.flatMap(leaves) : [node]);",
        data=lambda random: (chance.nested(random),),
        edges=(([],), ([[]],), ([[[4]], 12, [-3, [7, 7]]],)),
    ),
    Items(
        family="matrices",
        name="cells",
        cost=1,
        kind="number",
        noun="numbers",
        where="in `matrix`",
        about="`matrix` is a list of rows; its numbers are taken row by row.",
        parameters=("matrix",),
        item="cell",
        python="[cell for row in matrix for cell in row]",
        javascript="matrix.flat()",
        data=lambda random: (chance.matrix(random),),
        edges=(([],), ([[0]],), ([[3, -4], [10, 3]],)),
    ),
    Items(
        family="matrices",
        name="diagonal",
        cost=2,
        kind="number",
        noun="numbers",
        where="on the main diagonal of `matrix`",
        about="`matrix` is a square list of rows.",
        parameters=("matrix",),
        item="cell",
        python="[row[i] for i, row in enumerate(matrix)]",
        javascript="matrix.map((row, i) => row[i])",
        data=lambda random: (chance.square(random),),
        edges=(([],), ([[5]],), ([[8, 1, 1], [1, -7, 1], [1, 1, 12]],)),
    ),
    Items(
        family="matrices",
        name="row_sums",
        cost=1,
        kind="number",
        noun="sums of the rows",
        where="of `matrix`",
        about="`matrix` is a list of rows.",
        parameters=("matrix",),
        item="total",
        python="[sum(row) for row in matrix]",
        javascript="matrix.map(row => row.reduce((p, q) => p + q, 0))",
        data=lambda random: (chance.matrix(random),),
        edges=(([],), ([[0]],), ([[1, 2], [-5, 3], [10, 2]],)),
    ),
    Items(
        family="intervals",
        name="starts",
        cost=0,
        kind="number",
        noun="starts",
        where="of `intervals`",
        about="`intervals` is a list of pairs of start and end.",
        parameters=("intervals",),
        item="start",
        python="[start for start, end in intervals]",
        javascript="intervals.map(([start, end]) => start)",
        data=lambda random: (chance.intervals(random),),
        edges=(([],), ([[0, 1]],), ([[2, 9], [-4, 3], [12, 13], [2, 4]],)),
    ),
    Items(
        family="intervals",
        name="lengths",
        cost=1,
        kind="number",
        noun="lengths",
        where="of `intervals`",
        about="`intervals` is a list of pairs of start and end; a length is the end minus the start.",
        parameters=("intervals",),
        item="length",
        python="[end - start for start, end in intervals]",
        javascript="intervals.map(([start, end]) => end - start)",
        data=lambda random: (chance.intervals(random),),
        edges=(([],), ([[0, 0]],), ([[2, 9], [-4, 8], [12, 13]],)),
        without=_UNSIGNED,
    ),
    Items(
        family="graphs",
        name="degrees",
        cost=1,
        kind="number",
        noun="numbers of neighbours",
        where="of the nodes in `graph`",
        about="`graph` is a dictionary from each node to the list of its neighbours.",
        parameters=("graph",),
        item="degree",
        python="[len(neighbours) for neighbours in graph.values()]",
        javascript="Object.values(graph).map(neighbours => neighbours.length)",
        data=_graph,
        edges=(({},), ({"a": []},), ({"a": ["b", "c"], "b": ["a"], "c": ["a", "b", "c"]},)),
        without=_UNSIGNED | {"last_digit", "cap"},
    ),
    Items(
        family="graphs",
        name="weights",
        cost=0,
        kind="number",
        noun="weights",
        where="of `edges`",
        about="`edges` is a list of triples of node, node and weight.",
        parameters=("edges",),
        item="weight",
        python="[weight for a, b, weight in edges]",
        javascript="edges.map(([a, b, weight]) => weight)",
        data=_weights,
        edges=(([],), ([[0, 1, 9]],), ([[0, 1, 12], [1, 2, 4], [2, 3, 12], [3, 0, 15]],)),
        without=_UNSIGNED | {"nonzero"},
    ),
    Items(
        family="tables",
        name="amounts",
        cost=1,
        kind="number",
        noun="amounts",
        where="in the second column of `table`",
        about='The lines of `table` look like "ann,12,Oslo".',
        parameters=("table",),
        item="amount",
        python='[int(line.split(",")[1]) for line in table.splitlines()]',
        javascript="table.split('\\n').map(line => Number(line.split(',')[1]))",
        data=lambda random: (chance.table(random),),
        edges=(("ann,0,Oslo",), ("bob,-7,Rome\neve,14,Lima",), ("a,3,B\nc,12,D\ne,3,F",)),
    ),
    Items(
        family="tables",
        name="names",
        cost=1,
        kind="word",
        noun="names",
        where="in the first column of `table`",
        about='The lines of `table` look like "ann,12,Oslo".',
        parameters=("table",),
        item="name",
        python='[line.split(",")[0] for line in table.splitlines()]',
        javascript="table.split('\\n').map(line => line.split(',')[0])",
        data=lambda random: (chance.table(random),),
        edges=(("ann,0,Oslo",), ("Zoë,-7,Rome\ntess,14,Lima",), ("adam,3,B\nnina,12,D\nel,3,F",)),
        without=frozenset({"capital"}),
    ),
    Items(
        family="machines",
        name="positions",
        cost=1,
        kind="number",
        noun="positions",
        where="after each step of `moves`",
        about='The position starts at 0; "up" adds 1 to it and "down" subtracts 1.',
        parameters=("moves",),
        item="place",
        python="positions",
        javascript="positions",
        python_helper=_POSITIONS_PYTHON,
        javascript_helper=_POSITIONS_JAVASCRIPT,
        data=_moves,
        edges=(([],), (["down"],), (["up", "up", "up", "down", "up", "up", "up", "down"],)),
        without=frozenset({"last_digit"}),
    ),
)
