"""The state machine as pictures, from its table: one for each who moves it. Pure; `lifecycle_diagram.py` writes them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from math import hypot

import msgspec

from longwatch.kernel.lifecycle import Edge, Event, Phase

WIDTH, HEIGHT = 960, 365
_WIDE, _HIGH = 62, 17
"""Half of a phase's box."""
_BEND = 26.0
_PLACES: Mapping[Phase, tuple[int, int]] = {
    Phase.COMPLETE: (80, 90),
    Phase.EXHAUSTED: (80, 285),
    Phase.IDLE: (290, 175),
    Phase.WAITING: (420, 50),
    Phase.RUNNING: (520, 175),
    Phase.BLOCKED: (340, 315),
    Phase.NEEDS_RECONCILE: (520, 315),
    Phase.PAUSING: (690, 115),
    Phase.STOPPING: (690, 205),
    Phase.PAUSED: (890, 50),
    Phase.STOPPED: (890, 328),
}
_ALONG = 0.36
"""How far along its arrow a name stands: so names of two opposite arrows do not meet."""


class View(msgspec.Struct, frozen=True):
    """A picture of some moves: of all at once nobody could read it."""

    name: str
    title: str
    events: frozenset[Event]


VIEWS = (
    View(
        "work",
        "What the work does",
        frozenset(
            {
                Event.BEGIN,
                Event.STARTED,
                Event.WAIT,
                Event.DUE,
                Event.DRAINED,
                Event.HALT,
                Event.COMPLETE,
            }
        ),
    ),
    View("hold", "A person's pause and stop", frozenset({Event.PAUSE, Event.STOP})),
    View("go-on", "A person's word to go on", frozenset({Event.RESUME, Event.ACCEPT})),
    View("end", "What keeps it from going on", frozenset({Event.BLOCK, Event.RECONCILE, Event.EXHAUST})),
)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1d2427;text-anchor:middle}.on{paint-order:stroke;stroke:#fff;stroke-width:4px;fill:#1f6663}"
    "rect{fill:#fff;stroke:#566068}path{fill:none;stroke:#566068;marker-end:url(#tip)}"
)


def picture(edges: Iterable[Edge], view: View) -> str:
    """Return the moves of a view as an SVG file; loops are left out, and one arrow has all its names."""
    arrows: dict[tuple[Phase, Phase], list[str]] = defaultdict(list)
    for edge in edges:
        if (
            edge.event in view.events
            and edge.phase != edge.to
            and edge.name not in arrows[edge.phase, edge.to]
        ):
            arrows[edge.phase, edge.to].append(edge.name)
    arrows = {pair: names for pair, names in arrows.items() if names}
    shown = {phase for pair in arrows for phase in pair}
    parts = (*_arrows(arrows), *(_box(phase) for phase in Phase if phase in shown), *_names(arrows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><style>{_STYLE}</style>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#566068;stroke:none;marker-end:none"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" style="stroke:none"/>{"".join(parts)}</svg>\n'
    )


def _box(phase: Phase) -> str:
    x, y = _PLACES[phase]
    return (
        f'<rect x="{x - _WIDE}" y="{y - _HIGH}" width="{2 * _WIDE}" height="{2 * _HIGH}" rx="8"/>'
        f'<text x="{x}" y="{y + 4}">{phase}</text>'
    )


def _arrows(arrows: Mapping[tuple[Phase, Phase], list[str]]) -> Iterator[str]:
    for (begin, end), names in arrows.items():
        (x, y), (middle_x, middle_y), (to_x, to_y) = _curve(begin, end)
        told = escape(f"{begin} to {end}: {', '.join(names)}")
        yield f'<path d="M{x:.0f} {y:.0f}Q{middle_x:.0f} {middle_y:.0f} {to_x:.0f} {to_y:.0f}"><title>{told}</title></path>'


def _names(arrows: Mapping[tuple[Phase, Phase], list[str]]) -> Iterator[str]:
    """Yield the names on their arrows; where all arrows to a phase have the same one, it is said once, at the phase."""
    into: dict[Phase, set[str]] = defaultdict(set)
    for (_, end), names in arrows.items():
        into[end].add(", ".join(names))
    many = {end for end in into if sum(1 for pair in arrows if pair[1] is end) > 2 and len(into[end]) == 1}
    for end in sorted(many):
        yield _name(_PLACES[end][0], _PLACES[end][1] + _HIGH + 16, *into[end])
    for (begin, end), names in arrows.items():
        if end not in many:
            x, y = _along(_curve(begin, end))
            yield _name(x, y + 4, ", ".join(names))


def _name(x: float, y: float, text: str) -> str:
    return f'<text class="on" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


Point = tuple[float, float]


def _curve(begin: Phase, end: Phase) -> tuple[Point, Point, Point]:
    """Return where an arrow begins, bends and ends; the way there and the way back bend apart."""
    (x, y), (to_x, to_y) = _PLACES[begin], _PLACES[end]
    long = hypot(to_x - x, to_y - y)
    middle = ((x + to_x) / 2 - (to_y - y) / long * _BEND, (y + to_y) / 2 + (to_x - x) / long * _BEND)
    return _edge_of((x, y), middle), middle, _edge_of((to_x, to_y), middle)


def _along(curve: tuple[Point, Point, Point]) -> Point:
    """Return the point of a quadratic Bezier curve where its name stands."""
    shares = ((1 - _ALONG) ** 2, 2 * _ALONG * (1 - _ALONG), _ALONG**2)
    x, y = (sum(share * point[axis] for share, point in zip(shares, curve, strict=True)) for axis in (0, 1))
    return x, y


def _edge_of(centre: Point, towards: Point) -> Point:
    """Return where the line from a box's centre leaves the box."""
    across, up = towards[0] - centre[0], towards[1] - centre[1]
    share = min(_WIDE / abs(across) if across else 1.0, (_HIGH + 2) / abs(up) if up else 1.0, 1.0)
    return centre[0] + share * across, centre[1] + share * up
