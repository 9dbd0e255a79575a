"""Classics of matrices and intervals."""

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.classic import Classic

MATRICES = (
    Classic(
        level=2,
        sentence="Return the transpose of `matrix`: its columns become rows.",
        python="""
def transposed(matrix):
    return [list(column) for column in zip(*matrix)]
""",
        javascript="""
function transposed(matrix) {
  return matrix.length ? matrix[0].map((_, i) => matrix.map(row => row[i])) : [];
}
""",
        data=lambda r: (chance.matrix(r),),
        edges=(([],), ([[1]],), ([[1, 2, 3]],)),
    ),
    Classic(
        level=3,
        sentence="Return `matrix` rotated by a quarter turn clockwise.",
        python="""
def quarter_turn(matrix):
    return [list(column) for column in zip(*matrix[::-1])]
""",
        javascript="""
function quarterTurn(matrix) {
  return matrix.length ? matrix[0].map((_, i) => matrix.map(row => row[i]).reverse()) : [];
}
""",
        data=lambda r: (chance.matrix(r),),
        edges=(([],), ([[7]],), ([[1, 2], [3, 4]],)),
    ),
    Classic(
        level=1,
        sentence="Return `matrix` with every number multiplied by $k.",
        python="""
def scaled(matrix):
    return [[cell * $k for cell in row] for row in matrix]
""",
        javascript="""
function scaled(matrix) {
  return matrix.map(row => row.map(cell => cell * $k));
}
""",
        data=lambda r: (chance.matrix(r),),
        edges=(([],), ([[0]],), ([[1, -1]],)),
        constants={"k": tuple(range(2, 20))},
    ),
    Classic(
        level=2,
        sentence="Return true if the square `matrix` is symmetric: the number in row i and column j always equals that in row j and column i.",
        python="""
def symmetric(matrix):
    return all(matrix[i][j] == matrix[j][i] for i in range(len(matrix)) for j in range(i))
""",
        javascript="""
function symmetric(matrix) {
  return matrix.every((row, i) => row.every((cell, j) => cell === matrix[j][i]));
}
""",
        data=lambda r: (chance.square(r) if r.random() < 0.5 else [[1, (k := r.randint(0, 9))], [k, 3]],),
        edges=(([],), ([[1, 2], [3, 1]],), ([[1, 2, 3], [2, 5, 6], [3, 6, 9]],)),
    ),
    Classic(
        level=3,
        sentence="Return the matrix product of `a` and `b`; `a` has as many columns as `b` has rows.",
        python="""
def product(a, b):
    return [[sum(p * q for p, q in zip(row, column)) for column in zip(*b)] for row in a]
""",
        javascript="""
function product(a, b) {
  return a.map(row => b[0].map((_, j) => row.reduce((sum, p, k) => sum + p * b[k][j], 0)));
}
""",
        data=lambda r: (chance.matrix(r, 0, k := r.randint(1, 3)), chance.matrix(r, k)),
        edges=(([[2]], [[3]]), ([[1, 0], [0, 1]], [[4, 5], [6, 7]]), ([[1, 2]], [[3], [4]])),
    ),
    Classic(
        level=2,
        sentence="Return the list of the largest numbers of the columns of `matrix`, from left to right.",
        python="""
def column_peaks(matrix):
    return [max(column) for column in zip(*matrix)]
""",
        javascript="""
function columnPeaks(matrix) {
  return matrix.length ? matrix[0].map((_, i) => Math.max(...matrix.map(row => row[i]))) : [];
}
""",
        data=lambda r: (chance.matrix(r),),
        edges=(([],), ([[3]],), ([[-1, -2], [-3, 0]],)),
    ),
    Classic(
        level=3,
        sentence="Return the sum of the numbers on the border of `matrix`: its first and last row and column, each number once.",
        python="""
def border_sum(matrix):
    last = len(matrix) - 1
    return sum(
        cell
        for i, row in enumerate(matrix)
        for j, cell in enumerate(row)
        if i in (0, last) or j in (0, len(row) - 1)
    )
""",
        javascript="""
function borderSum(matrix) {
  let sum = 0;
  matrix.forEach((row, i) => row.forEach((cell, j) => {
    if (i === 0 || j === 0 || i === matrix.length - 1 || j === row.length - 1) sum += cell;
  }));
  return sum;
}
""",
        data=lambda r: (chance.matrix(r),),
        edges=(([],), ([[4]],), ([[1, 1, 1], [1, 9, 1], [1, 1, 1]],)),
    ),
)

