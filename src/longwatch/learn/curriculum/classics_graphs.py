"""Classics of graphs and of state machines."""

from random import Random

from longwatch.learn.curriculum import chance
from longwatch.learn.curriculum.classic import Classic
from longwatch.learn.curriculum.template import Arguments


def _edges(random: Random) -> Arguments:
    return (chance.edges(random),)


def _edges_and_node(random: Random) -> Arguments:
    return (chance.edges(random), random.randrange(6))


def _edges_and_nodes(random: Random) -> Arguments:
    return (chance.edges(random), random.randrange(6), random.randrange(6))


def _signs(random: Random, signs: str) -> Arguments:
    return ("".join(random.choice(signs) for _ in range(random.randint(2, 9))),)


GRAPHS = (
    Classic(
        level=1,
        sentence="Return true if `edges`, a list of pairs of nodes, joins the nodes `a` and `b` directly, in either direction.",
        python="""
def joined_directly(edges, a, b):
    return [a, b] in edges or [b, a] in edges
""",
        javascript="""
function joinedDirectly(edges, a, b) {
  return edges.some(([p, q]) => (p === a && q === b) || (p === b && q === a));
}
""",
        data=_edges_and_nodes,
        edges=(([], 0, 1), ([[1, 0]], 0, 1), ([[0, 1], [1, 2]], 0, 2)),
    ),
    Classic(
        level=3,
        sentence="Return how many nodes can be reached from `start`, itself included, along `edges`, a list of pairs of nodes that can be walked in both directions.",
        python="""
def reachable_count(edges, start):
    seen = {start}
    queue = [start]
    while queue:
        node = queue.pop()
        for a, b in edges:
            if node in (a, b):
                other = b if node == a else a
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
    return len(seen)
""",
        javascript="""
function reachableCount(edges, start) {
  const seen = new Set([start]);
  for (const node of seen) {
    for (const [a, b] of edges) {
      if (a === node) seen.add(b);
      if (b === node) seen.add(a);
    }
  }
  return seen.size;
}
""",
        data=_edges_and_node,
        edges=(([], 0), ([[1, 2]], 0), ([[0, 1], [2, 1], [2, 3], [4, 5]], 0)),
    ),
    Classic(
        level=2,
        sentence="Return the sorted list of the neighbours of `node` in `edges`, a list of pairs of nodes without direction.",
        python="""
def neighbours_of(edges, node):
    return sorted([b for a, b in edges if a == node] + [a for a, b in edges if b == node])
""",
        javascript="""
function neighboursOf(edges, node) {
  const found = edges.flatMap(([a, b]) => (a === node ? [b] : b === node ? [a] : []));
  return found.sort((p, q) => p - q);
}
""",
        data=_edges_and_node,
        edges=(([], 0), ([[1, 0]], 0), ([[0, 5], [3, 0], [1, 2]], 0)),
    ),
    Classic(
        level=2,
        sentence="Return a dictionary from each node in `edges`, a list of directed pairs of strings, to the list of the nodes its edges lead to, in their order; a node without edges of its own gets an empty list.",
        python="""
def adjacency(edges):
    graph = {}
    for a, b in edges:
        graph.setdefault(a, []).append(b)
        graph.setdefault(b, [])
    return graph
""",
        javascript="""
function adjacency(edges) {
  const graph = {};
  for (const [a, b] of edges) {
    (graph[a] ||= []).push(b);
    graph[b] ||= [];
  }
  return graph;
}
""",
        data=lambda r: ([r.sample("abcdef", 2) for _ in range(r.randint(1, 6))],),
        edges=(([],), ([["a", "b"]],), ([["a", "b"], ["b", "a"], ["é", "a"]],)),
    ),
    Classic(
        level=3,
        sentence="Return the smallest number of steps from `start` to `goal` along `edges`, a list of pairs of nodes that can be walked in both directions, or -1 if there is no way.",
        python="""
def fewest_steps(edges, start, goal):
    level = {start}
    seen = set()
    steps = 0
    while level:
        if goal in level:
            return steps
        seen |= level
        level = {q for a, b in edges for p, q in ((a, b), (b, a)) if p in level} - seen
        steps += 1
    return -1
""",
        javascript="""
function fewestSteps(edges, start, goal) {
  const distance = new Map([[start, 0]]);
  for (const [node, steps] of distance) {
    for (const [a, b] of edges) {
      for (const [p, q] of [[a, b], [b, a]]) {
        if (p === node && !distance.has(q)) distance.set(q, steps + 1);
      }
    }
  }
  return distance.has(goal) ? distance.get(goal) : -1;
}
""",
        data=_edges_and_nodes,
        edges=(([], 0, 0), ([[1, 2]], 0, 1), ([[0, 1], [1, 2], [3, 2], [0, 3], [4, 3]], 0, 4)),
    ),
    Classic(
        level=3,
        sentence="Return the number of connected groups of the nodes that occur in `edges`, a list of pairs of nodes without direction.",
        python="""
def group_count(edges):
    group = {}
    for a, b in edges:
        joined = group.get(a, {a}) | group.get(b, {b})
        for node in joined:
            group[node] = joined
    return len({min(nodes) for nodes in group.values()})
""",
        javascript="""
function groupCount(edges) {
  const label = new Map();
  for (const [a, b] of edges) for (const node of [a, b]) label.set(node, node);
  for (const [a, b] of edges) {
    const [from, to] = [label.get(a), label.get(b)];
    for (const [node, mark] of label) if (mark === from) label.set(node, to);
  }
  return new Set(label.values()).size;
}
""",
        data=_edges,
        edges=(([],), ([[0, 1]],), ([[0, 1], [2, 3], [4, 5], [1, 2]],)),
    ),
    Classic(
        level=2,
        sentence="Return true if `path`, a list of nodes, only takes steps that are in `edges`, a list of directed pairs of nodes.",
        python="""
def valid_path(edges, path):
    return all([a, b] in edges for a, b in zip(path, path[1:]))
""",
        javascript="""
function validPath(edges, path) {
  return path.slice(1).every((b, i) => edges.some(([p, q]) => p === path[i] && q === b));
}
""",
        data=lambda r: (
            edges := chance.edges(r),
            list(r.choice(edges)) if r.random() < 0.5 else r.sample(range(6), 3),
        ),
        edges=(([], [0]), ([[0, 1]], [1, 0]), ([[0, 1], [1, 2]], [0, 1, 2])),
    ),
)

