"""Figures as SVG, for a page without scripts. Pure; colours are the page's."""

from collections.abc import Iterator, Sequence
from html import escape
from math import log10

from longwatch.observe.report.story import Bar, Figure, Line

WIDTH, HEIGHT = 640, 220
_LEFT, _BOTTOM, _TOP, _RIGHT = 48, 26, 12, 150
_ROW = 26
_NAME = 12.0
_SMALLEST = 1e-3
_MOST_DOTS = 60


def draw(figure: Figure) -> str:
    """Return an `svg` element."""
    if figure.bars:
        return _bars(figure)
    return _lines(figure)


def _svg(figure: Figure, height: int, parts: Iterator[str]) -> str:
    label = escape(f"{figure.title}. {figure.told}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _lines(figure: Figure) -> str:
    return _svg(figure, HEIGHT, _plot(figure))


def _plot(figure: Figure) -> Iterator[str]:
    points = [point for line in figure.lines for point in line.points]
    heights = [*(y for _, y in points), *([] if figure.limit is None else [figure.limit])]
    scaled = [_scaled(y, logarithmic=figure.logarithmic) for y in heights]
    low = min((0.0, *scaled)) if figure.logarithmic else 0.0
    high = max((*scaled, low + 1e-9))
    first, last = min(x for x, _ in points), max(x for x, _ in points)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - first) / (last - first or 1)
        up = (_scaled(y, logarithmic=figure.logarithmic) - low) / (high - low)
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _BOTTOM - _TOP)

    floor = HEIGHT - _BOTTOM
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{WIDTH - _RIGHT}"/>'
    yield _text(4, _TOP + 8, _number(high, figure)) + _text(4, floor, _number(low, figure))
    yield _text(_LEFT, HEIGHT - 8, f"{first:g}") + _text(WIDTH - _RIGHT - 20, HEIGHT - 8, f"{last:g}")
    if figure.limit is not None:
        y = at(first, figure.limit)[1]
        yield f'<path class="limit" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
    placed = [[at(x, y) for x, y in line.points] for line in figure.lines]
    names = _apart([points[-1][1] + 4 for points in placed])
    for number, line in enumerate(figure.lines):
        yield _line(number, line, placed[number], names[number])


def _apart(heights: Sequence[float]) -> list[float]:
    """Move names that would lie on each other apart, downwards, in the order of their heights."""
    placed = list(heights)
    last = -_NAME
    for at in sorted(range(len(placed)), key=placed.__getitem__):
        placed[at] = last = max(placed[at], last + _NAME, _TOP + 8.0)
    return placed


def _line(number: int, line: Line, points: Sequence[tuple[float, float]], name_y: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = f"line{number}{' dashed' if line.dashed else ''}"
    dots = (
        ""
        if line.dashed or len(points) > _MOST_DOTS
        else "".join(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    )
    name = _text(points[-1][0] + 8, name_y, line.name)
    return f'<polyline class="{kind}" points="{path}"/>{dots}{name}'


def _bars(figure: Figure) -> str:
    return _svg(figure, _ROW * len(figure.bars) + 10, (_bar(at, bar) for at, bar in enumerate(figure.bars)))


def _bar(at: int, bar: Bar) -> str:
    y, wide = at * _ROW + 8, WIDTH - 2 * _RIGHT
    return (
        f'{_text(4, y + 10, bar.name)}<rect class="bar" x="{_RIGHT}" y="{y}" width="{wide * bar.value:.1f}" height="12"/>'
        f"{_bounds(y, wide, bar)}{_text(WIDTH - _RIGHT + 4, y + 10, bar.told)}"
    )


def _bounds(y: int, wide: int, bar: Bar) -> str:
    if bar.low is None or bar.high is None:
        return ""
    low, high = _RIGHT + wide * bar.low, _RIGHT + wide * bar.high
    return f'<path class="limit" d="M{low:.1f} {y + 6}H{high:.1f}M{low:.1f} {y + 2}v8M{high:.1f} {y + 2}v8"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _scaled(value: float, *, logarithmic: bool) -> float:
    return log10(max(value, _SMALLEST)) if logarithmic else value


def _number(scaled: float, figure: Figure) -> str:
    return f"{10**scaled if figure.logarithmic else scaled:.3g}"
