"""What is drawn, what is not, and that nothing covers a name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.granger import (
    CausalGraphDisplay,
    GrangerGraph,
    graph_page,
    plot_effect,
    plot_weights,
)
from kernelweave.granger.displays import COLOURS, above_the_gap
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch


def arrows(ax: Any) -> list[FancyArrowPatch]:
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def table(weights: list[float], passes: list[bool] | None = None) -> pd.DataFrame:
    """Edges a → b, b → c, c → a, a → c with given weights."""
    rows = pd.DataFrame(
        {
            "source": list("abca")[: len(weights)],
            "target": list("bcac")[: len(weights)],
            "lag": [1, 2, 1, 3][: len(weights)],
            "effect": ["+", "-", "±", "+"][: len(weights)],
            "weight": weights,
        }
    )
    return rows if passes is None else rows.assign(passes=passes)


@pytest.fixture
def ax() -> Any:
    return Figure(figsize=(5, 5)).subplots()


def test_the_largest_gap_counts_zero_among_the_weights() -> None:
    assert above_the_gap([0.9, 0.8, 0.3, 0.25, 0.2]) == 2
    assert above_the_gap([0.5, 0.5]) == 2
    assert above_the_gap([]) == 0


def test_only_edges_that_pass_are_drawn(ax: Any) -> None:
    display = CausalGraphDisplay(
        table([0.2, 0.9, 0.5, 0.4], [True, False, True, False]), list("abc"), tested="at 0.05"
    ).plot(ax=ax)
    assert display.edges_["source"].tolist() == ["a", "c"]
    assert len(arrows(ax)) == 2
    assert [to_hex(arrow.get_edgecolor()) for arrow in arrows(ax)] == [
        COLOURS["+"].lower(),
        COLOURS["±"].lower(),
    ]
    assert ax.get_title() == "2 edges pass at 0.05"
    assert {"+ raises", "± raises or lowers"} <= set(legend(ax))
    assert "below the gap" not in legend(ax)


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_without_a_test_the_picture_says_so_and_greys_what_is_below_the_gap(ax: Any) -> None:
    display = CausalGraphDisplay(
        table([0.1, 0.9, 0.8, 0.05]), list("abc"), self_weights=[0.0, 1.0, 2.0]
    ).plot(ax=ax)
    assert display.edges_["weight"].tolist() == [0.9, 0.8]
    assert display.below_["weight"].tolist() == [0.1, 0.05]
    assert ax.get_title() == "unscreened: 2 edges above the largest gap"
    found = arrows(ax)
    assert len({to_hex(arrow.get_edgecolor()) for arrow in found[:2]}) == 1, "grey comes first"
    assert max(arrow.get_linewidth() for arrow in found) == pytest.approx(3.5)
    assert {"below the gap", "drives itself, 2", "number: lag"} <= set(legend(ax))
    shown = {text.get_text() for text in ax.texts}
    assert {"a", "b", "c", "1", "2"} == shown


def test_nodes_that_do_not_drive_themselves_are_no_weight_of_1(ax: Any) -> None:
    CausalGraphDisplay(table([0.9]), list("abc"), self_weights=np.zeros(3)).plot(ax=ax)
    assert "does not drive itself" in legend(ax)
    assert not any(text.startswith("drives itself") for text in legend(ax))


@pytest.mark.parametrize("n", [6, 30, 100])
def test_names_are_free_of_one_another_and_of_the_title(n: int) -> None:
    import matplotlib.pyplot as plt

    names = [f"node {j}" for j in range(n)]
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (2 * n, 2))
    edges = pd.DataFrame(
        {
            "source": [names[a] for a, _ in ends],
            "target": [names[(a + 1 + b) % n] for a, b in ends % (n - 1)],
            "lag": 1,
            "effect": "+",
            "weight": rng.uniform(0.5, 1.0, len(ends)),
            "passes": True,
        }
    )
    display = CausalGraphDisplay(edges, names).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts if text.get_rotation() % 90 < 1]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    title, low = display.ax_.title.get_window_extent(), display.ax_.get_legend().get_window_extent()
    every = [text.get_window_extent() for text in display.ax_.texts]
    assert not any(box.overlaps(title) or box.overlaps(low) for box in every)
    assert len(every) == n
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"names": ["a", "b"]}, "edges name 'c'"),
        ({"names": ["a", "b", "c"], "self_weights": [1.0]}, r"self_weights must have shape \(3,\)"),
    ],
)
def test_what_does_not_match_is_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CausalGraphDisplay(table([0.1, 0.9, 0.8]), **arguments)


@pytest.fixture(scope="module")
def model() -> GrangerGraph:
    X = np.random.default_rng(0).standard_normal((70, 3))
    X[1:, 0] += 3 * X[:-1, 1]
    frame = pd.DataFrame(X, columns=["price & tax", "rain", "sun"])
    return GrangerGraph(
        lam=0.3, cv=None, significance="permutation", n_draws=60, tol=1e-2, random_state=0
    ).fit(frame)


def test_a_fit_is_drawn_with_its_test(model: GrangerGraph, ax: Any) -> None:
    display = CausalGraphDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert re.match(r"\d edges? pass(es)? at level 0.05 \(60 draws\)", ax.get_title())
    assert display.edges_.iloc[0]["source"] == "rain"
    second = Figure().subplots()
    plot_weights(model, second)
    (dots,) = second.lines
    passing = model.edges_["passes"].sum()
    assert len(dots.get_xdata()) == passing


def test_an_effect_is_drawn_in_units_of_the_data(model: GrangerGraph, ax: Any) -> None:
    edge = {"source": "rain", "target": "price & tax", "lag": 1}
    plot_effect(model, edge, ax)
    x, y = ax.lines[-1].get_data()
    assert np.polyfit(x, y, 1)[0] == pytest.approx(3.0, rel=0.4)
    assert ax.get_xlabel() == "rain, 1 step before"
    for change in ({"source": "snow"}, {"lag": 2}):
        with pytest.raises(ValueError, match="must be one of"):
            plot_effect(model, edge | change, ax)


def test_the_page_lists_edges_by_p_value_and_draws_those_that_pass(model: GrangerGraph) -> None:
    page = graph_page(model, title="Rain <and> price")
    assert "<h1>Rain &lt;and&gt; price</h1>" in page
    sources = re.findall(r"<tr[^>]*><td>([^<]*)</td><td>([^<]*)</td>", page)
    edges = model.edges_
    known = edges[["source", "target"]].replace("price & tax", "price &amp; tax")
    assert sources == list(known.itertuples(index=False, name=None))
    assert page.count("<figcaption>") == edges["passes"].sum() > 0
    assert page.count("data:image/svg+xml;base64,") == 2 + edges["passes"].sum()
    assert "Benjamini and Hochberg" in page
    dark, paper = page.split("@media print")
    assert "img { filter: invert" in dark
    assert "img { filter: none" in paper
    assert "http" not in re.sub('data:image[^"]*', "", page), "needs nothing beside it"


def test_a_page_without_p_values_says_that_nothing_is_tested() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[1:, 0] += 3 * X[:-1, 1]
    model = GrangerGraph(lam=0.45, cv=None).fit(X)
    page = graph_page(model)
    above = above_the_gap(model.edges_["weight"])
    assert page.count("<figcaption>") == above == 1 < len(model.edges_)
    assert "Nothing here is tested" in page
    assert "adjusted p" not in page
