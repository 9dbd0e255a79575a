"""Classics of lists, numbers, dates and recursion."""

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.classic import Classic

LISTS = (
    Classic(
        level=1,
        sentence="Return the list `numbers` rotated to the left by $k places: the first $k move to the end.",
        python="""
def rotate_left(numbers):
    k = $k % len(numbers) if numbers else 0
    return numbers[k:] + numbers[:k]
""",
        javascript="""
function rotateLeft(numbers) {
  const k = numbers.length ? $k % numbers.length : 0;
  return [...numbers.slice(k), ...numbers.slice(0, k)];
}
""",
        data=lambda r: ([r.randint(0, 9) for _ in range(r.randint(5, 8))],),
        edges=(([],), ([1],), ([1, 2],)),
        constants={"k": (1, 2, 3, 4)},
    ),
    Classic(
        level=2,
        sentence="Cut the list `numbers` into pieces of $k items each, the last one perhaps shorter, and return the list of the pieces.",
        python="""
def cut_into_pieces(numbers):
    return [numbers[i:i + $k] for i in range(0, len(numbers), $k)]
""",
        javascript="""
function cutIntoPieces(numbers) {
  const pieces = [];
  for (let i = 0; i < numbers.length; i += $k) pieces.push(numbers.slice(i, i + $k));
  return pieces;
}
""",
        data=lambda r: (chance.numbers(r),),
        edges=(([],), ([1],), ([1, 2, 3, 4, 5, 6],)),
        constants={"k": (2, 3, 4, 5)},
    ),
    Classic(
        level=2,
        sentence="Return `numbers` without repeated values: only the first occurrence of each stays, in the same order.",
        python="""
def without_repeats(numbers):
    return list(dict.fromkeys(numbers))
""",
        javascript="""
function withoutRepeats(numbers) {
  return [...new Set(numbers)];
}
""",
        data=lambda r: (chance.numbers(r, 0, 4),),
        edges=(([],), ([1, 1],), ([3, 1, 3, 2],)),
    ),
    Classic(
        level=3,
        sentence="Return the length of the longest run of neighbours in `numbers` in which each number is greater than the one before; 0 for the empty list.",
        python="""
def longest_rise(numbers):
    best = length = 0
    for i, number in enumerate(numbers):
        length = length + 1 if i and number > numbers[i - 1] else 1
        best = max(best, length)
    return best
""",
        javascript="""
function longestRise(numbers) {
  let best = 0;
  let length = 0;
  numbers.forEach((number, i) => {
    length = i && number > numbers[i - 1] ? length + 1 : 1;
    best = Math.max(best, length);
  });
  return best;
}
""",
        data=lambda r: (chance.numbers(r),),
        edges=(([],), ([1],), ([1, 2, 2, 3, 4],)),
    ),
)

NUMBERS = (
    Classic(
        level=2,
        sentence="Return true if the whole number `n` is a prime number.",
        python="""
def prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))
""",
        javascript="""
function prime(n) {
  for (let d = 2; d * d <= n; d += 1) if (n % d === 0) return false;
  return n > 1;
}
""",
        data=lambda r: (r.choice((r.randint(2, 200), 7, 97, 91, 89)),),
        edges=((0,), (1,), (2,), (49,)),
    ),
    Classic(
        level=1,
        sentence="Return `n`, but $k if it is smaller and $m if it is greater.",
        python="""
def keep_within(n):
    return max($k, min(n, $m))
""",
        javascript="""
function keepWithin(n) {
  return Math.max($k, Math.min(n, $m));
}
""",
        data=lambda r: (r.randint(-15, 30),),
        edges=((-100,), (100,), (8,)),
        constants={"k": tuple(range(-5, 5)), "m": tuple(range(10, 20))},
    ),
    Classic(
        level=2,
        sentence="Return the whole number `n`, which is not negative, written in base $k as a string.",
        python="""
def in_base(n):
    digits = ""
    while n:
        digits = str(n % $k) + digits
        n //= $k
    return digits or "0"
""",
        javascript="""
function inBase(n) {
  return n.toString($k);
}
""",
        data=lambda r: (r.randint(2, 300),),
        edges=((0,), (1,), (2,)),
        constants={"k": (2, 3, 4, 5, 6, 7, 8, 9)},
    ),
    Classic(
        level=3,
        sentence="Start with the positive whole number `n`; halve it if it is even, else multiply it by 3 and add 1. Return the number of steps until it is 1.",
        python="""
def steps_to_one(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
""",
        javascript="""
function stepsToOne(n) {
  let steps = 0;
  while (n !== 1) {
    n = n % 2 === 0 ? n / 2 : 3 * n + 1;
    steps += 1;
  }
  return steps;
}
""",
        data=lambda r: (r.randint(2, 60),),
        edges=((1,), (2,), (27,)),
    ),
)

