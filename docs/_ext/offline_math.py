"""Formulas as MathML, which browsers draw themselves: no script is fetched from anywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

# these look the same on both sides, so a browser takes each for an opening one and stretches it
BARS = re.compile("<mo[^>]*>([|‖⟨⟩])</mo>")
# TeX takes \frac12 for one half, the converter for a twelfth part of what follows
SHORT = re.compile(r"(\\[td]?frac)\s*(\d)\s*(\d|[a-zA-Z])")
# TeX has a thin space between a function and an argument without brackets: log x, tr P
APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>[(\[{⟨|‖])")
THIN = '<mspace width="0.1667em"/>'
# keeps a comma behind a formula in the line of the formula
JOINER = "&#8288;"


def converted(formula: str, *, block: bool) -> str:
    try:
        drawn = str(tex2mathml(SHORT.sub(r"\1{\2}{\3}", formula), as_block=block))
    except MathError as error:
        raise ExtensionError(f"cannot draw the formula {formula!r}: {error}") from error
    drawn = APPLIED.sub(THIN, drawn)
    return BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', drawn)


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(converted(node.astext(), block=False) + JOINER)
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    formula = converted(node.astext(), block=True)
    writer.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
