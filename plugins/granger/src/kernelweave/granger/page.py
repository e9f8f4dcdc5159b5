"""A page of the graph: what passes, a table of all edges, what the strongest do, and pictures."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from kernelweave.kernels_core.checks import one_of
from kernelweave.tables.errors import printable

from .displays import CausalGraphDisplay, above_the_gap
from .series import describe_lags
from .significance import p_value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .graph import GrangerGraph


_CURVES = 12  # edges whose effect is drawn
_ADJUSTED = {"bh": "Benjamini and Hochberg", "max-t": "the largest weight of each draw"}

HEAT = "cividis"
_NAMED = 40  # nodes whose names have room on an axis


def plot_weights(model: GrangerGraph, ax: Axes) -> None:
    """Draw the weight matrix: targets down, sources across; a dot marks edges that pass.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    ax : matplotlib Axes
        Where to draw, with a colour bar.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from kernelweave.granger import GrangerGraph, plot_weights
    >>> X = np.random.default_rng(0).standard_normal((80, 3))
    >>> X[1:, 0] += np.sin(2 * X[:-1, 2])
    >>> plot_weights(GrangerGraph(lam=0.1, cv=None).fit(X), plt.gca())
    """
    image = ax.imshow(model.graph_, cmap=HEAT, vmin=0.0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label("weight")
    _name_axes(ax, model.group_names_)
    ax.set_xlabel("source")
    ax.set_ylabel("target")
    if model.adjusted_p_values_ is not None:
        rows, columns = np.nonzero(model.adjusted_p_values_ <= model.level)
        size = float(np.clip(80.0 / len(model.graph_), 1.0, 4.0))
        ax.plot(columns, rows, "o", color="white", markeredgecolor="black", markersize=size)
        ax.set_title(f"dots: adjusted p ≤ {model.level:g}, {model.n_draws_} draws", fontsize=9)


def plot_effect(model: GrangerGraph, edge: Mapping[Any, Any], ax: Axes) -> None:
    """Draw what the source of an edge adds to the prediction of its target.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    edge : mapping
        A row of ``edges_``: its ``source``, ``target`` and ``lag``.
    ax : matplotlib Axes
        Where to draw.

    Raises
    ------
    ValueError
        If there is no such edge.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from kernelweave.granger import GrangerGraph, plot_effect
    >>> X = np.random.default_rng(0).standard_normal((80, 3))
    >>> X[1:, 0] += np.sin(2 * X[:-1, 2])
    >>> model = GrangerGraph(lam=0.1, cv=None).fit(X)
    >>> plot_effect(model, model.edges_.iloc[0], plt.gca())
    """
    from .displays import COLOURS

    for end in ("source", "target"):
        one_of(*model.group_names_).check(end, edge[end])
    source, target = (model.group_names_.index(edge[end]) for end in ("source", "target"))
    if edge["lag"] not in model.lags_:
        raise ValueError(f"lag must be one of {list(model.lags_)}, got {edge['lag']!r}")
    lag, effects = model.lags_.index(edge["lag"]), model.effects_
    colour = COLOURS[effects.signs()[target, source, lag]]
    ax.axhline(0.0, color="#C9C9C9", linewidth=0.8)
    ax.plot(effects.values[source], effects.curves[target, source, lag], color=colour)
    steps = "step" if edge["lag"] == 1 else "steps"
    ax.set_xlabel(f"{edge['source']}, {edge['lag']} {steps} before", fontsize=8)
    ax.set_ylabel(f"adds to {edge['target']}", fontsize=8)
    ax.tick_params(labelsize=7)


def _name_axes(ax: Axes, names: list[str]) -> None:
    if len(names) > _NAMED:
        return
    size = float(np.clip(140.0 / max(len(names), 1), 5.0, 10.0))
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    ax.set_yticks(range(len(names)), names, fontsize=size)


def graph_page(model: GrangerGraph, *, title: str = "Causal graph") -> str:
    """Return an HTML page of a fitted graph.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    title : str, default="Causal graph"
        Its heading.

    Returns
    -------
    str
        HTML without external files: the graph, a table of its edges, by p-value where there
        are some, and the effect curves of those in colour.

    Examples
    --------
    >>> from kernelweave.granger import GrangerGraph, graph_page, random_network
    >>> X, _ = random_network(3, 60, random_state=0)
    >>> page = graph_page(GrangerGraph(lam=0.3, cv=None).fit(X), title="Three series")
    >>> "<h1>Three series</h1>" in page, "Nothing here is tested" in page
    (True, True)
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernelweave.granger"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    edges = model.edges_
    drawn = (
        edges[edges["passes"]]
        if "passes" in edges
        else edges.sort_values("weight", ascending=False).head(above_the_gap(edges["weight"]))
    )
    rows = drawn.head(_CURVES).to_dict("records")
    n = len(model.group_names_)
    side = min(11.0, max(5.0, 3.6 + 0.09 * n))
    environment.filters["p_value"] = lambda p: p_value_text(p, 4).removeprefix("= ")
    return environment.get_template("graph.html").render(
        title=title,
        facts=_facts(model),
        reading=_reading(model),
        graph=_svg(lambda ax: CausalGraphDisplay.from_estimator(model, ax=ax), side, side + 0.5),
        weights=_svg(lambda ax: plot_weights(model, ax), side, side),
        edges=edges.to_dict("records"),
        tested="passes" in edges,
        curves=[
            {"row": row, "picture": _svg(partial(plot_effect, model, row), 2.9, 2.2)}
            for row in rows
        ],
    )


