"""How a fit is shown: one summary, as a table or as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from kernelweave.evidence.scores import margin_of_error
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.registry import algorithms, components, get_algorithm, parts_for

from .machines import unwrap_target_scaler
from .models import Model
from .models.header import Header
from .scoring.comparison import Row, has_learned, verdict
from .scoring.held_out import HeldOut
from .scoring.metrics import Metric, Ranking, also_scored, has_rare_class, ranking_of
from .scoring.scores import FEWEST_OF_PAIRS, FEWEST_PARTS, Score, measure_name

# settings that JSON holds
_PLAIN = (type(None), bool, int, float, str, tuple)
# a relative gap, in per cent, that proves nothing worth saying
_FAR = 20.0
_MOST_REMARKS = 12  # columns: more would fill the terminal


def summary(model: Model) -> dict[str, Any]:
    """Return what a fit found, ready for JSON.

    Data, held-out score and other models', what columns are worth, bounds, gap, status, and the
    certificate's sentences. The functions below take it as `facts`.
    """
    header, machine = model.header, model.machine
    result, held_out = machine.result_, model.held_out
    settings = machine.get_params(deep=False)
    weighted = settings.get("class_weight") is not None
    usual = measure_name(header.task, weighted=weighted, half_known=bool(header.half_known))
    facts: dict[str, Any] = {
        "data": header.source,
        "n_samples": header.n_samples,
        "kernel_rows": header.kernel_rows,
        "n_features": len(header.columns),
        "columns": list(header.prepared),
        "target": header.target,
        "task": header.task,
        "half_known": header.half_known,
        "event": header.asked.get("event"),
        "classes": None if header.classes is None else list(header.classes),
        "model": header.model,
        "estimator": header.estimator,
        "algorithm": header.algorithm,
        "settings": {name: value for name, value in settings.items() if isinstance(value, _PLAIN)},
        "measure": header.metric or usual,
        "importance_measure": usual,
        "metric": header.metric,
        "unit": header.units.get(header.target, ""),
        "held_out": None,
        "comparison": header.comparison,
        "importance": list(header.importance),
        "new_rows": _with_intervals(header),
        "warning": header.warning,
        "kernels": _kernels(model),
        "views": views_of(model),
        # what folds chose
        "chosen": {
            name: getattr(machine, f"{name}_")
            for name, value in settings.items()
            if value == "cv" and hasattr(machine, f"{name}_")
        },
        "is_rule": is_rule(header.algorithm),
        "scaled_target": unwrap_target_scaler(model.estimator) is not model.estimator,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "gap": result.gap,
        "premise": result.premise,
        "tol": settings.get("tol"),
        "status": result.status.label,
        "message": result.status.value,
        # the result of evidence MKL is that of its last convex step
        "n_iter": machine.n_iter_ if hasattr(machine, "descent_") else result.n_iter,
    }
    ranking = None if held_out is None else ranking_of(held_out)
    rows = [Row(**row) for row in header.comparison["rows"]]
    facts["verdict"] = verdict(header.comparison["ours"], rows, facts["measure"], ranking)
    if held_out is not None:
        facts["held_out"] = _scored(held_out, Metric(header.metric), ranking, header)
        # the first line is of the very rows whose score is printed
        for row in facts["new_rows"][:1]:
            row |= {name: facts["held_out"][name] for name in ("score", "error", "low", "high")}
    elif of_sums := [row for row in facts["new_rows"][:1] if row["n_rows"]]:
        facts["held_out"] = _scored_by_sums(*of_sums)
    return facts | {"certificate": closing_sentences(facts), "proved": proved_sentence(facts)}


def _scored(
    held_out: HeldOut, metric: Metric, ranking: Ranking | None, header: Header
) -> dict[str, Any]:
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
    return {
        "score": scored.value,
        "error": scored.error,
        "n_parts": n_parts,
        "n_rows": n,
        "low": low,
        "high": high,
        "rows": str(held_out),
        "baseline": scored.value - ahead.value,
        "ahead": ahead.value,
        "ahead_error": ahead.error,
        "also": also,
        "learned": has_learned(ahead, n_parts, also),
        "rare": has_rare_class(Counter(held_out.truth.tolist())),
        "ranking": None if ranking is None else vars(ranking),
        "rare_ranking": str(ranking) if ranking and ranking.is_rare and ranking.informs else "",
    }


def _scored_by_sums(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what sums tell of rows left out: R², beside which that of the mean is 0."""
    score, error, n_parts = row["score"], row["error"], row["n_groups"]
    return {
        **{name: row[name] for name in ("score", "error", "n_rows", "low", "high")},
        "n_parts": n_parts,
        "rows": f"{row['n_rows']} rows, left out by sums",
        "baseline": 0.0,
        "ahead": score,
        "ahead_error": error,
        "also": {},
        "learned": bool(score > margin_of_error((error, n_parts))),
        "rare": False,
        "ranking": None,
        "rare_ranking": "",
    }


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


