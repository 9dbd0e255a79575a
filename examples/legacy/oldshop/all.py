"""Everything in one place, as it grew. `shop` is to take its place, piece by piece."""

LAST = None


def m(s):
    # money: "12.50" -> cents; also "12,50"
    global LAST
    s = s.replace(",", ".").strip()
    neg = s.startswith("-")
    if neg:
        s = s[1:]
    if "." in s:
        a, b = s.split(".")
        b = (b + "00")[:2]
    else:
        a, b = s, "00"
    LAST = int(a or "0") * 100 + int(b)
    if neg:
        LAST = -LAST
    return LAST


def sl(t):
    # title -> part of a web address
    r = ""
    for c in t.lower():
        if c.isalnum():
            r = r + c
        elif r and r[-1] != "-":
            r = r + "-"
    return r.strip("-")


def dd(a, b):
    # days between two "YYYY-MM-DD", old calendar code
    def n(s):
        y, mo, d = [int(x) for x in s.split("-")]
        mo = (mo + 9) % 12
        y = y - mo // 10
        return 365 * y + y // 4 - y // 100 + y // 400 + (mo * 306 + 5) // 10 + d - 1

    return n(b) - n(a)


def tot(lines):
    # lines of "name;count;price" -> sum in cents
    s = 0
    for x in lines:
        if x.strip() == "" or x[0] == "#":
            continue
        p = x.split(";")
        s = s + int(p[1]) * m(p[2])
    return s


def rom(n):
    # roman number for invoices
    r = ""
    for v, k in [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]:
        while n >= v:
            r = r + k
            n = n - v
    return r


def mrg(iv):
    # merge opening hours: list of (from, to)
    iv = sorted(iv)
    r = []
    for a, b in iv:
        if r and a <= r[-1][1]:
            r[-1] = (r[-1][0], max(r[-1][1], b))
        else:
            r.append((a, b))
    return r
