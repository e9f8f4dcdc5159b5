"""Estimators as dataclasses: a class body lists parameters, and the rest follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

from ..kernels._parameters import nested_parameters, set_inside
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Also those of nested objects, of a list of them by position: ``kernels__0__gamma``.

        Returns
        -------
        dict of str to object
            The values.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        for name, value in list(params.items()) if deep else ():
            if isinstance(value, list | tuple):
                params.update(nested_parameters(name, value))
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, in a list of nested objects by position: ``kernels__0__gamma``.

        Parameters
        ----------
        **params : object
            The values.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If there is no parameter of a name; those that there are are named.
        """
        names = {field.name for field in fields(self) if field.init}
        inside = {}
        for key in list(params):
            name, _, inner = key.partition("__")
            value = params.get(name, getattr(self, name, None))
            if inner and name in names and not hasattr(value, "set_params"):
                inside[key] = params.pop(key)
        super().set_params(**params)
        for key, value in inside.items():
            name, _, inner = key.partition("__")
            setattr(self, name, set_inside(getattr(self, name), key, inner, value))
        return self

    if TYPE_CHECKING:
        # only a draft has it: the estimator that is being fitted, for a warm start
        _previous: Self


E = TypeVar("E", bound=Estimator)


@contextmanager
def assigned_last(estimator: E) -> Iterator[E]:
    """Give a draft of an estimator to fit, and move its fitted attributes over at the block's end.

    The draft has the parameters alone, and may change its own. An error or a Ctrl-C leaves the
    estimator as it was, with any earlier fit; only a draft that holds the result of a
    `SolveInterrupted` is taken, since it is the best model so far.
    """
    parameters = {field.name for field in fields(estimator) if field.init}
    draft = object.__new__(type(estimator))
    attributes = vars(estimator).items()
    draft.__dict__.update({name: value for name, value in attributes if name in parameters})
    draft._previous = estimator
    try:
        yield draft
    except SolveInterrupted as stop:
        if getattr(draft, "result_", None) is not stop.result:
            raise
        _take(estimator, draft, parameters)
        raise
    _take(estimator, draft, parameters)


def _take(estimator: Estimator, draft: Estimator, parameters: set[str]) -> None:
    """Replace an estimator's fitted attributes by those of its draft, in one assignment."""
    kept = {name: value for name, value in vars(estimator).items() if not name.endswith("_")}
    left_out = parameters | {"_previous"}
    learned = {name: value for name, value in vars(draft).items() if name not in left_out}
    estimator.__dict__ = kept | learned
