"""Estimators as dataclasses: a class body lists parameters, and the rest follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self, TypeVar, dataclass_transform

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

    if TYPE_CHECKING:
        # of a draft: the estimator that it is a draft of, for a warm start
        _before: Self


E = TypeVar("E", bound=Estimator)


@contextmanager
def assigned_last(estimator: E) -> Iterator[E]:
    """Give a draft of an estimator to fit: what it has found at the block's end is the estimator's.

    The draft has the parameters alone, which it may change for itself. An error or a Ctrl-C leaves
    the estimator as it was, an earlier fit included; but a draft that holds the result of the
    `SolveInterrupted` is the best model so far, and is taken.
    """
    known = {field.name for field in fields(estimator) if field.init}
    draft = object.__new__(type(estimator))
    given = vars(estimator).items()
    draft.__dict__.update({name: value for name, value in given if name in known})
    draft._before = estimator
    try:
        yield draft
    except SolveInterrupted as stop:
        if getattr(draft, "result_", None) is not stop.result:
            raise
        _take(estimator, draft, known)
        raise
    _take(estimator, draft, known)


def _take(estimator: Estimator, draft: Estimator, known: set[str]) -> None:
    """Give an estimator all that its draft found, in place of an earlier fit, in one assignment."""
    own = {name: value for name, value in vars(estimator).items() if not name.endswith("_")}
    left = known | {"_before"}
    found = {name: value for name, value in vars(draft).items() if name not in left}
    estimator.__dict__ = own | found
