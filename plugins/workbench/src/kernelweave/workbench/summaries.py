"""What a fit found: one summary, which is shown as a table, a page or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.evidence.scores import margin_of_error
from kernelweave.kernels_core.registry import algorithms, components, get_algorithm, parts_for

from .machines import unwrap_target_scaler
from .models import Model
from .models.header import EVIDENCE, Comparison, Header
from .scoring.class_sets import SetsByClass
from .scoring.comparison import Row, has_learned, verdict
from .scoring.held_out import HeldOut
from .scoring.metrics import Metric, Ranking, also_scored, has_rare_class, ranking_of
from .scoring.scores import Coverage, Score, measure_name

# settings that JSON holds
_PLAIN = (type(None), bool, int, float, str, tuple)


@dataclass(frozen=True, kw_only=True)
class HeldOutScore:
    """The score of rows held out, and how far it is above one answer for all of them.

    - `score`, `error`, `low`, `high`: with its standard error and both ends of its interval
    - `n_rows`, `n_parts`, `rows`: of how many rows, how many groups of them, and which, in words
    - `baseline`, `ahead`, `ahead_error`: the score of one answer, and the lead over it
    - `also`: further scores by name
    - `learned`: whether the lead is sure; `rare`: whether one of two classes is rare
    - `ranking`, `rare_ranking`: how the rarer of two classes is told, and what is said of it
    """

    score: float
    error: float
    n_parts: int
    n_rows: int
    low: float
    high: float
    rows: str
    baseline: float
    ahead: float
    ahead_error: float
    also: Mapping[str, float]
    learned: bool
    rare: bool
    ranking: Mapping[str, object] | None = None
    rare_ranking: str = ""


@dataclass(frozen=True, kw_only=True)
class FileScore:
    """The score of the rows of a test file, ``data``; ``shares_rows``: with the training rows."""

    data: str
    rows: int
    score: float
    error: float
    n_parts: int
    low: float
    high: float
    also: Mapping[str, float]
    coverage: Sequence[Coverage] = ()
    by_class: SetsByClass | None = None
    shares_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a fit found: of what data, how well it predicts, what it learned, what is proved.

    What the header says has the header's names. Beyond it:

    - `measure`, `importance_measure`: what the score is, and what columns are worth
    - `held_out`: ``None`` where no row was held out; `verdict`: the model beside others
    - `new_rows`: the header's, each with an interval, ``low`` to ``high``
    - `kernels`, `views`: weights of a list of kernels, and of views, the largest first
    - `chosen`: settings that folds chose
    - `is_rule`: whether weights follow from a rule; `scaled_target`: whether targets were scaled
    - `lower_bound`, `upper_bound`, `gap`, `premise`, `tol`: of the certificate
    - `status`, `message`, `n_iter`: how the fit ended
    - `test`: of a test file, where there is one
    """

    data: str
    n_samples: int
    kernel_rows: int
    n_features: int
    columns: Sequence[Mapping[str, Any]]
    target: str
    task: str
    half_known: str
    event: Mapping[str, object] | None
    classes: Sequence[object] | None
    model: str
    estimator: str
    algorithm: str
    settings: Mapping[str, object]
    measure: str
    importance_measure: str
    metric: str | None
    unit: str
    held_out: HeldOutScore | None
    comparison: Comparison
    importance: Sequence[Mapping[str, Any]]
    new_rows: Sequence[Mapping[str, Any]]
    warning: str
    kernels: Mapping[str, float]
    views: Sequence[Mapping[str, Any]]
    chosen: Mapping[str, Any]
    is_rule: bool
    scaled_target: bool
    lower_bound: float
    upper_bound: float
    gap: float
    premise: str
    tol: float | None
    status: str
    message: str
    n_iter: int
    verdict: str
    test: FileScore | None = None

    @property
    def is_estimate(self) -> bool:
        """Whether the kernel was chosen by the evidence, of which nothing is proved."""
        return self.algorithm == EVIDENCE


def summary(model: Model) -> Summary:
    """Return what a fit found."""
    header, machine = model.header, model.machine
    result, settings = machine.result_, machine.get_params(deep=False)
    weighted = settings.get("class_weight") is not None
    usual = measure_name(header.task, weighted=weighted, half_known=bool(header.half_known))
    measure, new_rows = header.metric or usual, _with_intervals(header)
    ranking = None if model.held_out is None else ranking_of(model.held_out)
    compared = [Row(**row) for row in header.comparison["rows"]]
    return Summary(
        data=header.source,
        n_samples=header.n_samples,
        kernel_rows=header.kernel_rows,
        n_features=len(header.columns),
        columns=list(header.prepared),
        target=header.target,
        task=header.task,
        half_known=header.half_known,
        event=header.asked.get("event"),
        classes=None if header.classes is None else list(header.classes),
        model=header.model,
        estimator=header.estimator,
        algorithm=header.algorithm,
        settings={name: value for name, value in settings.items() if isinstance(value, _PLAIN)},
        measure=measure,
        importance_measure=usual,
        metric=header.metric,
        unit=header.units.get(header.target, ""),
        held_out=_held_out_score(model, ranking, new_rows),
        comparison=header.comparison,
        importance=list(header.importance),
        new_rows=new_rows,
        warning=header.warning,
        kernels=_kernels(model),
        views=views_of(model),
        chosen={
            name: getattr(machine, f"{name}_")
            for name, value in settings.items()
            if value == "cv" and hasattr(machine, f"{name}_")
        },
        is_rule=is_rule(header.algorithm),
        scaled_target=unwrap_target_scaler(model.estimator) is not model.estimator,
        lower_bound=result.lower_bound,
        upper_bound=result.upper_bound,
        gap=result.gap,
        premise=result.premise,
        tol=settings.get("tol"),
        status=result.status.label,
        message=result.status.value,
        # the result of evidence MKL is that of its last convex step
        n_iter=machine.n_iter_ if hasattr(machine, "descent_") else result.n_iter,
        verdict=verdict(header.comparison["ours"], compared, measure, ranking),
    )


