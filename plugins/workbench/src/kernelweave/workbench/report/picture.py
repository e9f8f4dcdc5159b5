"""One picture of a report: a title, an image, and the sentence below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..pages import as_data_uri, figure_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = dict[str, str]
# small enough that the letters can be read on a phone
_SIZE = {"width": 4.8, "height": 3.4}


def picture(title: str, text: str, draw: Callable[[Figure], None], **size: float) -> Picture:
    """Return a picture for a page.

    Parameters
    ----------
    title : str
        Its heading.
    text : str
        What it shows, and of which rows.
    draw : callable
        Draws into a figure.
    **size : float
        ``width`` and ``height`` in inches, where they are not the usual ones.

    Returns
    -------
    dict
        With the image as an address that holds it.
    """
    return {
        "title": title,
        "description": text,
        "address": as_data_uri(figure_svg(draw, **_SIZE | size)),
    }
