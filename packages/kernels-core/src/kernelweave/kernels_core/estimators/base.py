"""Estimators as dataclasses: a class body lists parameters, and the rest follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform

from sklearn.base import BaseEstimator

from ..parameters import (
    check_parameters,
    document,
    fitted,
    inherit_meaning,
    ordered_signature,
    parameter,
)


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
