"""How far a solve has come."""

from __future__ import annotations

import io
import math
import re

import pytest
from kernelweave.workbench import progress
from kernelweave.workbench.progress import count_bar, fraction, gap_bar
from rich.console import Console


@pytest.mark.parametrize(
    ("first", "gap", "tol", "done"),
    [
        (1.0, 1.0, 1e-3, 0.0),
        (1.0, 1e-3, 1e-3, 1.0),
        (1.0, 1e-1, 1e-3, 1 / 3),
        (0.1, 0.2, 1e-3, 0.0),
        (math.inf, 0.2, 1e-3, 0.0),
        (0.5, 0.1, 0.0, 0.0),
        (0.5, 0.0, 0.0, 1.0),
    ],
)
def test_fraction(first: float, gap: float, tol: float, done: float) -> None:
    assert fraction(first, gap, tol) == pytest.approx(done)


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Standard error, as a terminal and as a pipe."""
    made = Console(file=io.StringIO(), force_terminal=request.param, width=100)
    monkeypatch.setattr(progress, "err", lambda: made)
    return made


def written(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.file.getvalue())


def test_a_solve_shows_its_gap_on_a_terminal_only(screen: Console) -> None:
    from kernelweave.spectahedron import TessellatedKernelClassifier
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    with gap_bar("learning"):
        model = TessellatedKernelClassifier(tol=0.05).fit(X[::3], y[::3])
    if not screen.is_terminal:
        assert written(screen) == ""
        return
    last = f"iteration {model.n_iter_}, gap {model.result_.gap:.1e}"
    assert "learning" in written(screen)
    assert last in written(screen)


def test_cells_are_counted_on_a_terminal_only(screen: Console) -> None:
    with count_bar("cells", 2) as advance:
        advance("wine")
        advance("iris")
    if screen.is_terminal:
        assert re.search(r"2/2 cells .*iris", written(screen))
    else:
        assert written(screen) == ""


def test_nothing_to_do_draws_nothing(screen: Console) -> None:
    with count_bar("cells", 0):
        pass
    assert written(screen) == ""
