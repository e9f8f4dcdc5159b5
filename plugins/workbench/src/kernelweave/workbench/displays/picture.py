"""The picture of the demo: convergence on the left, the learned kernel on the right."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy.typing as npt
from kernelweave.kernels_core import Result

from .convergence import ConvergenceDisplay
from .gram import GramDisplay

SIGNATURE = "kernelweave demo"


def demo_picture(
    result: Result,
    K: npt.NDArray[Any],
    y: npt.NDArray[Any],
    *,
    tol: float,
    title: str,
    classes: bool = True,
) -> bytes:
    """Return a PNG of both.

    Parameters
    ----------
    result : Result
        Of the fit.
    K : ndarray of shape (n, n)
        Learned Gram matrix of some samples.
    y : ndarray of shape (n,)
        Their labels or targets.
    tol : float
        The gap asked for.
    title : str
        What was learned from what.
    classes : bool, default=True
        Whether ``y`` holds labels.

    Returns
    -------
    bytes
        A PNG that says it is the demo's.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.0, 1.05])
    left, right = halves
    bounds, gap = left.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    course = ConvergenceDisplay(result.history, tol=tol)
    course.plot(kind="bounds", ax=bounds)
    course.plot(kind="gap", ax=gap)
    bounds.set_xlabel("")
    bounds.set_title(
        f"The optimum is proved to lie in the strip\nrelative gap {result.gap:.1e} after "
        f"{result.n_iter} iterations",
        fontsize=11,
    )
    heat = right.subplots()
    order = "class" if classes else "target"
    heat.set_title(f"The learned kernel between {len(y)} samples\nordered by {order}", fontsize=11)
    GramDisplay(K, y, classes=classes).plot(ax=heat)
    figure.suptitle(title, fontsize=13)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": SIGNATURE})
    return buffer.getvalue()


def is_demo_picture(path: Path) -> bool:
    """Whether a file is a PNG that the demo wrote.

    Parameters
    ----------
    path : Path
        Any existing file.

    Returns
    -------
    bool
        By the text in its first bytes.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(1024)
    except OSError:
        return False
    return start.startswith(b"\x89PNG\r\n") and f"Software\0{SIGNATURE}".encode() in start