DATES = (
    Classic(
        level=2,
        sentence="Return true if the year `year` is a leap year in the Gregorian calendar.",
        python="""
def leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
""",
        javascript="""
function leap(year) {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}
""",
        data=lambda r: (r.randint(1890, 2100),),
        edges=((1900,), (2000,), (2024,), (2023,)),
    ),
    Classic(
        level=3,
        sentence="Return the number of days from the date `start` to the date `end`, both strings such as 2024-03-09; negative if `end` is earlier.",
        python="""
from datetime import date

def days_between(start, end):
    return (date.fromisoformat(end) - date.fromisoformat(start)).days
""",
        javascript="""
function daysBetween(start, end) {
  return (Date.parse(end) - Date.parse(start)) / 86400000;
}
""",
        data=lambda r: (chance.day(r, 800), chance.day(r, 800)),
        edges=(("2000-02-28", "2000-03-01"), ("2023-12-31", "2024-01-01"), ("2024-05-05", "2024-05-05")),
    ),
    Classic(
        level=3,
        sentence="Return the date that lies $k days after `date`; both are strings such as 2024-03-09.",
        python="""
from datetime import date as Date, timedelta

def days_later(date):
    return (Date.fromisoformat(date) + timedelta(days=$k)).isoformat()
""",
        javascript="""
function daysLater(date) {
  return new Date(Date.parse(date) + $k * 86400000).toISOString().slice(0, 10);
}
""",
        data=lambda r: (chance.day(r),),
        edges=(("2000-02-28",), ("2023-02-28",), ("1999-12-31",)),
        constants={"k": tuple(range(1, 61))},
    ),
    Classic(
        level=1,
        sentence='Turn the date `date`, such as "2024-03-09", into the form "09.03.2024".',
        python="""
def turned_date(date):
    year, month, day = date.split("-")
    return f"{day}.{month}.{year}"
""",
        javascript="""
function turnedDate(date) {
  return date.split('-').reverse().join('.');
}
""",
        data=lambda r: (chance.day(r),),
        edges=(("2000-01-01",), ("1999-12-31",)),
    ),
    Classic(
        level=2,
        sentence='Return the quarter of the year, from 1 to 4, of the date `date`, a string such as "2024-03-09".',
        python="""
def quarter_of(date):
    return (int(date[5:7]) + 2) // 3
""",
        javascript="""
function quarterOf(date) {
  return Math.ceil(Number(date.slice(5, 7)) / 3);
}
""",
        data=lambda r: (chance.day(r),),
        edges=(("2000-01-01",), ("1999-12-31",), ("2024-03-31",), ("2024-04-01",)),
    ),
    Classic(
        level=3,
        sentence='Return the time that is $k minutes after `time`, a string such as "09:45"; after "23:59" comes "00:00".',
        python="""
def minutes_later(time):
    hours, minutes = time.split(":")
    total = (int(hours) * 60 + int(minutes) + $k) % 1440
    return f"{total // 60:02d}:{total % 60:02d}"
""",
        javascript="""
function minutesLater(time) {
  const [hours, minutes] = time.split(':').map(Number);
  const total = (hours * 60 + minutes + $k) % 1440;
  return [Math.floor(total / 60), total % 60].map(part => String(part).padStart(2, '0')).join(':');
}
""",
        data=lambda r: (f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}",),
        edges=(("00:00",), ("23:59",), ("09:05",)),
        constants={"k": tuple(range(5, 200, 5))},
    ),
    Classic(
        level=2,
        sentence="Return the list of those of `dates`, strings such as 2024-03-09, that lie in the month `month`, a number from 1 to 12.",
        python="""
def in_month(dates, month):
    return [date for date in dates if int(date[5:7]) == month]
""",
        javascript="""
function inMonth(dates, month) {
  return dates.filter(date => Number(date.slice(5, 7)) === month);
}
""",
        data=lambda r: (dates := chance.days(r), int(r.choice(dates)[5:7])),
        edges=(([], 1), (["2000-10-01"], 1), (["2000-01-01", "2001-01-31", "2001-12-01"], 1)),
    ),
)

