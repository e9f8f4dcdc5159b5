"""``{import-map} title``: who imports whom among the distributions, read from their files, as SVG.

With ``:rooms: kernels-core`` among the folders of one. An arrow points to what is imported. An
import that follows from others is not drawn.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import networkx as nx
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))
from workspace import members

WIDTH, TALL, GAP, BETWEEN = 132, 34, 14, 54


def imported(source: str) -> Iterator[str]:
    """Yield the dotted modules that a file imports by their full names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def imports() -> nx.DiGraph:
    """Return the distributions and an edge to each that one of them imports."""
    graph = nx.DiGraph()
    owners = {member.import_name: name for name, member in members().items()}
    for name, member in members().items():
        graph.add_node(name)
        for path in member.files():
            for module in imported(path.read_text(encoding="utf-8")):
                owner = owners.get(".".join(module.split(".")[:2])) or owners.get(module)
                if owner is not None and owner != name:
                    graph.add_edge(name, owner)
    return graph


def rooms(name: str) -> nx.DiGraph:
    """Return the folders of a distribution and an edge to each that one of them imports."""
    member = members()[name]
    graph = nx.DiGraph()
    graph.add_nodes_from(path.parent.name for path in member.source.glob("*/__init__.py"))
    for path in member.files():
        room, *inside = path.relative_to(member.source).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == len(inside) + 1:
                other = (node.module or "").partition(".")[0]
                if {room, other} <= set(graph) and room != other:
                    graph.add_edge(room, other)
    return graph


def places(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """Return the upper left corner of each box; a row imports from the rows below it."""
    rows = list(nx.topological_generations(graph.reverse()))
    longest = max(map(len, rows))
    corners, order = {}, {}
    for up, row in enumerate(rows):
        # near what they import, so that arrows cross less
        row = sorted(row, key=lambda each: _mean([order[to] for to in graph[each]]))
        left = (longest - len(row)) * (WIDTH + GAP) / 2
        for i, name in enumerate(row):
            order[name] = (i + 0.5) / len(row)
            corners[name] = (left + i * (WIDTH + GAP), (len(rows) - 1 - up) * (TALL + BETWEEN))
    return corners


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def drawn(title: str, graph: nx.DiGraph) -> str:
    """Return the SVG of who imports whom."""
    graph = nx.transitive_reduction(graph)
    corners = places(graph)
    slug = nodes.make_id(title)
    parts = []
    for name, to in graph.edges:
        (x0, y0), (x1, y1) = corners[name], corners[to]
        begin, end = (x0 + WIDTH / 2, y0 + TALL), (x1 + WIDTH / 2, y1 - 3)
        middle = (begin[1] + end[1]) / 2
        parts.append(
            f'<path class="arrow" marker-end="url(#{slug}-tip)" '
            f'd="M{begin[0]:g} {begin[1]:g}C{begin[0]:g} {middle:g} '
            f'{end[0]:g} {middle:g} {end[0]:g} {end[1]:g}"/>'
        )
    for name, (x, y) in corners.items():
        parts.append(
            f'<rect class="answer" x="{x:g}" y="{y:g}" width="{WIDTH}" height="{TALL}" rx="6"/>'
            f'<text class="name" x="{x + WIDTH / 2:g}" y="{y + TALL / 2 + 4:g}" '
            f'text-anchor="middle">{escape(name)}</text>'
        )
    wide = max(x for x, _ in corners.values()) + WIDTH
    tall = max(y for _, y in corners.values()) + TALL
    said = " ".join(
        f"{name} imports {', '.join(graph[name])}." for name in graph if len(graph[name])
    )
    return (
        f'<svg class="flow-chart import-map" viewBox="-2 -2 {wide + 4:g} {tall + 4:g}" role="img" '
        f'aria-labelledby="{slug}-title {slug}-text">'
        f'<title id="{slug}-title">{escape(title)}</title>'
        f'<desc id="{slug}-text">{escape(said)}</desc><defs>'
        f'<marker id="{slug}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


class ImportMap(SphinxDirective):
    required_arguments: ClassVar[int] = 1
    final_argument_whitespace: ClassVar[bool] = True
    option_spec: ClassVar[dict[str, type[str]]] = {"rooms": str}

    def run(self) -> list[nodes.Node]:
        graph = rooms(self.options["rooms"]) if "rooms" in self.options else imports()
        return [nodes.raw("", drawn(self.arguments[0], graph), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("import-map", ImportMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