INTERVALS = (
    Classic(
        level=3,
        sentence="Merge those of `intervals`, pairs of start and end, that overlap or touch, and return the merged pairs in ascending order.",
        python="""
def merged(intervals):
    result = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result
""",
        javascript="""
function merged(intervals) {
  const result = [];
  for (const [start, end] of [...intervals].sort((p, q) => p[0] - q[0] || p[1] - q[1])) {
    const last = result[result.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else result.push([start, end]);
  }
  return result;
}
""",
        data=lambda r: (chance.intervals(r),),
        edges=(([],), ([[1, 2], [2, 3]],), ([[1, 9], [2, 3], [11, 12]],)),
    ),
    Classic(
        level=2,
        sentence="Return true if the intervals `a` and `b`, pairs of start and end, have more than a single point in common.",
        python="""
def overlapping(a, b):
    return max(a[0], b[0]) < min(a[1], b[1])
""",
        javascript="""
function overlapping(a, b) {
  return Math.max(a[0], b[0]) < Math.min(a[1], b[1]);
}
""",
        data=lambda r: (chance.intervals(r, 1)[0], chance.intervals(r, 1)[0]),
        edges=(([1, 2], [2, 3]), ([1, 9], [3, 4]), ([5, 6], [1, 2])),
    ),
    Classic(
        level=2,
        sentence="Return how many of `intervals`, pairs of start and end, contain the number `point`; both ends belong to an interval.",
        python="""
def containing(intervals, point):
    return sum(start <= point <= end for start, end in intervals)
""",
        javascript="""
function containing(intervals, point) {
  return intervals.filter(([start, end]) => start <= point && point <= end).length;
}
""",
        data=lambda r: (chance.intervals(r), r.randint(0, 20)),
        edges=(([], 1), ([[1, 2]], 2), ([[1, 2], [0, 1]], 1)),
    ),
    Classic(
        level=1,
        sentence="Return the list of `intervals`, pairs of start and end, each moved up by $k: $k is added to its start and its end.",
        python="""
def moved(intervals):
    return [[start + $k, end + $k] for start, end in intervals]
""",
        javascript="""
function moved(intervals) {
  return intervals.map(([start, end]) => [start + $k, end + $k]);
}
""",
        data=lambda r: (chance.intervals(r),),
        edges=(([],), ([[0, 0]],), ([[-5, 5]],)),
        constants={"k": tuple(range(1, 31))},
    ),
    Classic(
        level=3,
        sentence="Return the number of whole numbers that lie in at least one of `intervals`, pairs of start and end; both ends belong to an interval.",
        python="""
def covered(intervals):
    return len({n for start, end in intervals for n in range(start, end + 1)})
""",
        javascript="""
function covered(intervals) {
  const points = new Set();
  for (const [start, end] of intervals) for (let n = start; n <= end; n += 1) points.add(n);
  return points.size;
}
""",
        data=lambda r: (chance.intervals(r),),
        edges=(([],), ([[3, 3]],), ([[1, 5], [2, 3], [5, 6]],)),
    ),
    Classic(
        level=3,
        sentence="Return the list of the common parts, pairs of start and end, that the interval `window` has with each of `intervals`; leave out those that have none or only a single point.",
        python="""
def clipped(intervals, window):
    parts = [[max(start, window[0]), min(end, window[1])] for start, end in intervals]
    return [part for part in parts if part[0] < part[1]]
""",
        javascript="""
function clipped(intervals, window) {
  return intervals
    .map(([start, end]) => [Math.max(start, window[0]), Math.min(end, window[1])])
    .filter(([start, end]) => start < end);
}
""",
        data=lambda r: (chance.intervals(r), chance.intervals(r, 1)[0]),
        edges=(([], [0, 1]), ([[1, 2]], [2, 3]), ([[0, 9]], [3, 4])),
    ),
)
