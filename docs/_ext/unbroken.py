"""A number stays in one line with its per cent sign and with its error, also in a narrow column."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BLANK = re.compile(r"(?<=\d) (?=%)|(?<=\d) (?=± \d)|(?<=\d ±) (?=\d)")
AS_WRITTEN = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def join(app: Sphinx, page: nodes.document) -> None:
    for text in list(page.findall(nodes.Text)):
        joined = BLANK.sub("\N{NO-BREAK SPACE}", text)
        if joined != text and not isinstance(text.parent, AS_WRITTEN):
            text.parent.replace(text, nodes.Text(joined))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
