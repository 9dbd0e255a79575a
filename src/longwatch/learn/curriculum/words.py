"""The steps of pipelines over characters, and what can be returned of texts; see `parts`."""

from longwatch.learn.curriculum.parts import Each, Finish, Keep

_LETTERS = tuple("aeinorst")

CHARACTER_KEEPS = (
    Keep(
        name="vowels",
        words="that are vowels (a, e, i, o, u in either case)",
        python='$x in "aeiouAEIOU"',
        javascript="'aeiouAEIOU'.includes($x)",
    ),
    Keep(
        name="no_vowels",
        words="that are not vowels (a, e, i, o, u in either case)",
        python='$x not in "aeiouAEIOU"',
        javascript="!'aeiouAEIOU'.includes($x)",
    ),
    Keep(
        name="digits",
        words="that are digits from 0 to 9",
        python='$x in "0123456789"',
        javascript="'0123456789'.includes($x)",
    ),
    Keep(name="letters", words="that are letters", python="$x.isalpha()", javascript="/\\p{L}/u.test($x)"),
    Keep(
        name="capitals",
        words="that are upper-case letters",
        python="$x.isupper()",
        javascript="/\\p{Lu}/u.test($x)",
    ),
    Keep(
        name="small",
        words="that are lower-case letters",
        python="$x.islower()",
        javascript="/\\p{Ll}/u.test($x)",
    ),
    Keep(name="no_space", words="that are not spaces", python='$x != " "', javascript="$x !== ' '"),
    Keep(
        name="except",
        words="that are not $k",
        python="$x != $k",
        javascript="$x !== $k",
        constants=_LETTERS,
    ),
    Keep(
        name="equal",
        words="that are equal to $k",
        python="$x == $k",
        javascript="$x === $k",
        constants=_LETTERS,
    ),
)

CHARACTER_EACHES = (
    Each(
        name="upper",
        noun="the upper-case forms of",
        verb="turn each of them into upper case",
        python="$x.upper()",
        javascript="$x.toUpperCase()",
        gives="text",
    ),
    Each(
        name="lower",
        noun="the lower-case forms of",
        verb="turn each of them into lower case",
        python="$x.lower()",
        javascript="$x.toLowerCase()",
        gives="text",
    ),
    Each(
        name="repeat",
        noun="$m copies of each of",
        verb="repeat each of them $m times",
        python="$x * $m",
        javascript="$x.repeat($m)",
        constants=(2, 3, 4),
        gives="text",
    ),
    Each(
        name="suffix",
        noun="$m appended to each of",
        verb="append $m to each of them",
        python="$x + $m",
        javascript="$x + $m",
        constants=("-", ".", "_", "+", "*"),
        gives="text",
    ),
    Each(
        name="code",
        noun="the character codes of",
        verb="take the character code of each of them",
        python="ord($x)",
        javascript="$x.codePointAt(0)",
    ),
)

TEXT_FINISHES = (
    Finish(
        name="count",
        noun="the number of $i",
        verb="return how many there are",
        python="return len($l)",
        javascript="return $a.length;",
        plain=True,
    ),
    Finish(
        name="list",
        noun="the list of $i in the same order",
        verb="return them as a list",
        python="return $l",
        javascript="return $a;",
    ),
    Finish(
        name="joined",
        noun="$i joined into one string with nothing between them",
        verb="return them joined into one string",
        python='return "".join($g)',
        javascript="return $a.join('');",
    ),
    Finish(
        name="dashed",
        noun='$i joined into one string with "-" between them',
        verb='return them joined into one string with "-" between them',
        python='return "-".join($g)',
        javascript="return $a.join('-');",
    ),
    Finish(
        name="sorted",
        noun="the list of $i in alphabetical order of their character codes",
        verb="return them as a list in alphabetical order of their character codes",
        python="return sorted($g)",
        javascript="return [...$a].sort();",
    ),
    Finish(
        name="reversed",
        noun="the list of $i in reverse order",
        verb="return them as a list in reverse order",
        python="return $l[::-1]",
        javascript="return [...$a].reverse();",
    ),
    Finish(
        name="distinct",
        noun="the number of different values among $i",
        verb="return how many different results there are",
        python="return len(set($g))",
        javascript="return new Set($a).size;",
    ),
    Finish(
        name="first",
        noun="the first of $i, or an empty string if there is none",
        verb="return the first result, or an empty string if there is none",
        python='items = $l\n    return items[0] if items else ""',
        javascript="const items = $a;\n  return items.length ? items[0] : '';",
    ),
    Finish(
        name="longest",
        noun="the longest of $i (the first of them if several are), or an empty string if there is none",
        verb="return the longest result (the first of them if several are), or an empty string if there is none",
        python='return max($l, key=len, default="")',
        javascript="return $a.reduce((p, q) => (q.length > p.length ? q : p), '');",
    ),
)
