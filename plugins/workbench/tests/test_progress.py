"""How far a solve has come."""

from __future__ import annotations

import io
import math
import re

import pytest
from kernelweave.kernels_core import Progress
from kernelweave.workbench import progress
from kernelweave.workbench.progress import Course, count_bar, fit_bar, fraction
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


def test_a_solve_shows_its_gap_on_a_terminal_only(
    screen: Console, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kernelweave.spectahedron import TessellatedKernelClassifier
    from sklearn.datasets import load_iris

    monkeypatch.setattr(progress, "is_compiled", lambda: True)
    X, y = load_iris(return_X_y=True)
    with fit_bar("learning"):
        model = TessellatedKernelClassifier(tol=0.05).fit(X[::3], y[::3])
    if not screen.is_terminal:
        assert written(screen) == ""
        return
    assert "compiles" not in capsys.readouterr().err
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


def test_parts_and_evaluations_only_move_forward() -> None:
    course, seen = Course(), []
    for part in range(4):
        for _ in range(30):
            course.see(Progress("evidence", 1, -math.inf, 1.0, math.inf, 0.0, 0.0))
            seen.append(course.done)
        course.see(Progress("evidence", 0, -math.inf, 0.0, math.inf, 0.0, 0.0, (part + 1) / 4))
        seen.append(course.done)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(set(seen)) > 100


def test_several_fits_and_several_solves_of_one_move_forward() -> None:
    course, seen = Course(4), []
    for _ in range(4):
        for _ in range(3):
            for i, gap in enumerate((1.0, 0.1, 0.01)):
                course.see(Progress("any", i, 0.0, 1.0, gap, 0.01, 0.0))
                seen.append(course.done)
        course.end_fit()
        seen.append(course.done)
    assert seen == sorted(seen)
    assert seen[1] == pytest.approx(1 / 8)
    assert seen[-1] == 1.0


def test_the_first_fit_says_that_it_compiles(
    screen: Console, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "is_compiled", lambda: False)
    with fit_bar("learning"):
        pass
    assert ("compiles for this machine, once" in capsys.readouterr().err) == screen.is_terminal
