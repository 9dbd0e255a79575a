"""Classics of strings, dictionaries and parsing."""

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.classic import Classic

STRINGS = (
    Classic(
        level=1,
        sentence="Return true if `text` reads the same forwards and backwards, ignoring case.",
        python="""
def is_mirrored(text):
    lowered = text.lower()
    return lowered == lowered[::-1]
""",
        javascript="""
function isMirrored(text) {
  const lowered = text.toLowerCase();
  return lowered === [...lowered].reverse().join('');
}
""",
        data=lambda r: (r.choice(("Anna", "level", "river", "Noon", "abca", "été", "stone", "12321")),),
        edges=(("",), ("x",), ("Rotor",), ("ab",)),
    ),
    Classic(
        level=2,
        sentence="Move each lower-case letter from a to z in `text` forward by $k places in the alphabet, after z comes a again; leave other characters as they are. Return the new string.",
        python="""
def shift_letters(text):
    result = ""
    for char in text:
        if "a" <= char <= "z":
            result += chr((ord(char) - 97 + $k) % 26 + 97)
        else:
            result += char
    return result
""",
        javascript="""
function shiftLetters(text) {
  let result = '';
  for (const char of text) {
    if (char >= 'a' && char <= 'z') {
      result += String.fromCharCode((char.charCodeAt(0) - 97 + $k) % 26 + 97);
    } else {
      result += char;
    }
  }
  return result;
}
""",
        data=lambda r: (chance.sentence(r),),
        edges=(("",), ("xyz ABC",), ("é1",)),
        constants={"k": tuple(range(1, 26))},
    ),
    Classic(
        level=2,
        sentence="Return how often the most frequent character of `text` occurs; 0 for the empty string.",
        python="""
def highest_count(text):
    return max((text.count(char) for char in text), default=0)
""",
        javascript="""
function highestCount(text) {
  const counts = new Map();
  for (const char of text) counts.set(char, (counts.get(char) || 0) + 1);
  return Math.max(0, ...counts.values());
}
""",
        data=lambda r: (chance.sentence(r),),
        edges=(("",), ("éé",), ("abcabca",)),
    ),
    Classic(
        level=3,
        sentence='Compress `text` by writing each run of equal characters as the character followed by the length of the run, so that "aab" becomes "a2b1".',
        python="""
def compress_runs(text):
    result = ""
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        result += text[i] + str(j - i)
        i = j
    return result
""",
        javascript="""
function compressRuns(text) {
  let result = '';
  let i = 0;
  while (i < text.length) {
    let j = i;
    while (j < text.length && text[j] === text[i]) j += 1;
    result += text[i] + (j - i);
    i = j;
  }
  return result;
}
""",
        data=lambda r: ("".join(r.choice("abx") * r.randint(1, 4) for _ in range(r.randint(1, 5))),),
        edges=(("",), ("z",), ("ééé",), ("xxxxxxxxxxxx",)),
    ),
)

DICTIONARIES = (
    Classic(
        level=1,
        sentence="Return the value of `key` in the dictionary `scores`, or $k if it is not there.",
        python="""
def look_up(scores, key):
    return scores.get(key, $k)
""",
        javascript="""
function lookUp(scores, key) {
  return key in scores ? scores[key] : $k;
}
""",
        data=lambda r: (chance.scores(r), r.choice(("ann", "bob", "eve", "gus"))),
        edges=(({}, "ann"), ({"ann": 0}, "ann"), ({"ann": 3}, "Ann")),
        constants={"k": tuple(range(-9, 10))},
    ),
    Classic(
        level=2,
        sentence="Return a dictionary from each word in `words` to the number of times it occurs.",
        python="""
def count_words(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts
""",
        javascript="""
function countWords(words) {
  const counts = {};
  for (const word of words) counts[word] = (counts[word] || 0) + 1;
  return counts;
}
""",
        data=lambda r: ([r.choice(("red", "green", "blue", "été")) for _ in range(r.randint(2, 8))],),
        edges=(([],), (["a"],), (["b", "b", "b"],)),
    ),
    Classic(
        level=2,
        sentence="Return a dictionary from the length of each word in `words`, written as a string, to the list of the words with that length in their order.",
        python="""
def group_by_length(words):
    groups = {}
    for word in words:
        groups.setdefault(str(len(word)), []).append(word)
    return groups
""",
        javascript="""
function groupByLength(words) {
  const groups = {};
  for (const word of words) (groups[String(word.length)] ||= []).push(word);
  return groups;
}
""",
        data=lambda r: (chance.words(r),),
        edges=(([],), ([""],), (["a", "b", "cc", "a"],)),
    ),
    Classic(
        level=3,
        sentence="Return the keys of the dictionary `scores` in descending order of their values; equal values in alphabetical order of the keys.",
        python="""
def ranking(scores):
    return sorted(scores, key=lambda name: (-scores[name], name))
""",
        javascript="""
function ranking(scores) {
  return Object.keys(scores).sort((p, q) => scores[q] - scores[p] || (p < q ? -1 : 1));
}
""",
        data=lambda r: (chance.scores(r, 0, 5),),
        edges=(({},), ({"b": 1, "a": 1},), ({"x": -1, "y": 5},)),
    ),
)

