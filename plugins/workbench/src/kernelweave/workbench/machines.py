"""Find the kernel estimator inside a pipeline, a target scaler or a parameter search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelweave.kernels_core.arrays import Rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def unwrap_target_scaler(estimator: BaseEstimator) -> BaseEstimator:
    """Return the regressor inside a `TransformedTargetRegressor`, any other estimator as it is.

    `estimator`: fitted or not.
    """
    return getattr(estimator, "regressor_", getattr(estimator, "regressor", estimator))


def encoder_of(estimator: BaseEstimator) -> BaseEstimator:
    """Return the fitted column encoder, ``None`` if the estimator has none.

    `estimator`: fitted, takes tables, or is a pipeline whose first step does.
    """
    inside = unwrap_target_scaler(estimator)
    first = getattr(inside, "steps", [("", inside)])[0][1]
    return getattr(first, "encoder_", None)


def kernel_machine(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator that learns the kernel: a pipeline's last step, or itself.

    `estimator`: fitted or not. Has ``result_`` once fitted.
    """
    inside = unwrap_target_scaler(estimator)
    steps = getattr(inside, "steps", None)
    return inside if steps is None else steps[-1][1]


def unwrap_search(estimator: BaseEstimator) -> BaseEstimator:
    """Return the best estimator of a fitted search, anything else as it is.

    `estimator`: an estimator, a pipeline or a search over one.
    """
    return getattr(estimator, "best_estimator_", estimator)


def fitted_machine(estimator: BaseEstimator, attribute: str) -> BaseEstimator:
    """Return the kernel machine of something fitted, checked for one attribute.

    `estimator`: a kernel machine, a pipeline that ends in one, or a fitted search over either.
    `attribute`: what the caller is going to read, e.g. ``"result_"``. Fitted, with one (not a list)
    of that attribute. Raises NotFittedError if it is not fitted; ValueError if it has one of that
    attribute per class, or none at all.
    """
    from sklearn.utils.validation import check_is_fitted

    machine = kernel_machine(unwrap_search(estimator))
    check_is_fitted(machine)
    kind = type(machine).__name__
    if not hasattr(machine, attribute):
        raise ValueError(f"estimator must have learned a {attribute}, and {kind} has none")
    if isinstance(getattr(machine, attribute), list):
        raise ValueError(
            f"this {kind} has a {attribute} for each of several machines: fit it with "
            f"multiclass='shared', or draw one of the list"
        )
    return machine


def transformed(estimator: BaseEstimator, X: Rows) -> Rows:
    """Return samples as the kernel machine sees them, after the steps before it.

    `estimator`: fitted: a kernel machine, a pipeline, or a search over either; `X` of shape
    (n_samples, n_features): samples as ``estimator`` takes them. Unchanged where there is no
    pipeline.
    """
    for _, step in getattr(unwrap_target_scaler(unwrap_search(estimator)), "steps", [])[:-1]:
        if step not in (None, "passthrough"):
            X = step.transform(X)
    encode = getattr(kernel_machine(unwrap_search(estimator)), "encode", None)
    return X if encode is None else encode(X)
