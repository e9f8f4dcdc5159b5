"""How a fit is shown: one summary, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelweave.kernels_core.registry import components, get_algorithm, parts_for

from .models import Model

# a relative gap, in per cent, that proves nothing worth saying
_FAR = 20.0
_COLUMN = ("name", "seen", "done", "sentence")


def summary(model: Model) -> dict[str, Any]:
    """Return what a fit found, ready for JSON.

    Parameters
    ----------
    model : Model
        Fitted.

    Returns
    -------
    dict
        Data, algorithm, bounds, gap, status, times and the certificate's sentence.
    """
    header, result = model.header, model.machine.result_
    return {
        "data": header.source,
        "n_samples": header.n_samples,
        "n_features": len(header.columns),
        "columns": [dict(zip(_COLUMN, row, strict=True)) for row in header.prepared],
        "target": header.target,
        "task": header.task,
        "classes": None if header.classes is None else list(header.classes),
        "estimator": header.estimator,
        "algorithm": header.algorithm,
        "is_rule": _is_rule(header.algorithm),
        "C": model.machine.C,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "gap": result.gap,
        "tol": model.machine.tol,
        "status": result.status.label,
        "message": result.status.value,
        "n_iter": result.n_iter,
        "seconds": result.seconds,
        "certificate": str(model.machine.certificate_),
    }


def _is_rule(algorithm: str) -> bool:
    """Whether the weights of an algorithm follow from a rule: its sets are single points."""
    sets = components("constraints")
    names = parts_for(get_algorithm(algorithm), "constraints")
    return bool(names) and all(getattr(sets[name].load(), "is_point", False) for name in names)


def told_columns(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of which there is something to say, with what.

    Parameters
    ----------
    found : mapping
        A `summary`.

    Returns
    -------
    dict of str to str
        Plain numbers without gaps are not in it.
    """
    return {
        row["name"]: f"{row['seen']}: {row['sentence']}"
        for row in found["columns"]
        if row["sentence"]
    }


def bounds_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows that say how good the learned kernel is.

    Parameters
    ----------
    found : mapping
        A `summary`.

    Returns
    -------
    dict of str to str
        Iterations, bounds, gap, seconds, status.
    """
    return {
        "iterations": f"{found['n_iter']}",
        "lower bound": f"{found['lower_bound']:.8g}",
        "upper bound": f"{found['upper_bound']:.8g}",
        "relative gap": f"{found['gap']:.2e} (asked for {found['tol']:g})",
        "seconds": f"{found['seconds']:.2f}",
        "status": f"{found['message']}",
    }


def certificate_sentence(found: Mapping[str, Any]) -> str:
    """Return what the bounds prove, in one sentence.

    Parameters
    ----------
    found : mapping
        A `summary`.

    Returns
    -------
    str
        For people.
    """
    if not found["gap"] < float("inf"):
        return "No lower bound is claimed, so nothing is proved about the distance to the optimum."
    lower, upper = f"{found['lower_bound']:.8g}", f"{found['upper_bound']:.8g}"
    if found["is_rule"]:
        return (
            f"The weights follow a rule, and no better ones were looked for: the objective at them "
            f"lies between {lower} and {upper}."
        )
    percent = 100.0 * max(found["gap"], 0.0)
    if percent > _FAR:
        return (
            f"The optimum lies between {lower} and {upper}: too far apart to say how good the "
            f"learned kernel is."
        )
    return (
        f"No kernel of this family has an objective below {lower}; the one learned has at most "
        f"{upper}, so it is proved to be within {percent:.2g} % of the best."
    )