def _held_out_score(
    model: Model, ranking: Ranking | None, new_rows: list[dict[str, Any]]
) -> HeldOutScore | None:
    """Return the score of rows held out, where there are any; the first of `new_rows` takes it."""
    if model.held_out is None:
        of_sums = [row for row in new_rows[:1] if row["n_rows"]]
        return _scored_by_sums(*of_sums) if of_sums else None
    found = _scored(model.held_out, Metric(model.header.metric), ranking, model.header)
    # the first line is of the very rows whose score is printed
    for row in new_rows[:1]:
        row |= {"score": found.score, "error": found.error, "low": found.low, "high": found.high}
    return found


def _scored(
    held_out: HeldOut, metric: Metric, ranking: Ranking | None, header: Header
) -> HeldOutScore:
    """Return the scores of rows held out, and how far they are above one answer for all."""
    scored, ahead = metric.score(held_out), metric.lead(held_out, held_out.of_one_answer)
    n, n_folds = len(held_out.truth), len(np.unique(held_out.fold))
    n_parts = held_out.n_parts
    # of whole groups the model itself knows the error, which is larger than that over rows
    for row in header.new_rows[:1]:
        scored = scored._replace(error=max(scored.error, row["error"]))
        n_parts = min(n_parts, row["n_groups"])
    low, high = _interval_of_new(scored, metric, header, n, n_folds, n_parts)
    also = also_scored(held_out)
    return HeldOutScore(
        score=scored.value,
        error=scored.error,
        n_parts=n_parts,
        n_rows=n,
        low=low,
        high=high,
        rows=str(held_out),
        baseline=scored.value - ahead.value,
        ahead=ahead.value,
        ahead_error=ahead.error,
        also=also,
        learned=has_learned(ahead, n_parts, also),
        rare=has_rare_class(Counter(held_out.truth.tolist())),
        ranking=None if ranking is None else vars(ranking),
        rare_ranking=str(ranking) if ranking and ranking.is_rare and ranking.informs else "",
    )


def _scored_by_sums(row: Mapping[str, Any]) -> HeldOutScore:
    """Return what sums tell of rows left out: R², beside which that of the mean is 0."""
    score, error, n_parts = row["score"], row["error"], row["n_groups"]
    return HeldOutScore(
        **{name: row[name] for name in ("score", "error", "n_rows", "low", "high")},
        n_parts=n_parts,
        rows=f"{row['n_rows']} rows, left out by sums",
        baseline=0.0,
        ahead=score,
        ahead_error=error,
        also={},
        learned=bool(score > margin_of_error((error, n_parts))),
        rare=False,
    )


def _with_intervals(header: Header) -> list[dict[str, Any]]:
    """Return what to expect of each kind of new rows, each left out by group or block."""
    metric, rows = Metric(header.metric), []
    for row in header.new_rows:
        n, n_parts = row["n_rows"], row["n_groups"]
        scored = Score(row["score"], row["error"])
        low, high = _interval_of_new(scored, metric, header, n, max(1, n_parts), n_parts)
        rows.append({**row, "low": low, "high": high})
    return rows


def _interval_of_new(
    scored: Score, metric: Metric, header: Header, n_rows: int, n_folds: int, n_parts: int
) -> tuple[float, float]:
    """Return the interval of a score of rows that were left out in so many turns."""
    n_trained = max(header.n_samples - n_rows / n_folds, 1)
    share = n_rows / n_trained
    half_known = bool(header.half_known)
    return metric.interval(scored, header.task, n_parts, share, half_known=half_known)


def _kernels(model: Model) -> dict[str, float]:
    """Return the kernels that a list was narrowed to, with their weights, the largest first."""
    from .displays import learned_weights

    if isinstance(getattr(model.machine, "result_", None), list):
        return {}
    weights, names = learned_weights(model.machine) or ((), None)
    if names is None:
        return {}
    kept = {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight > 0}
    return dict(sorted(kept.items(), key=lambda at: -at[1]))


def views_of(model: Model) -> list[dict[str, object]]:
    """Return the views that a file named, with their weights and columns, the largest first.

    Empty without views, and where each class has weights of its own.
    """
    weights = getattr(model.machine, "view_weights_", None)
    named = getattr(getattr(model.machine, "kernels", None), "columns", None)
    if not isinstance(weights, dict) or not isinstance(named, dict):
        return []
    rows = [
        {"name": name, "weight": weight, "columns": list(getattr(named[name], "columns", ()))}
        for name, weight in weights.items()
    ]
    return sorted(rows, key=lambda row: -float(str(row["weight"])))


def is_rule(algorithm: str) -> bool:
    """Whether the weights of an algorithm follow from a rule: its sets are single points."""
    if algorithm not in algorithms():
        return False
    sets = components("constraints")
    names = parts_for(get_algorithm(algorithm), "constraints")
    return bool(names) and all(getattr(sets[name].load(), "is_point", False) for name in names)
