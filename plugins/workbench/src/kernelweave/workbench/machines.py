"""Find the kernel estimator inside a pipeline, a target scaler or a parameter search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def unwrap_target_scaler(estimator: BaseEstimator) -> BaseEstimator:
    """Return the regressor inside a `TransformedTargetRegressor`, any other estimator as it is."""
    return getattr(estimator, "regressor_", getattr(estimator, "regressor", estimator))


def encoder_of(estimator: BaseEstimator) -> BaseEstimator:
    """Return the fitted column encoder of an estimator, or of its first step; else ``None``."""
    inside = unwrap_target_scaler(estimator)
    first = getattr(inside, "steps", [("", inside)])[0][1]
    return getattr(first, "encoder_", None)


def kernel_machine(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator that learns the kernel: a pipeline's last step, or itself."""
    inside = unwrap_target_scaler(estimator)
    steps = getattr(inside, "steps", None)
    return inside if steps is None else steps[-1][1]


def unwrap_search(estimator: BaseEstimator) -> BaseEstimator:
    """Return the best estimator of a fitted search, anything else as it is."""
    return getattr(estimator, "best_estimator_", estimator)


def fitted_machine(estimator: BaseEstimator, attribute: str) -> BaseEstimator:
    """Return the kernel machine of something fitted, checked for one attribute that is read next.

    Raises NotFittedError if it is not fitted; ValueError if it has a list of that attribute, one a
    class, or none at all.
    """
    from sklearn.utils.validation import check_is_fitted

    machine = kernel_machine(unwrap_search(estimator))
    check_is_fitted(machine)
    kind = type(machine).__name__
    if not hasattr(machine, attribute):
        raise ValueError(f"estimator must have learned a {attribute}, and {kind} has none")
    if isinstance(getattr(machine, attribute), list):
        raise ValueError(
            f"this {kind} has a {attribute} for each of several binary models: fit it with "
            f"multiclass='shared', or draw one of the list"
        )
    return machine
