"""How right predicted distributions of targets known by half are: sentences and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from ..displays.axes import write_thousands
from ..models import Model
from ..pages import Picture, picture
from ..summaries import Summary
from .evaluation import HeldOutEvaluation

if TYPE_CHECKING:
    from kernelweave.evidence import SurvivalCalibrationDisplay
    from matplotlib.figure import Figure

# of the calibration test: a smaller p-value is called a finding
_FINDING = 0.05
# rows whose thirds are compared with curves of their own
_FEWEST_ROWS = 20
_NAMES = ("short", "middle", "long"), ("low", "middle", "high")


def survival_facts(about: Summary) -> list[tuple[str, str]]:
    """Return the measures of predicted distributions as (label, value); none of other models."""
    row = _measures(about)
    facts = []
    if "brier" in row:
        one = f"{row['brier_one_curve']:.3f} with one curve for all rows"
        facts.append((f"integrated Brier score; {one}", f"{row['brier']:.3f}"))
    if "calibration_p" in row:
        facts.append(("p-value of the calibration test", _p_text(row["calibration_p"])))
    return facts


def survival_chapters(
    model: Model, about: Summary, tested: HeldOutEvaluation | None
) -> list[dict[str, object]]:
    """Return sentences and pictures on predicted distributions; none of other models.

    Of the rows that folds held out, where two folds did, and of another table whose targets are
    known, where one is given.
    """
    from kernelweave.evidence.censored.judging import held_out_targets
    from kernelweave.evidence.censored.task import CensoredRegression

    machine = model.machine
    task = getattr(machine, "_task", None)
    if not isinstance(task, CensoredRegression):
        return []
    predictor, times, chapters = machine._predictor, task.times, []
    unit = f" ({about.unit})" if about.unit else ""
    response = f"{about.target}{unit}"
    if (judged := held_out_targets(predictor)) is not None:
        sentences, pictures = _sentences(_measures(about), times=times), []
        if (n := _n_telling(judged.ends)) < _FEWEST_ROWS:
            sentences.append(_too_few(n, "held out"))
        else:
            display = _calibration(machine, response)
            what = "Each row was held out, and is predicted with the residuals of other folds."
            pictures.append(_calibration_picture(display, what))
        pictures.append(_curves_picture(machine, response))
        chapters.append(_chapter("Predicted distributions", sentences, pictures))
    if tested is not None and tested.X is not None and tested.held_out.ends is not None:
        title = f"Predicted distributions of {tested.rows}"
        n = _n_telling(task.learned(tested.held_out.ends.T))
        if n < _FEWEST_ROWS:
            chapters.append(_chapter(title, [_too_few(n, "given")], []))
            return chapters
        display = _calibration(machine, response, tested.X, tested.held_out.ends)
        found = {} if display.measures is None else display.measures._asdict()
        row = {name: value for name, value in found.items() if not math.isnan(value)}
        pictures = [_calibration_picture(display, f"Computed on {tested.rows}.")]
        chapters.append(_chapter(title, _sentences(row, times=times), pictures))
    return chapters


def _n_telling(ends: FloatArray) -> int:
    """Return how many rows have a finite end, of shape (2, n) as learned."""
    return int(np.isfinite(ends).any(axis=0).sum())


def _too_few(n: int, which: str) -> str:
    such = "such row was" if n == 1 else "such rows were"
    return (
        f"Predicted and observed probabilities are compared from {_FEWEST_ROWS} rows on whose "
        f"target is known or has a limit; {n} {such} {which}."
    )


def _chapter(title: str, sentences: list[str], pictures: list[Picture]) -> dict[str, object]:
    return {"title": title, "sentences": sentences, "pictures": pictures}


def _measures(about: Summary) -> Mapping[str, Any]:
    """Return what the fit expects of rows like these, empty where it has no measure."""
    return next(iter(about.new_rows), {})


def _p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def _sentences(row: Mapping[str, Any], *, times: bool) -> list[str]:
    """Return what the measures of some rows say."""
    (first, middle, last), sentences = _NAMES[not times], []
    if "brier" in row:
        where = "times" if times else "values"
        sentences.append(
            f"The integrated Brier score is {row['brier']:.3f}; with one Kaplan-Meier curve for "
            f"all rows it would be {row['brier_one_curve']:.3f}. It is the mean squared difference "
            f"of the predicted probability and what happened, over the {where} between the 10 % "
            "and the 90 % quantile of the targets; lower is better."
        )
    if "calibration_p" in row:
        groups, p = f"rows predicted {first}, {middle} and {last}", _p_text(row["calibration_p"])
        told = f"p {p}" if p.startswith("<") else f"p = {p}"
        sentences.append(
            f"The calibration test finds nothing wrong with the distributions of {groups} ({told})."
            if row["calibration_p"] >= _FINDING
            else f"By the calibration test the distributions of {groups} are not all right "
            f"({told}): take single probabilities with care."
        )
    return sentences


def _calibration(
    machine: Any, response: str, X: Any = None, y: Any = None
) -> SurvivalCalibrationDisplay:
    """Return the curves of rows held out, or of others, drawn on no page yet."""
    from kernelweave.evidence import SurvivalCalibrationDisplay
    from matplotlib.figure import Figure

    hidden = Figure().subplots()
    return SurvivalCalibrationDisplay.from_estimator(machine, X, y, response=response, ax=hidden)


def _calibration_picture(display: SurvivalCalibrationDisplay, which: str) -> Picture:
    first, middle, last = _NAMES[not display.times]
    text = (
        f"Rows predicted {first}, {middle} and {last}, a third each: the mean predicted "
        f"{_quantity(display.times)} (line), beside an estimate from these rows alone that uses no "
        "column (steps: Kaplan and Meier with 95 % intervals, or Turnbull where limits lie on both "
        "sides). A band covers 95 % at each single point: where a line stays outside its band, the "
        f"probabilities are wrong by more than chance allows. {which}"
    )

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        display.plot(ax=ax)
        write_thousands(ax.xaxis)

    return picture("Predicted and observed probabilities", text, draw)


def _curves_picture(machine: Any, response: str) -> Picture:
    times = machine._task.times
    first, middle, last = _NAMES[not times]
    text = (
        f"The {_quantity(times)} of three rows that were held out, predicted {first}, {middle} and "
        f"{last}. The bands show how well each curve is known: two posterior standard deviations "
        "of the prediction. They are no intervals for the target."
    )
    return picture("Curves of three rows", text, partial(_draw_curves, machine, response))


def _quantity(times: bool) -> str:
    return "survival probability" if times else "probability of a larger value"


def _draw_curves(machine: Any, response: str, figure: Figure) -> None:
    from kernelweave.evidence import SurvivalDisplay

    ax, names = figure.subplots(), _NAMES[not machine._task.times]
    labels = [f"predicted {name}" for name in names]
    SurvivalDisplay.from_held_out(machine, labels=labels, response=response, ax=ax)
    write_thousands(ax.xaxis)
