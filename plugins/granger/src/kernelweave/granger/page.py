"""One HTML page about a graph: the picture, the edges, and what they say."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

_MOST_EDGES = 100
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a3abb5; --line: #3a424c;
  --paper: #14181d; } }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 64rem;
  font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
p, figcaption { max-width: 46rem; } .soft, figcaption { color: var(--soft); font-size: .9rem; }
figure { margin: 0; break-inside: avoid; }
.pictures { display: grid; gap: 1rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
img { display: block; max-width: 100%; background: #fff; border: 1px solid var(--line); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .92rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
@media print { :root { color-scheme: light; --ink: #000; --paper: #fff; --line: #b5bcc4; }
  body { max-width: none; padding: 0; font-size: 10pt; } .scroll { overflow: visible; } }
"""
_HEADS = {
    "source": "from",
    "target": "to",
    "lag": "lag",
    "effect": "effect",
    "weight": "weight",
    "p_value": "p",
    "adjusted_p_value": "adjusted p",
    "passes": "passes",
}


def graph_page(
    data: str,
    facts: str,
    reading: str,
    rows: Sequence[Mapping[str, Any]],
    draw: Mapping[str, Callable[[Any], object]],
) -> str:
    """Return the page of a learned graph.

    Parameters
    ----------
    data : str
        What it was learned from.
    facts, reading : str
        Sentences: how it was learned, and what the numbers of the edges mean.
    rows : sequence of mapping
        Edges, the heaviest first.
    draw : mapping of str to callable
        A caption, and what draws the picture above it on axes.

    Returns
    -------
    str
        HTML that needs nothing beside it.
    """
    figures = "".join(
        f'<figure><img src="{_address(each)}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for caption, each in draw.items()
    )
    more = len(rows) - _MOST_EDGES
    rest = f'<p class="soft">{more} lighter edges are not shown.</p>' if more > 0 else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Which series drive which: {escape(data)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>Which series drive which</h1><p>{escape(facts)}</p>"
        f'<div class="pictures">{figures}</div>'
        f"<h2>Edges</h2><p>{escape(reading)}</p>{_table(rows[:_MOST_EDGES])}{rest}"
        '<p class="soft">Effect: with + the next value rises with the driver, with - it falls, '
        "with ± it does either, depending on where the driver stands.</p>"
        "<h2>What an edge means</h2><p>The past of one series helps to predict the next value of "
        "another, beyond what the other's own past and the rest of the table tell. A driver that "
        "is not in the table can make an edge where there is no influence.</p></body></html>\n"
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    names = [name for name in _HEADS if name in rows[0]]
    kinds = {name: _kind(rows[0][name]) for name in names}
    head = "".join(f'<th scope="col"{kinds[name]}>{_HEADS[name]}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td{kinds[name]}>{_cell(row[name])}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kind(value: Any) -> str:
    return "" if value is None or isinstance(value, str | bool) else ' class="number"'


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else escape(str(value))


def _address(draw: Callable[[Any], object]) -> str:
    """Return a picture as an address that holds it; the same for the same drawing."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "kernelweave", "svg.fonttype": "path"}):
        figure = Figure(figsize=(6.0, 5.0), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{content}"
