"""Estimators as dataclasses: a class body lists parameters, and the rest follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

from ..parameters import (
    check_parameters,
    document,
    fitted,
    inherit_meaning,
    ordered_signature,
    parameter,
)
from ..result import SolveInterrupted

E = TypeVar("E", bound=BaseEstimator)


@contextmanager
def assigned_last(estimator: E) -> Iterator[E]:
    """Give a draft of an estimator to fit; the estimator becomes it when the block ends.

    One that an error or a Ctrl-C ends leaves the estimator as it was, an earlier fit included. A
    draft that holds the result of the `SolveInterrupted` is the best model so far, and is taken.
    """
    draft = object.__new__(type(estimator))
    draft.__dict__.update(estimator.__dict__)
    try:
        yield draft
    except SolveInterrupted as stop:
        if getattr(draft, "result_", None) is stop.result:
            estimator.__dict__ = draft.__dict__
        raise
    estimator.__dict__ = draft.__dict__


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, fitted))
class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of estimators that declare their parameters.

    A subclass declares each by `kernelweave.kernels_core.parameters.parameter`, and what a fit
    finds by `kernelweave.kernels_core.parameters.fitted`. The constructor, the checks of
    ``fit`` and the docstring's sections "Parameters" and "Attributes" are made from that. A new
    default alone keeps what the base says: ``tol: float = 1e-6``.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own_constructor = "__init__" in cls.__dict__
        inherit_meaning(cls)
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        if not own_constructor:
            setattr(cls.__init__, "__signature__", ordered_signature(cls))  # noqa: B010
        document(cls)

    _check_parameters = check_parameters
