"""A report as a page that needs nothing beside it, and as Markdown for a pull request. Pure."""

from collections.abc import Iterator, Sequence
from html import escape

from longwatch import __version__
from longwatch.observe.render import one_line
from longwatch.observe.report.drawing import draw
from longwatch.observe.report.story import Figure, Story, Table

_MOST_ROWS = 40
_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2427;--quiet:#566068;--line:#d9d8d2;--accent:#1f6663;--second:#75540a;--alarm:#a3261d}
@media(prefers-color-scheme:dark){:root{--paper:#14181a;--ink:#e6e9ea;--quiet:#a3adb3;--line:#353d42;--accent:#7cc8c3;--second:#e3bd5f;--alarm:#ff9a8f}}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem}h2{font-size:1.2rem;margin-top:2.5rem;overflow-wrap:anywhere}h3{font-size:1rem;margin:1.4rem 0 .3rem}
a{color:var(--accent)}summary{cursor:pointer;color:var(--accent)}
.lead{border-left:4px solid var(--line);padding:.2rem .8rem}.lead strong{margin-right:.2rem}.lead:has(.needs_you,.stale){border-color:var(--alarm)}
.quiet,figcaption{color:var(--quiet);font-size:.88rem}.needs_you,.stale{color:var(--alarm)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
th{white-space:nowrap}figure{margin:.5rem 0}svg{width:100%;max-width:46rem;height:auto}svg text{fill:var(--quiet);font:11px system-ui,sans-serif}
.axis,.limit{fill:none;stroke:var(--line)}.limit{stroke:var(--alarm)}.dot,.bar{fill:var(--accent)}
polyline{fill:none;stroke-width:2;stroke:var(--accent)}.line1{stroke:var(--second)}.line2{stroke:var(--quiet)}.dashed{stroke-dasharray:5 4;stroke-width:1.5}
@media(max-width:40rem){table{min-width:36rem}}
@media print{body{max-width:none}}
"""


def html(stories: Sequence[Story]) -> str:
    """Return one page. What watches say is escaped: nothing in it is run or loaded."""
    body = "".join(_section(story) for story in stories)
    index = _index(stories) if len(stories) > 1 else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Longwatch report</title><style>{_STYLE}</style></head><body><h1>Longwatch report</h1>"
        f'{index}<main>{body}</main><p class="quiet">Made by longwatch {__version__}. '
        "<code>longwatch verify</code> checks every receipt again.</p></body></html>\n"
    )


def _index(stories: Sequence[Story]) -> str:
    items = "".join(
        f'<li><a href="#w{at}">{escape(story.watch)}</a>: {_told(story)}</li>'
        for at, story in enumerate(stories)
    )
    return f"<nav><ul>{items}</ul></nav>"


def _told(story: Story) -> str:
    health = story.health
    word = health.level.value.replace("_", " ")
    return f'<strong class="{health.level.value}">{word}</strong> {escape(health.sentence)}'


def _section(story: Story) -> str:
    return "".join(_parts(story))


def _parts(story: Story) -> Iterator[str]:
    name = escape(story.watch)
    yield f'<section><h2>{name}</h2><p class="quiet">{escape(story.kind)}, as it was at {escape(story.at)}</p>'
    yield f'<p class="lead">{_told(story)}{_help(story)}</p><ol>'
    yield "".join(f"<li>{escape(line)}</li>" for line in story.lines) + "</ol>"
    yield "".join(_figure(figure) for figure in story.figures if not figure.aside)
    yield _folded("Earlier ones", [_figure(figure) for figure in story.figures if figure.aside])
    yield "".join(_table(table) for table in story.tables if table.rows)
    yield f"{_title(story.decisions)}{_rows(story.decisions)}" if story.decisions.rows else ""
    yield "</section>"


def _help(story: Story) -> str:
    command = story.health.command
    return f"<br>In its folder: <code>{escape(command)}</code>" if command else ""


def _folded(title: str, parts: Sequence[str]) -> str:
    """Fold away what is too long to be read past; no script is needed to open it."""
    summary = f"<summary>{escape(title)}: {len(parts)}</summary>"
    return f"<details>{summary}{''.join(parts)}</details>" if parts else ""


def _figure(figure: Figure) -> str:
    told = f"<figcaption>{escape(figure.told)}</figcaption>"
    return f"<figure><h3>{escape(figure.title)}</h3>{draw(figure)}{told}</figure>"


def _table(table: Table) -> str:
    if len(table.rows) <= _MOST_ROWS:
        return f"{_title(table)}{_rows(table)}"
    return f"{_title(table)}<details><summary>{len(table.rows)} rows</summary>{_rows(table)}</details>"


def _title(table: Table) -> str:
    return f"<h3>{escape(table.title)}</h3>"


def _rows(table: Table) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def markdown(stories: Sequence[Story]) -> str:
    """Return the same without drawings, for a pull request."""
    return "\n".join(line for story in stories for line in _markdown(story)) + "\n"


def _markdown(story: Story) -> Iterator[str]:
    word = story.health.level.value.replace("_", " ")
    yield f"## {_plain(story.watch)}\n"
    yield f"{story.kind}, as it was at {story.at}. **{word}**: {_plain(story.health.sentence)}\n"
    yield from (f"- {_plain(line)}" for line in story.lines)
    for table in (*story.tables, story.decisions):
        if table.rows:
            yield f"\n### {table.title}\n"
            yield f"| {' | '.join(table.heads)} |"
            yield f"|{' --- |' * len(table.heads)}"
            yield from (f"| {' | '.join(map(_plain, row))} |" for row in table.rows)
    yield ""


def _plain(text: str) -> str:
    """Make text that cannot become markup: a worker's words stand in it."""
    line = one_line(text)
    for sign in "\\`*_{}[]<>#|@":
        line = line.replace(sign, f"\\{sign}")
    return line