MACHINES = (
    Classic(
        level=2,
        sentence='A traffic light goes from "green" to "yellow" to "red" and back to "green". Return its state `n` steps after `state`.',
        python="""
def light_after(state, n):
    states = ["green", "yellow", "red"]
    return states[(states.index(state) + n) % 3]
""",
        javascript="""
function lightAfter(state, n) {
  const states = ['green', 'yellow', 'red'];
  return states[(states.indexOf(state) + n) % 3];
}
""",
        data=lambda r: (r.choice(("green", "yellow", "red")), r.randint(0, 20)),
        edges=(("red", 0), ("red", 1), ("yellow", 300)),
    ),
    Classic(
        level=3,
        sentence='A turnstile starts "locked". The event "coin" makes it "unlocked"; the event "push" makes it "locked" and lets one person through if it was "unlocked". Return how many people went through for the list `events`.',
        python="""
def people_through(events):
    locked = True
    people = 0
    for event in events:
        if event == "coin":
            locked = False
        elif not locked:
            locked = True
            people += 1
    return people
""",
        javascript="""
function peopleThrough(events) {
  let locked = true;
  let people = 0;
  for (const event of events) {
    if (event === 'coin') locked = false;
    else if (!locked) {
      locked = true;
      people += 1;
    }
  }
  return people;
}
""",
        data=lambda r: ([r.choice(("coin", "push")) for _ in range(r.randint(2, 9))],),
        edges=(([],), (["push", "push"],), (["coin", "coin", "push", "push", "coin", "push"],)),
    ),
    Classic(
        level=2,
        sentence="A robot starts at [0, 0]. In `moves`, U adds 1 to the second number and D subtracts 1 from it, R adds 1 to the first and L subtracts 1 from it. Return its final position.",
        python="""
def robot_position(moves):
    return [moves.count("R") - moves.count("L"), moves.count("U") - moves.count("D")]
""",
        javascript="""
function robotPosition(moves) {
  let [x, y] = [0, 0];
  for (const move of moves) {
    if (move === 'R') x += 1;
    if (move === 'L') x -= 1;
    if (move === 'U') y += 1;
    if (move === 'D') y -= 1;
  }
  return [x, y];
}
""",
        data=lambda r: _signs(r, "UDLR"),
        edges=(("",), ("LLL",), ("UDLR",)),
    ),
    Classic(
        level=1,
        sentence="A switch is off. Each character T in `events` toggles it; other characters do nothing. Return true if it is on at the end.",
        python="""
def switch_is_on(events):
    return events.count("T") % 2 == 1
""",
        javascript="""
function switchIsOn(events) {
  return [...events].filter(event => event === 'T').length % 2 === 1;
}
""",
        data=lambda r: _signs(r, "TTx-"),
        edges=(("",), ("T",), ("tTT",)),
    ),
    Classic(
        level=3,
        sentence="A lock opens as soon as the last three digits typed are $k. Return the number of digits of `typed` that were needed to open it, or -1 if it stays closed.",
        python="""
def digits_to_open(typed):
    place = typed.find("$k")
    return -1 if place < 0 else place + 3
""",
        javascript="""
function digitsToOpen(typed) {
  const place = typed.indexOf('$k');
  return place < 0 ? -1 : place + 3;
}
""",
        data=lambda r: ("".join(r.choice("12") for _ in range(r.randint(3, 14))),),
        edges=(("",), ("112",), ("2121122211",)),
        constants={"k": (112, 121, 122, 211, 212, 221)},
    ),
    Classic(
        level=2,
        sentence='A list starts empty. In `events`, "undo" removes its last item if there is one, and every other word is appended. Return the list at the end.',
        python="""
def after_undo(events):
    items = []
    for event in events:
        if event != "undo":
            items.append(event)
        elif items:
            items.pop()
    return items
""",
        javascript="""
function afterUndo(events) {
  const items = [];
  for (const event of events) {
    if (event !== 'undo') items.push(event);
    else items.pop();
  }
  return items;
}
""",
        data=lambda r: ([word for name in chance.words(r) for word in r.choice(([name], [name, "undo"]))],),
        edges=(([],), (["undo", "a"],), (["a", "b", "undo", "undo", "undo", "é"],)),
    ),
    Classic(
        level=3,
        sentence="An account starts with 0. Each positive number in `amounts` is paid in; each negative number is paid out, but refused if less than $k would be left. Return the balance at the end.",
        python="""
def final_balance(amounts):
    balance = 0
    for amount in amounts:
        if amount > 0 or balance + amount >= $k:
            balance += amount
    return balance
""",
        javascript="""
function finalBalance(amounts) {
  let balance = 0;
  for (const amount of amounts) {
    if (amount > 0 || balance + amount >= $k) balance += amount;
  }
  return balance;
}
""",
        data=lambda r: ([n or 1 for n in chance.numbers(r, -15, 15)],),
        edges=(([],), ([-1],), ([10, -10, 5, -20, 3],)),
        constants={"k": tuple(range(-10, 11))},
    ),
)
