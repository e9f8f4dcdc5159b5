"""``{flow-chart} title``: a ladder of questions, yes to the right and no downwards, as SVG.

A line of the content is ``question -> answer | page``. The picture stands in the page itself, so
that it takes the theme's colours, light or dark, and its answers are links.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

WIDTH, LEFT, RIGHT, GAP = 400, 186, 176, 38
LINE, PAD, BETWEEN = 17, 11, 24
Rung = tuple[str, str, str]


def parsed(lines: list[str]) -> list[Rung]:
    """Return (question, answer, page) of each line; the last has no question."""
    rungs = []
    for line in filter(None, map(str.strip, lines)):
        question, _, rest = line.rpartition("->")
        answer, _, page = rest.partition("|")
        rungs.append((question.strip(), answer.strip(), page.strip()))
    return rungs


def words(text: str, x: float, top: float, width: int, kind: str) -> str:
    """Return lines of text, centred in a box."""
    lines = textwrap.wrap(text, width)
    rows = "".join(
        f'<tspan x="{x}" y="{top + PAD + LINE * i + 12:g}">{escape(line)}</tspan>'
        for i, line in enumerate(lines)
    )
    return f'<text class="{kind}" text-anchor="middle">{rows}</text>'


def height(text: str, width: int) -> float:
    return LINE * len(textwrap.wrap(text, width)) + 2 * PAD


def box(kind: str, x: float, y: float, width: float, tall: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width}" height="{tall:g}" '
        f'rx="{6 if kind == "answer" else 14}"/>'
    )


def drawn(title: str, rungs: list[Rung], uri: Callable[[str], str]) -> str:
    """Return the SVG; ``uri`` maps a page to an address."""
    parts, y = [], 2.0
    for number, (question, answer, page) in enumerate(rungs):
        wide, letters = (RIGHT, 24) if question else (LEFT + GAP, 31)
        tall = max(height(question, 25) if question else 0, height(answer, letters))
        link = f'<a href="{escape(uri(page))}">' if page else "<g>"
        close = "</a>" if page else "</g>"
        x = LEFT + GAP if question else 2
        text = words(
            answer, x + wide / 2, y + (tall - height(answer, letters)) / 2, letters, "name"
        )
        parts.append(f"{link}{box('answer', x, y, wide - 2, tall)}{text}{close}")
        if question:
            middle = y + tall / 2
            parts.append(box("question", 2, y, LEFT - 2, tall))
            parts.append(
                words(question, LEFT / 2, y + (tall - height(question, 25)) / 2, 25, "ask")
            )
            parts.append(f'<path class="arrow" d="M{LEFT} {middle:g}H{LEFT + GAP - 2}"/>')
            parts.append(f'<text class="way" x="{LEFT + 5}" y="{middle - 6:g}">yes</text>')
        if number < len(rungs) - 1:
            end = y + tall + BETWEEN - 2
            parts.append(f'<path class="arrow" d="M{LEFT / 2} {y + tall:g}V{end:g}"/>')
            parts.append(f'<text class="way" x="{LEFT / 2 + 7}" y="{end - 6:g}">no</text>')
        y += tall + BETWEEN
    said = " ".join(f"{q} Yes: {a}." if q else f"Otherwise: {a}." for q, a, _ in rungs)
    return (
        f'<svg class="flow-chart" viewBox="0 0 {WIDTH} {y - BETWEEN + 2:g}" role="img" '
        f'aria-labelledby="chart-title chart-text"><title id="chart-title">{escape(title)}</title>'
        f'<desc id="chart-text">{escape(said)}</desc><defs>'
        '<marker id="chart-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


class chart(nodes.General, nodes.Element):
    """The chart, until a page is written and links can be made."""


class FlowChart(SphinxDirective):
    required_arguments: ClassVar[int] = 1
    final_argument_whitespace: ClassVar[bool] = True
    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        return [chart("", title=self.arguments[0], rungs=parsed(list(self.content)))]


def visit_chart(writer: HTML5Translator, node: chart) -> None:
    page = writer.builder.current_docname

    def uri(target: str) -> str:
        name, _, anchor = target.partition("#")
        address = writer.builder.get_relative_uri(page, name)
        return f"{address}#{anchor}" if anchor else address

    writer.body.append(drawn(node["title"], node["rungs"], uri))
    raise nodes.SkipNode


def skip(_writer: object, _node: chart) -> None:
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(chart, html=(visit_chart, None), text=(skip, None), latex=(skip, None))
    app.add_directive("flow-chart", FlowChart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