RECURSION = (
    Classic(
        level=2,
        sentence="Return how deeply the lists in `tree` are nested: a list of numbers alone has depth 1.",
        python="""
def depth(tree):
    return 1 + max((depth(part) for part in tree if isinstance(part, list)), default=0)
""",
        javascript="""
function depth(tree) {
  return 1 + Math.max(0, ...tree.filter(Array.isArray).map(depth));
}
""",
        data=lambda r: (chance.nested(r, 4),),
        edges=(([],), ([[]],), ([1, [2, [3, [4]]]],)),
    ),
    Classic(
        level=2,
        sentence="A sequence starts with 0 and $k, and each further number is the sum of the two before it. Return the number at position `n`, counted from 0.",
        python="""
def sequence(n):
    if n < 2:
        return [0, $k][n]
    return sequence(n - 1) + sequence(n - 2)
""",
        javascript="""
function sequence(n) {
  return n < 2 ? [0, $k][n] : sequence(n - 1) + sequence(n - 2);
}
""",
        data=lambda r: (r.randint(2, 15),),
        edges=((0,), (1,), (2,), (16,)),
        constants={"k": tuple(range(2, 12))},
    ),
    Classic(
        level=1,
        sentence="Return the greatest common divisor of the positive whole numbers `a` and `b`.",
        python="""
def common_divisor(a, b):
    return a if b == 0 else common_divisor(b, a % b)
""",
        javascript="""
function commonDivisor(a, b) {
  return b === 0 ? a : commonDivisor(b, a % b);
}
""",
        data=lambda r: (r.randint(1, 12) * (k := r.randint(1, 9)), r.randint(1, 12) * k),
        edges=((1, 1), (12, 18), (17, 4), (5, 100)),
    ),
    Classic(
        level=3,
        sentence="Return the list of all strings of length `n` made of the characters 0 and 1, in ascending order.",
        python="""
def bit_strings(n):
    if n == 0:
        return [""]
    return [bit + rest for bit in "01" for rest in bit_strings(n - 1)]
""",
        javascript="""
function bitStrings(n) {
  if (n === 0) return [''];
  return ['0', '1'].flatMap(bit => bitStrings(n - 1).map(rest => bit + rest));
}
""",
        data=lambda r: (r.randint(1, 5),),
        edges=((0,), (1,), (2,), (3,), (4,)),
    ),
    Classic(
        level=3,
        sentence="Return in how many ways one can climb `n` stairs, taking 1 or $k of them at a time; there is one way to climb 0 stairs.",
        python="""
def ways_up(n):
    if n < 0:
        return 0
    return 1 if n == 0 else ways_up(n - 1) + ways_up(n - $k)
""",
        javascript="""
function waysUp(n) {
  if (n < 0) return 0;
  return n === 0 ? 1 : waysUp(n - 1) + waysUp(n - $k);
}
""",
        data=lambda r: (r.randint(2, 14),),
        edges=((0,), (1,), (3,), (15,)),
        constants={"k": (2, 3, 4, 5)},
    ),
    Classic(
        level=2,
        sentence="Return the sum of all numbers in `tree`, a list of numbers and of lists of the same kind, where each number is multiplied by the depth of its list; the outer list has depth 1.",
        python="""
def weighted_sum(tree):
    def weigh(node, level):
        return sum(weigh(part, level + 1) if isinstance(part, list) else part * level for part in node)

    return weigh(tree, 1)
""",
        javascript="""
function weightedSum(tree) {
  const weigh = (node, level) =>
    node.reduce((sum, part) => sum + (Array.isArray(part) ? weigh(part, level + 1) : part * level), 0);
  return weigh(tree, 1);
}
""",
        data=lambda r: (chance.nested(r),),
        edges=(([],), ([[[]]],), ([1, [2, [3]]],)),
    ),
)