def _facts(model: GrangerGraph) -> list[tuple[str, str]]:
    end = "" if model.selection_ is None else model.selection_.end
    gap = max(result.gap for result in model.results_)
    facts = [
        ("series", f"{len(model.group_names_)}"),
        ("history", describe_lags(model.lags_)),
        ("training rows", f"{len(model.results_[0].solution.C)}"),
        ("λ", f"{model.lam_[0]:.3g} {end}".strip()),
        ("largest relative gap of a fit", f"{gap:.1e}"),
    ]
    if model.n_draws_:
        facts.append(("draws per series", f"{model.n_draws_}"))
    return facts


def _reading(model: GrangerGraph) -> str:
    if model.significance is None:
        return (
            "Nothing here is tested: weights rank the edges, and chance alone gives some weight. "
            "Edges above the largest gap between the sorted weights are drawn in colour."
        )
    return f"{verdict(model)}. P-values are adjusted by {_ADJUSTED[model.adjust]}."


def verdict(model: GrangerGraph) -> str:
    """Return how many edges pass a test by permutations, and how many of these may be false."""
    level, adjusted = float(model.level), model.adjusted_p_values_
    assert adjusted is not None
    passed, tested = int(model.edges_["passes"].sum()), int(np.isfinite(adjusted).sum())
    draws = f"{model.n_draws_} draws per series"
    if not passed:
        return (
            f"none of {tested} edges passes at {level:g}, {draws}: that does not show that no "
            "series drives another"
        )
    passing = f"{passed} of {tested} edges pass at {level:g}, {draws}"
    if model.p_values_doubted_:
        return (
            f"{passing}: how many of them are false is not known, because series look "
            "nonstationary or share a season and p-values may be too small"
        )
    if model.adjust == "bh":
        return f"{passing}: of those that pass, at most {100 * level:g} % are expected to be false"
    return f"{passing}: the chance that one of them is false is at most {level:g}"


def _svg(draw: Callable[[Axes], object], width: float, height: float) -> str:
    """Return what is drawn into Axes as an address that holds it."""
    content, _ = picture_bytes(lambda figure: draw(figure.subplots()), (width, height), "svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(content).decode('ascii')}"


def picture_bytes(
    draw: Callable[[Figure], object], size: tuple[float, float], ending: str
) -> tuple[bytes, bool]:
    """Return a picture in the format of an ending, and whether the font has all of its letters.

    Letters of an SVG are curves, unless the font lacks one: then they are text, which the reader's
    program draws in a font of its own. Other formats have squares there.
    """
    import matplotlib
    from matplotlib.figure import Figure

    def saved(letters: str, missing: Literal["error", "ignore"]) -> bytes:
        words = {"svg.hashsalt": "kernelweave", "svg.fonttype": letters}
        with matplotlib.rc_context(words), warnings.catch_warnings():
            warnings.filterwarnings(missing, "Glyph .* missing from", UserWarning)
            figure = Figure(figsize=size, layout="constrained")
            draw(figure)
            buffer = io.BytesIO()
            more = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 130}
            figure.savefig(buffer, format=ending, bbox_inches="tight", **more)
        return buffer.getvalue()

    try:
        return saved("path", "error"), True
    except UserWarning:
        content = saved("none", "ignore")
    # an escape in a name would end the document
    return printable(content.decode()).encode() if ending == "svg" else content, ending == "svg"
