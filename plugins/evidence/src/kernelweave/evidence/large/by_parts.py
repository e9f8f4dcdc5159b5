"""Methods that answer for tables whose parts lie elsewhere as they do for tables in memory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TypeVar

from kernelweave.kernels_core.arrays import Rows

F = TypeVar("F", bound=Callable[..., object])


def by_parts(method: F) -> F:
    """Let a method of an estimator take dask tables: its answers are dask arrays.

    `method`: takes the estimator, rows, and settings.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def answer(self: object, X: Rows, *arguments: object, **settings: object) -> object:
        from .dask_parts import is_dask, predicted_parts

        if not is_dask(X):
            return method(self, X, *arguments, **settings)
        bound = signature.bind(self, X, *arguments, **settings).arguments
        _, _, *others = bound.items()
        return predicted_parts(self, method.__name__, X, **dict(others))

    return answer  # type: ignore[return-value]
