"""How right predicted distributions of targets known by half are: sentences and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..displays.axes import write_thousands
from ..models import Model
from ..pages import Picture, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# of the calibration test: a smaller p-value is called a finding
_FINDING = 0.05
_NAMES = ("short", "middle", "long"), ("low", "middle", "high")


def survival_facts(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the measures of predicted distributions as (label, value); none of other models."""
    row = _measures(about)
    facts = []
    if "brier" in row:
        one = f"{row['brier_one_curve']:.3f} with one curve for all rows"
        facts.append((f"integrated Brier score; {one}", f"{row['brier']:.3f}"))
    if "calibration_p" in row:
        facts.append(("p-value of the calibration test", _p_text(row["calibration_p"])))
    return facts


def survival_chapter(model: Model, about: Mapping[str, Any]) -> dict[str, object] | None:
    """Return sentences and pictures on predicted distributions; ``None`` where there are none.

    They are of rows that folds held out, so there is nothing to show where fewer than two did.
    """
    machine = model.machine
    if not hasattr(machine, "_predictor"):
        return None
    from kernelweave.evidence.censored.fit import CensoredPredictor
    from kernelweave.evidence.censored.judging import held_out_targets

    predictor = machine._predictor
    if not isinstance(predictor, CensoredPredictor) or held_out_targets(predictor) is None:
        return None
    unit = f" ({about['unit']})" if about["unit"] else ""
    return {
        "sentences": _sentences(about, times=machine._task.times),
        "pictures": _pictures(machine, f"{about['target']}{unit}"),
    }


def _measures(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the fit expects of rows like these, empty where it has no measure."""
    return next(iter(about["new_rows"]), {})


def _p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def _sentences(about: Mapping[str, Any], *, times: bool) -> list[str]:
    row, (first, middle, last) = _measures(about), _NAMES[not times]
    sentences = []
    if "brier" in row:
        where = "times" if times else "values"
        sentences.append(
            f"The integrated Brier score is {row['brier']:.3f}; with one Kaplan-Meier curve for "
            f"all rows it would be {row['brier_one_curve']:.3f}. It is the mean squared difference "
            f"of the predicted probability and what happened, over the {where} between the 10 % "
            "and the 90 % quantile of the targets; lower is better."
        )
    if "calibration_p" in row:
        groups = f"rows predicted {first}, {middle} and {last}"
        verdict = f"There is no sign that the predicted distributions are wrong for {groups}"
        if row["calibration_p"] < _FINDING:
            verdict = f"The predicted distributions are not equally right for {groups}"
        p = _p_text(row["calibration_p"])
        sign = "" if p.startswith("<") else "= "
        then = "" if row["calibration_p"] >= _FINDING else ": take single probabilities with care"
        sentences.append(f"{verdict} (calibration test: p {sign}{p}){then}.")
    return sentences


def _pictures(machine: Any, response: str) -> list[Picture]:
    times = machine._task.times
    first, middle, last = _NAMES[not times]
    what = "survival probability" if times else "probability of a larger value"
    calibration = (
        f"Rows predicted {first}, {middle} and {last}, a third each: the mean predicted {what} "
        "(line), beside an estimate from these rows alone that uses no column (steps: Kaplan and "
        "Meier with 95 % intervals, or Turnbull where limits lie on both sides). Where a line "
        "stays outside its band, the probabilities are wrong. Each row was held out, and is "
        "predicted with the residuals of other folds."
    )
    curves = (
        f"The {what} of three rows that were held out, predicted {first}, {middle} and {last}. The "
        "bands show how well each curve is known: two posterior standard deviations of the "
        "prediction. They are no intervals for the target."
    )
    return [
        picture("Predicted and observed probabilities", calibration,
                partial(_draw_calibration, machine, response)),
        picture("Curves of three rows", curves, partial(_draw_curves, machine, response)),
    ]  # fmt: skip


def _draw_calibration(machine: Any, response: str, figure: Figure) -> None:
    from kernelweave.evidence import SurvivalCalibrationDisplay

    ax = figure.subplots()
    SurvivalCalibrationDisplay.from_estimator(machine, response=response, ax=ax)
    write_thousands(ax.xaxis)


def _draw_curves(machine: Any, response: str, figure: Figure) -> None:
    from kernelweave.evidence import SurvivalDisplay

    ax, names = figure.subplots(), _NAMES[not machine._task.times]
    labels = [f"predicted {name}" for name in names]
    SurvivalDisplay.from_held_out(machine, labels=labels, response=response, ax=ax)
    write_thousands(ax.xaxis)
