"""Self-contained HTML pages: one style, for screens wide and narrow, dark, and for paper."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

import jinja2
from kernelweave.tables.errors import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = dict[str, str]
# small enough that the letters can be read on a phone
_SIZE = {"width": 4.8, "height": 3.4}


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("kernelweave.workbench.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: object) -> str:
    """Return the page of a template, in which text is escaped.

    Raises jinja2.UndefinedError if the template needs a value that is not there.
    """
    return _environment().get_template(template).render(**values)


def figure_svg(
    draw: Callable[[Figure], object], *, width: float = 5.6, height: float = 3.6
) -> bytes:
    """Return what ``draw`` puts on an empty figure of so many inches, as SVG.

    The same for the same drawing: no date, fixed identifiers. Letters are curves, unless the font
    lacks one: then they are text, which the reader's program draws in a font of its own.
    """
    try:
        return _svg(draw, (width, height), "path", "error")
    except UserWarning:
        # an escape in a name would end the document
        return printable(_svg(draw, (width, height), "none", "ignore").decode()).encode()


def _svg(
    draw: Callable[[Figure], object],
    size: tuple[float, float],
    letters: str,
    missing: Literal["error", "ignore"],
) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    words = {"svg.hashsalt": "kernelweave", "svg.fonttype": letters}
    with matplotlib.rc_context(words), warnings.catch_warnings():
        warnings.filterwarnings(missing, "Glyph .* missing from", UserWarning)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return buffer.getvalue()


def picture(title: str, text: str, draw: Callable[[Figure], object], **size: float) -> Picture:
    """Return a picture for a page, the image as an address, under a heading and a text.

    `**size`: ``width`` and ``height`` in inches, where they are not the usual ones.
    """
    image = base64.b64encode(figure_svg(draw, **_SIZE | size)).decode("ascii")
    address = f"data:image/svg+xml;base64,{image}"
    return {"title": title, "description": text, "address": address}