def relearn_sentence(model: Model) -> str:
    """Return what learning the kernel again would gain; empty where nobody knows, or after a fit.

    The estimator says it where rows came or went since its kernel was learned.
    """
    certificate = getattr(model.machine, "certificate_", None)
    found = getattr(certificate, "relearn", None) if model.header.kernel_rows else None
    if found is None:
        return ""
    lead = "is worth it: fit all rows anew" if found.is_worth_it else "is not worth it yet"
    told = f"gain {found.held_out:.3g}" if found.held_out > 0.0 else f"lose {-found.held_out:.3g}"
    return (
        f"Learning the kernel again {lead}. By a test on {found.n_rows} rows, half of which were "
        f"predicted with what the others teach, the log evidence of a target would {told} nats."
    )


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


def column_remarks(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return at most twelve remarks on columns, those on ignored columns first.

    Columns with the same remark share a line.
    """
    remarked = [row for row in facts["columns"] if row["sentence"]]
    remarked.sort(key=lambda row: row["done"] == "used")
    alike: dict[str, list[str]] = {}
    for row in remarked:
        alike.setdefault(f"{row['seen']}: {row['sentence']}", []).append(row["name"])
    lines: dict[str, str] = {}
    for remark, names in list(alike.items())[:_MOST_REMARKS]:
        first = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        lines[first] = remark
    if left := sum(map(len, list(alike.values())[_MOST_REMARKS:])):
        lines["..."] = f"and {left} more, see the report"
    return lines


def bounds_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows that say how good the learned kernel is for its objective.

    With what bounds are of, where that is not the problem itself.
    """
    tolerance = "" if facts["tol"] is None else f" (asked for {facts['tol']:g})"
    premise = facts.get("premise")
    return {
        "iterations": f"{facts['n_iter']}",
        "lower bound": f"{facts['lower_bound']:.8g}",
        "upper bound": f"{facts['upper_bound']:.8g}",
        "relative gap": f"{facts['gap']:.2e}{tolerance}",
        "status": facts["message"],
        **({"premise": premise} if premise else {}),
    }


def closing_sentences(facts: Mapping[str, Any]) -> str:
    """Return what is known of predictions of new rows, by the best evidence, and what is proved.

    Its ``test``, where it has one, counts more than the rows held out.
    """
    # what an estimate does not prove stands in the certificate, and not at the end of every page
    proved = "" if facts["algorithm"] == "evidence" else proved_sentence(facts)
    return f"{_known(facts)} {proved}".strip()


def _known(facts: Mapping[str, Any]) -> str:
    """Return how well new rows are predicted: by a test file, or by rows held out."""
    scored, tested = facts["held_out"], facts.get("test")
    # of rows that were learned from, a test says nothing of new ones
    if tested is not None and not tested["shares_rows"]:
        return _test_sentence(facts, tested, scored)
    if scored is None:
        return "How well new rows are predicted is not known yet."
    answer = "the mean" if facts["task"] == "regression" else "the most frequent class"
    answer = "chance" if facts["measure"] == "concordance" else answer
    if _is_no_better(facts):
        # beside other models the verdict has said it
        rows = facts["comparison"]["rows"]
        compared, baseline = bool(rows), scored["baseline"]
        for row in rows:
            baseline = row["score"] if row["name"] == "baseline" else baseline
        why = "the columns may not be informative, or there may be too few rows"
        if ranking := scored["rare_ranking"]:
            return "" if compared else ranking
        word = "not significantly" if scored["score"] > baseline else "no"
        text = f"{_expected(facts, scored)}, {word} better than {answer} ({baseline:z.3f})"
        return f"{text}." if compared else f"{text}: {why}."
    return f"{_expected(facts, scored)}{facts.get('warning', '')}."


def shown_kinds(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds of new rows that are shown.

    Those that were held out, rows like these, and those that are surely predicted worse.
    """
    rows = facts["new_rows"]
    usual = [row for row in rows[1:] if row["name"] == "rows like these" or row.get("worse")]
    return [*rows[:1], *usual]


def not_shown(facts: Mapping[str, Any]) -> str:
    """Return a sentence on the kinds of new rows that are not shown; empty if there are none."""
    shown = shown_kinds(facts)
    names = [row["name"] for row in facts["new_rows"] if row not in shown]
    # files of older versions do not say which kinds are worse
    if not names or not all("worse" in row for row in facts["new_rows"]):
        return ""
    most = 3 if len(names) > 4 else 4
    more = f" and {len(names) - most} more" if len(names) > most else ""
    what = "No other kind" if any(row.get("worse") for row in shown) else "No kind"
    verdict = f"{what} of new rows is expected to be predicted significantly worse"
    return f"{verdict} (checked: {', '.join(names[:most])}{more})."


def other_rows(facts: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the score of each kind of new rows that is shown and of what, where several are."""
    lines: dict[str, tuple[str, str]] = {}
    for row in shown_kinds(facts):
        parts = "blocks of time" if row["name"].startswith("later") else "groups"
        of = f" of {row['n_groups']} {parts}" if row["n_groups"] < row["n_rows"] else ""
        scored = Score(row["score"], row["error"]).formatted(3)
        # of groups and times that the fit was not told of, whose rows the kernel was learned from
        most = "at most " if lines and row["name"] != "rows like these" else ""
        lines[row["name"]] = f"{most}{scored}", f"on {_counted(facts, row, first=not lines)}{of}"
    return lines if len(lines) > 1 else {}


def _counted(facts: Mapping[str, Any], row: Mapping[str, Any], *, first: bool) -> str:
    """Return how many rows a score is of, and why the ``first`` is of fewer than are held out."""
    n, of = row["n_rows"], facts["n_samples"]
    text = f"{n} rows" if n == of else f"{n} of {of} rows"
    held_out = facts["held_out"]
    if first and held_out is not None and n < held_out["n_rows"]:
        return f"{text} (equal rows count once)"
    return text


def _test_sentence(
    facts: Mapping[str, Any], tested: Mapping[str, Any], scored: Mapping[str, Any] | None
) -> str:
    where = f"On {tested['rows']} rows of {tested['data']}"
    text = f"{where}: {facts['measure']} {_interval(tested)}"
    # of fewer rows, or groups, nobody knows how far their score is from that of others
    fewest = FEWEST_OF_PAIRS if facts["measure"] == "concordance" else FEWEST_PARTS
    if scored is None or tested["n_parts"] < fewest:
        return f"{text}."
    away = tested["score"] - scored["score"]
    errors = [(each["error"], each["n_parts"]) for each in (tested, scored)]
    if abs(away) <= margin_of_error(*errors):
        return f"{text}, in agreement with cross-validation ({scored['score']:z.3f})."
    if away > 0.0:
        return f"{text}, better than in cross-validation ({scored['score']:z.3f})."
    return (
        f"{text}, worse than in cross-validation ({scored['score']:z.3f}): the test rows differ "
        "from the training rows, so expect the lower score for new rows like them."
    )


def _is_no_better(facts: Mapping[str, Any]) -> bool:
    """Whether one answer for every row scores as high on the same rows, as the verdict says too."""
    lead = [facts["held_out"][name] for name in ("ahead", "ahead_error", "n_parts")]
    for row in facts["comparison"]["rows"]:
        if row["name"] == "baseline":
            lead = [row[name] for name in ("behind", "behind_error", "n_parts")]
    ahead, error, n_parts = lead
    return not ahead > margin_of_error((error, n_parts))


def _expected(facts: Mapping[str, Any], scored: Mapping[str, Any]) -> str:
    """Return the score to expect of new rows, from the held-out score, as a phrase."""
    measure = facts["measure"]
    if facts.get("metric") is None:
        measure = measure[:1].upper() + measure[1:]
    kinds = [
        row["name"] for row in facts.get("new_rows", ())[:1] if row["name"] != "rows like these"
    ]
    on = f"{measure} on similar new rows" + "".join(f" ({kind})" for kind in kinds)
    if scored["score"] == scored["high"]:
        is_known = scored["error"] > 0.0 and math.isfinite(scored["low"])
        above = f"above {scored['low']:.3f} (" if is_known else "not known ("
        return f"{on}: {above}a perfect score in cross-validation)"
    return f"{on}: about {_interval(scored)}"


def _interval(scored: Mapping[str, Any]) -> str:
    return Score(scored["score"], scored["error"]).with_interval(scored["low"], scored["high"])


def proved_sentence(facts: Mapping[str, Any]) -> str:
    """Return what is proved of a fit, and what is not."""
    if facts["algorithm"] == "evidence":
        kernel = "is a local optimum of the evidence"
        if facts["status"] != Status.STATIONARY.label:
            kernel = f"is what the search had found when it ended ({facts['status']})"
        return (
            "This is an estimate, not a proof: the predictor is optimal for the chosen kernel, "
            f"but the kernel {kernel}."
        )
    if premise := facts.get("premise"):
        return f"This is an estimate, not a proof: {premise}."
    if not facts["gap"] < float("inf"):
        return "This algorithm has no lower bound, so the distance to the optimum is not known."
    lower, upper = f"{facts['lower_bound']:.8g}", f"{facts['upper_bound']:.8g}"
    if facts["is_rule"]:
        return (
            f"The weights follow from a rule and were not optimised: their objective is between "
            f"{lower} and {upper}."
        )
    # beyond that, digits say nothing to anybody
    percent = 100.0 * max(facts["gap"], 1e-5)
    if percent > _FAR:
        return (
            f"The optimum is between {lower} and {upper}: too wide an interval to say how good the "
            f"learned kernel is."
        )
    return (
        f"On the training rows, the objective of the learned kernel ({upper}) is proved to be "
        f"within {percent:.2g} % of the optimum of its family (at least {lower})."
    )
