"""Displays: what is drawn is what was computed, on axes of the caller or on new ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from kernelweave.kernels_core import History
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import ConvergenceDisplay, KernelWeightsDisplay
from kernelweave.workbench.displays.axes import SERIES
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((60, 3))
    return X, np.where((X[:, 0] > 0.6) ^ (X[:, 1] > 0.4), "in", "out")


@pytest.fixture(scope="module")
def fitted(points: tuple[np.ndarray, np.ndarray]) -> Any:
    return TessellatedKernelClassifier(C=1.0, tol=1e-2).fit(*points)


def history(lower: list[float], upper: list[float]) -> History:
    found = History()
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        found.append(lower=low, upper=high, value=high, seconds=i / 4, counts={"n_solves": 3 * i})
    return found


COURSE = history([-np.inf, 1.0, 2.0], [4.0, 3.0, 2.5])


def test_convergence_shows_both_bounds_and_the_gap() -> None:
    top, bottom = Figure().subplots(2, 1)
    display = ConvergenceDisplay(COURSE, tol=0.1, name="mine").plot(ax=top)
    upper, lower = (line.get_ydata().tolist() for line in display.lines_)
    assert upper == [4.0, 3.0, 2.5]
    assert lower == [1.0, 2.0]
    assert display.ax_ is top
    assert display.figure_ is top.figure
    display.plot(kind="gap", by="n_solves", ax=bottom)
    assert bottom.get_yscale() == "log"
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [2 / 3, 0.2])
    assert display.lines_[0].get_xdata().tolist() == [3, 6]
    assert display.lines_[0].get_label() == "mine"
    assert bottom.get_xlabel() == "solves"
    assert [text.get_text() for text in bottom.texts] == ["asked for: 0.1"]


def test_convergence_along_the_seconds_and_without_any_lower_bound() -> None:
    display = ConvergenceDisplay(history([-np.inf] * 2, [2.0, 1.0])).plot(by="seconds")
    assert len(display.lines_) == 1
    assert display.lines_[0].get_xdata().tolist() == [0.0, 0.25]


@pytest.mark.parametrize(
    ("options", "said"), [({"kind": "bars"}, "'bounds', 'gap'"), ({"by": "steps"}, "n_solves")]
)
def test_convergence_refuses_with_what_there_is(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ConvergenceDisplay(COURSE).plot(**options)


def test_a_fit_a_pipeline_and_a_search_are_drawn_alike(fitted: Any, points: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), TessellatedKernelClassifier(tol=1e-2)).fit(*points)
    search = GridSearchCV(TessellatedKernelClassifier(tol=0.1), {"C": [1.0]}, cv=2).fit(*points)
    for estimator, machine in (
        (fitted, fitted),
        (pipeline, pipeline[-1]),
        (search, search.best_estimator_),
    ):
        display = ConvergenceDisplay.from_estimator(estimator)
        assert display.lines_[0].get_ydata().tolist() == machine.result_.history.upper
        assert display.tol == machine.tol
    result = ConvergenceDisplay.from_result(fitted.result_, kind="gap")
    assert result.name == "tkl-low-rank"
    gap = fitted.result_.history.gap
    np.testing.assert_array_equal(result.lines_[0].get_ydata(), gap[np.isfinite(gap) & (gap > 0)])


def test_what_is_not_fitted_or_has_several_solves_is_refused(points: Any) -> None:
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(TessellatedKernelClassifier())
    X, y = points
    with pytest.raises(ValueError, match="must have learned a result_, and SVC has none"):
        ConvergenceDisplay.from_estimator(SVC().fit(X, y))
    three = np.digitize(X[:, 0], [0.3, 0.6])
    many = TessellatedKernelClassifier(multiclass="ovr", tol=0.1).fit(X, three)
    with pytest.raises(ValueError, match="multiclass='shared'"):
        ConvergenceDisplay.from_estimator(many)


def test_new_figures_fit_a_column_and_can_be_read(fitted: Any) -> None:
    made = [
        ConvergenceDisplay.from_estimator(fitted),
        KernelWeightsDisplay([0.5, 0.5]).plot(),
    ]
    for display in made:
        assert display.figure_.get_figwidth() == 3.5
        assert display.figure_.number in plt.get_fignums()
        assert display.ax_.get_xlabel() or display.ax_.get_xticklabels()[0].get_text()
        display.figure_.canvas.draw()
        for axes in display.figure_.axes:
            texts = [*axes.get_xticklabels(), *axes.get_yticklabels()]
            texts += [axes.xaxis.label, axes.yaxis.label]
            assert min(text.get_fontsize() for text in texts) >= 7
            box = axes.get_tightbbox()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= display.figure_.bbox.x1 + 1
            assert box.y1 <= display.figure_.bbox.y1 + 1


def test_weights_are_the_largest_on_top() -> None:
    names = ["linear", "rbf", "laplacian"]
    display = KernelWeightsDisplay([0.3, 0.7, 0.0], names).plot(max_kernels=2)
    assert [bar.get_width() for bar in display.bars_] == [0.3, 0.7]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["linear", "rbf"]
    assert "2 of 3" in display.ax_.get_xlabel()


def test_long_names_stand_above_their_bars() -> None:
    names = ["Polynomial(degree=3, gamma=0.01, coef0=1.0)", "Linear()"]
    display = KernelWeightsDisplay([0.3, 0.7], names).plot()
    assert [text.get_text() for text in display.ax_.texts] == names
    for text, bar in zip(display.ax_.texts, display.bars_, strict=True):
        assert text.get_window_extent().y0 >= bar.get_window_extent().y1 - 1


class Weighted(BaseEstimator):
    """Learns that the first of two kernels has weight 1/(1 + C)."""

    def __init__(self, C: float = 1.0, named: bool = False) -> None:
        self.C, self.named = C, named

    def fit(self) -> Weighted:
        self.result_ = None
        self.weights_ = np.array([1 / (1 + self.C), self.C / (1 + self.C)])
        if self.named:
            self.kernel_names_ = ["narrow", "wide"]
        return self


def test_weights_of_an_estimator_have_its_names() -> None:
    display = KernelWeightsDisplay.from_estimator(Weighted(3.0, named=True).fit())
    assert display.names == ["narrow", "wide"]
    assert display.weights.tolist() == [0.25, 0.75]
    pipeline = make_pipeline("passthrough", Weighted(3.0).fit())
    assert KernelWeightsDisplay.from_estimator(pipeline).names == ["K0", "K1"]


def test_weights_that_are_not_there_are_refused(fitted: Any) -> None:
    with pytest.raises(ValueError, match="TessellatedKernelClassifier has not"):
        KernelWeightsDisplay.from_estimator(fitted)
    with pytest.raises(ValueError, match="names must be 2"):
        KernelWeightsDisplay([1.0, 0.0], ["one"])
    with pytest.raises(ValueError, match="one row of numbers"):
        KernelWeightsDisplay(np.ones((2, 2)))


def test_series_differ_in_shape_and_each_is_seen_on_white() -> None:
    looks = {(each["marker"], each["linestyle"]) for each in SERIES}
    assert len(looks) == len(SERIES)
    grey = sorted(float(np.dot(to_rgb(each["color"]), [0.299, 0.587, 0.114])) for each in SERIES)
    assert grey[-1] < 0.8  # each is seen on white


def test_negative_weights_have_a_line_at_zero() -> None:
    display = KernelWeightsDisplay([0.5, -0.2]).plot()
    assert [line.get_xdata()[0] for line in display.ax_.lines] == [0.0]
    assert sorted(bar.get_width() for bar in display.bars_) == [-0.2, 0.5]