PARSING = (
    Classic(
        level=3,
        sentence='Return the number of seconds of a duration such as "1h20m5s"; each of the parts h, m and s may be missing.',
        python="""
def seconds_of(text):
    units = {"h": 3600, "m": 60, "s": 1}
    total = 0
    number = ""
    for char in text:
        if char in units:
            total += int(number) * units[char]
            number = ""
        else:
            number += char
    return total
""",
        javascript="""
function secondsOf(text) {
  const units = { h: 3600, m: 60, s: 1 };
  let total = 0;
  for (const [, number, unit] of text.matchAll(/([0-9]+)([hms])/g)) total += Number(number) * units[unit];
  return total;
}
""",
        data=lambda r: ("".join(f"{r.randint(1, 59)}{unit}" for unit in "hms" if r.random() < 0.7) or "9m",),
        edges=(("",), ("0s",), ("2h",), ("100m1s",)),
    ),
    Classic(
        level=3,
        sentence="Return true if the brackets ( ) and [ ] in `text` are balanced and properly nested; other characters do not matter.",
        python="""
def balanced(text):
    stack = []
    for char in text:
        if char in "([":
            stack.append(char)
        elif char in ")]":
            if not stack or stack.pop() + char not in ("()", "[]"):
                return False
    return not stack
""",
        javascript="""
function balanced(text) {
  const stack = [];
  for (const char of text) {
    if (char === '(' || char === '[') stack.push(char);
    else if (char === ')' && stack.pop() !== '(') return false;
    else if (char === ']' && stack.pop() !== '[') return false;
  }
  return stack.length === 0;
}
""",
        data=lambda r: (
            r.choice(("(a[b]c)", "([)]", "((x)", "f(a)[1]", "[][]()", "a)b(", "[(é)]", "[(])", "(1)(2)[3]")),
        ),
        edges=(("",), ("(",), ("]",), ("[()]",)),
    ),
    Classic(
        level=2,
        sentence='Turn `text`, which looks like "a=1&b=2", into a dictionary from each name to its value as a string; the empty string gives an empty dictionary.',
        python="""
def parse_query(text):
    return dict(part.split("=") for part in text.split("&") if part)
""",
        javascript="""
function parseQuery(text) {
  return Object.fromEntries(text.split('&').filter(part => part).map(part => part.split('=')));
}
""",
        data=lambda r: ("&".join(f"{name}={value}" for name, value in chance.scores(r).items()),),
        edges=(("",), ("x=",), ("q=café&lang=fr",)),
    ),
    Classic(
        level=1,
        sentence="Return the part of `text` before the first $k; the whole text if there is none.",
        python="""
def before_mark(text):
    return text.split($k)[0]
""",
        javascript="""
function beforeMark(text) {
  return text.split($k)[0];
}
""",
        data=lambda r: (r.choice(":,;|/#").join(chance.words(r)),),
        edges=(("",), (":,;|/#",), ("no mark",), ("a:b,c;d|e/f#g",)),
        constants={"k": tuple(":,;|/#")},
    ),
    Classic(
        level=2,
        sentence='Compare two versions such as "1.10.2": return -1 if `a` is older than `b`, 1 if it is newer and 0 if both are equal. Both have three numbers.',
        python="""
def compare_versions(a, b):
    left = [int(part) for part in a.split(".")]
    right = [int(part) for part in b.split(".")]
    return (left > right) - (left < right)
""",
        javascript="""
function compareVersions(a, b) {
  const left = a.split('.').map(Number);
  const right = b.split('.').map(Number);
  for (let i = 0; i < 3; i += 1) {
    if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return 0;
}
""",
        data=lambda r: tuple(".".join(str(r.choice((0, 1, 2, 10))) for _ in "abc") for _ in "ab"),
        edges=(("1.2.3", "1.2.3"), ("1.10.0", "1.9.0"), ("0.0.9", "0.1.0")),
    ),
    Classic(
        level=2,
        sentence='Turn the name `text` from snake case, such as "max_row_count", into camel case, such as "maxRowCount".',
        python="""
def to_camel(text):
    first, *rest = text.split("_")
    return first + "".join(part.capitalize() for part in rest)
""",
        javascript="""
function toCamel(text) {
  const [first, ...rest] = text.split('_');
  return first + rest.map(part => part.charAt(0).toUpperCase() + part.slice(1)).join('');
}
""",
        data=lambda r: ("_".join(chance.names(r)),),
        edges=(("a",), ("a_b_c",), ("read_é",)),
    ),
    Classic(
        level=3,
        sentence='Return the value of the sum `text`, such as "3+10-4": whole numbers with + or - between them and no spaces.',
        python="""
def evaluate_sum(text):
    return sum(int(part) for part in text.replace("-", "+-").split("+") if part)
""",
        javascript="""
function evaluateSum(text) {
  return text.replaceAll('-', '+-').split('+').filter(part => part).reduce((p, q) => p + Number(q), 0);
}
""",
        data=lambda r: (
            str(r.randint(0, 20))
            + "".join(f"{r.choice('+-')}{r.randint(0, 30)}" for _ in range(r.randint(1, 5))),
        ),
        edges=(("0",), ("-5",), ("1-1",), ("-2-3+10",)),
    ),
)
