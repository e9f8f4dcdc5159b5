"""How far a solve has come."""

from __future__ import annotations

import io
import math
import re

import pytest
from kernelweave.evidence import fit
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
    course, seen = Course([1.0] * 4), []
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
    told = capsys.readouterr().err
    assert ("compiles code for this computer, once" in told) == screen.is_terminal


def factor_off(course: Course, seconds: float, total: float) -> float:
    """Return by what factor the time left is wrong, if it is by the speed since the start."""
    left, expected = total - seconds, seconds * (1.0 - course.done) / course.done
    return max(expected / left, left / expected)


def worst_estimate(steps: list[tuple[float, Progress]]) -> float:
    """Return by what factor the time left is wrong at worst, from a quarter of the time on."""
    course, spent, total, worst = Course(), 0.0, sum(each for each, _ in steps), 1.0
    for seconds, said in steps:
        spent += seconds
        course.see(said)
        # near the end a moment is a factor too
        if 0.25 * total <= spent <= 0.75 * total:
            worst = max(worst, factor_off(course, spent, total))
    return worst


def evidence_fit(
    evaluations: list[int], seconds: list[float], n_noise: int
) -> list[tuple[float, Progress]]:
    """Return what parts of a fit say, and when: so many evaluations each, in so many seconds.

    `n_noise`: how many of the last learn the noise.
    """
    steps, n = [], len(evaluations) - n_noise
    told: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_notify", lambda _, share: told.append(share))
        for k in range(n):
            fit._report_parts(0, 0.0, fit._BEFORE_NOISE if n_noise else 1.0, k + 1, n)
        for k in range(n_noise):
            fit._report_parts(0, fit._BEFORE_NOISE, 1.0, k + 1, n_noise)
    for n, time, done in zip(evaluations, seconds, told, strict=True):
        one = Progress("evidence", 1, -math.inf, 1.0, math.inf, 0.0, 0.0)
        steps += [(time / n, one)] * n
        steps.append((0.0, Progress("evidence", 0, -math.inf, 0.0, math.inf, 0.0, 0.0, done)))
    return steps


@pytest.mark.parametrize(
    ("evaluations", "seconds", "n_noise"),
    [
        # as measured at 500, 900 and 1,200 rows with a number, and 500 with a class
        (
            [121, 153, 95, 68, 33, 24, 22, 6],
            [1.28, 0.98, 0.67, 1.12, 0.33, 0.3, 0.24, 0.36],
            4,
        ),
        (
            [161, 155, 177, 46, 113, 34, 79, 30],
            [2.56, 1.96, 2.56, 3.46, 1.57, 0.58, 0.92, 2.18],
            4,
        ),
        (
            [162, 171, 145, 48, 88, 36, 109, 16],
            [3.6, 2.88, 2.75, 6.16, 2.66, 0.92, 1.97, 3.92],
            4,
        ),
        ([98, 111, 87, 50], [0.49, 0.54, 0.41, 0.6], 0),
        # five folds
        ([110, 100, 120, 105, 100, 40], [2.0, 1.9, 2.2, 2.0, 2.0, 3.0], 0),
    ],
)
def test_the_time_left_is_known_after_a_quarter(
    evaluations: list[int], seconds: list[float], n_noise: int
) -> None:
    steps = evidence_fit(evaluations, seconds, n_noise)
    # the noise takes a seventh of some fits and a third of others, which nobody knows before
    assert worst_estimate(steps) <= (2.2 if n_noise else 1.5)


def test_folds_of_a_solve_with_bounds_take_less_than_the_whole() -> None:
    """Gaps that shrink by a factor a step; a fit without a third of the rows is 4/9 of one."""
    course, spent, total, worst = Course([1.0, *[(2 / 3) ** 2] * 3]), 0.0, 9.0 + 3 * 4.0, 1.0
    for seconds in (1.0, *[4 / 9] * 3):
        for i in range(10):
            course.see(Progress("any", i, 0.0, 1.0, 10.0 ** (-i / 3), 1e-3, 0.0))
            if 0.25 * total <= spent <= 0.9 * total:
                worst = max(worst, factor_off(course, spent, total))
            spent += seconds if i < 9 else 0.0
        course.end_fit()
    assert spent == pytest.approx(total)
    assert worst <= 1.5
