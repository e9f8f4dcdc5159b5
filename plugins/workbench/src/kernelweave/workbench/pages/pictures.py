"""Pictures inside a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_svg(draw: Callable[[Figure], None], *, width: float = 5.6, height: float = 3.6) -> bytes:
    """Return what ``draw`` puts on an empty figure, as SVG.

    Parameters
    ----------
    draw : callable
        Draws into the figure.
    width, height : float
        Inches.

    Returns
    -------
    bytes
        The same for the same drawing: no date, fixed identifiers.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "kernelweave", "svg.fonttype": "path"}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return buffer.getvalue()


def as_data_uri(picture: bytes) -> str:
    """Return an SVG picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"
