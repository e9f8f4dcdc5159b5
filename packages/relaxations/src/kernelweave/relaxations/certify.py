"""How far fitted sparse kernel weights are from the best there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelweave.kernels_core.result import Certificate, check_bounds
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.mkl_sparse.algorithm import oracle_of
from kernelweave.qp_smo import Proof

from .branch_and_bound import solve_global
from .proof import prove_sparse

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_LOWER = "branch and bound over the supports, every bound from feasible dual points"
_UPPER = "the primal value of the learner at the fitted weights"


def certify(
    estimator: BaseEstimator, *, tol: float = 1e-4, max_time: float | None = None
) -> Certificate:
    """Bound the global optimum from below and compare the fitted model's objective with it.

    Parameters
    ----------
    estimator : SparseMKLClassifier or SparseMKLRegressor
        Fitted; it kept the problem that it solved as ``problem_``.
    tol : float
        Relative gap at which the search for the optimum may stop.
    max_time : float, optional
        Seconds.

    Returns
    -------
    Certificate
        ``upper_bound`` is the fitted model's objective, ``gap`` how much it may be improved.

    Raises
    ------
    TypeError
        If the estimator keeps no sparse kernel problem, or one per class or pair.
    NotPSDError
        If a kernel is indefinite (``psd="keep"``): there is no bound to prove.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> from kernelweave.relaxations import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseMKLClassifier(k0=1).fit(X[:100], y[:100])
    >>> certify(model).lower_bound <= model.result_.upper_bound
    True
    """
    optimum = solve_global(**problem_of(estimator, "certify"), tol=tol, max_time=max_time)
    upper = float(estimator.result_.upper_bound)
    lower = max(optimum.lower_bound, float(estimator.result_.lower_bound))
    check_bounds("certify", lower, upper)
    return Certificate(min(lower, upper), upper, _LOWER, _UPPER)


def prove(estimator: BaseEstimator, *, tol: float = 1e-4, max_time: float | None = None) -> Proof:
    """Prove the global optimum of a fitted model's problem by a file that anybody can check.

    Parameters
    ----------
    estimator : SparseMKLClassifier or SparseMKLRegressor
        Fitted; it kept the problem that it solved as ``problem_``.
    tol : float
        Relative gap to prove.
    max_time : float, optional
        Seconds.

    Returns
    -------
    Proof
        ``proof.save(path)`` writes what ``kernelweave-check`` reads.

    Raises
    ------
    TypeError, NotPSDError
        As `certify`.
    UnprovedError
        If the gap is not closed within the time, or rounding forbids it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> from kernelweave.relaxations import prove
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseMKLClassifier(k0=1).fit(X[:60], y[:60])
    >>> prove(model).lower <= model.result_.upper_bound
    True
    """
    return prove_sparse(**problem_of(estimator, "prove"), tol=tol, max_time=max_time)


def problem_of(estimator: BaseEstimator, asking: str) -> dict[str, Any]:
    """Return the sparse kernel problem of a fitted model, as `solve_global` takes it.

    Raises TypeError where there is none; ``asking`` is the function that needs it.
    """
    if hasattr(estimator, "estimators_"):
        raise TypeError(
            f"multiclass={estimator.multiclass!r} solved a problem per part: {asking} each of "
            "estimator.estimators_"
        )
    problem: Any = getattr(estimator, "problem_", None)
    if getattr(getattr(problem, "constraint", None), "name", None) != "sparse-simplex":
        raise TypeError(
            f"{asking} takes a fitted SparseMKLClassifier or SparseMKLRegressor, got "
            f"{_describe_estimator(estimator)}"
        )
    oracle, _ = oracle_of(problem)
    return {
        "grams": oracle.grams,
        "y": problem.targets,
        "learner": problem.learner,
        "lam": problem.constraint.lam,
        "k0": problem.constraint.k0,
        "views": problem.constraint.views,
        "n_views": problem.constraint.n_views,
        "sample_weight": problem.sample_weight,
    }


def _describe_estimator(estimator: BaseEstimator) -> str:
    """Return what an estimator is, if not a fitted sparse model, and what certifies it instead."""
    kind = type(estimator).__name__
    if hasattr(estimator, "certificate_"):
        return f"a fitted {kind}: its own certificate_ says how good it is"
    if isinstance(estimator, SparseMKLClassifier | SparseMKLRegressor):
        return f"a {kind} that is not fitted: fit it first"
    if any(
        "certificate_" in vars(each).get("__annotations__", {}) for each in type(estimator).mro()
    ):
        return f"a {kind} that is not fitted: its own certificate_ says how good it is once it is"
    return f"{kind}: fit one of these first"
