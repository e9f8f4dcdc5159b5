"""A second solve of a model's problem: an interval for the optimum beside its objective."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from kernelweave.kernels_core import (
    accepted_triples,
    algorithms,
    get_algorithm,
    relative_gap,
)

from .errors import CommandError
from .models import Model
from .progress import gap_bar

# sets of parameters to the algorithm that proves most about them
_BEST = {"sparse-simplex": "smkl-global", "spectahedron": "tkl-low-rank"}
# rounding of two solves of one problem
_SLACK = 1e-9


def certifier(name: str) -> str:
    """Return the algorithm that proves most about the problems of another.

    Parameters
    ----------
    name : str
        A registered algorithm.

    Returns
    -------
    str
        It or another that is installed.
    """
    known = algorithms()
    for _, _, constraint in accepted_triples(get_algorithm(name)):
        best = _BEST.get(constraint)
        if best in known:
            return str(best)
    return name


def certify_model(
    model: Model,
    X: npt.NDArray[Any],
    y: npt.NDArray[Any],
    *,
    algorithm: str | None,
    tol: float,
    max_time: float | None,
) -> dict[str, Any]:
    """Solve the model's problem again and bound how much better the best kernel could be.

    Parameters
    ----------
    model : Model
    X : ndarray of shape (n, n_features)
        The training data.
    y : ndarray of shape (n,)
        Their targets.
    algorithm : str or None
        What solves; `certifier` chooses without it.
    tol : float
        Relative gap of the second solve.
    max_time : float or None
        Seconds at most.

    Returns
    -------
    dict
        ``objective`` (an upper bound of the model's), ``lower_bound`` and ``upper_bound`` of the
        optimum, ``excess`` (objective over the lower bound, relative), and how it was found.

    Raises
    ------
    CommandError
        If the data are not those that the model was fitted on.
    """
    from sklearn.base import clone

    if len(X) != model.header.n_samples:
        raise CommandError(
            f"the model was fitted on {model.header.n_samples} samples, these are {len(X)}: pass "
            "the data it was fitted on"
        )
    name = certifier(model.header.algorithm) if algorithm is None else algorithm
    again = clone(model.estimator)
    steps = getattr(again, "steps", None)
    machine = again if steps is None else steps[-1][1]
    machine.set_params(algorithm=name, tol=tol, max_time=max_time)
    with gap_bar(f"solving again by {name}"):
        again.fit(X, y)
    result, old = machine.result_, model.machine.result_
    lower, upper = result.lower_bound, result.upper_bound
    room = _SLACK * max(abs(upper), abs(old.upper_bound))
    if lower > old.upper_bound + room or old.lower_bound > upper + room:
        raise CommandError(
            f"the optimum of these data is in [{lower:.6g}, {upper:.6g}], the model's in "
            f"[{old.lower_bound:.6g}, {old.upper_bound:.6g}]: they are not the data, or not the "
            "weights, that it was fitted on"
        )
    lower, upper = max(lower, old.lower_bound), min(upper, old.upper_bound)
    return {
        "objective": old.upper_bound,
        "lower_bound": lower,
        "upper_bound": upper,
        "excess": relative_gap(lower, old.upper_bound),
        "algorithm": name,
        "n_iter": result.n_iter,
        "seconds": result.seconds,
        "status": result.status.label,
    }
