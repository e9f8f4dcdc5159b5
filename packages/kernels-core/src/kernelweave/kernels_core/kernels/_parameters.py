"""Objects that are their constructor's parameters: copy, compare, print and search over them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import Points, RealArray, Rows, is_sparse

# the fourth power is still a number
LEAST = 1e-75


def _names(cls: type) -> tuple[str, ...]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return ()
    return _parameters_of(cls.__init__)  # type: ignore[misc]


@cache
def _parameters_of(method: Callable[..., None]) -> tuple[str, ...]:
    return tuple(inspect.signature(method).parameters)[1:]


class Parameters:
    """A value made of its constructor's parameters, stored under their own names.

    ``sklearn.base.clone``, ``GridSearchCV`` and nested ``set_params`` work on it although
    scikit-learn is not imported. Elements of a list parameter are reached by position:
    ``kernels__0__gamma``.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, with those of nested objects when ``deep``."""
        out: dict[str, object] = {}
        for name in _names(type(self)):
            value = getattr(self, name)
            out[name] = value
            if deep:
                out.update(nested_parameters(name, value))
        return out

    def set_params(self, **params: object) -> Self:
        """Change parameters in place, nested ones by ``name__inner``; return the object.

        Raises ValueError if a name is not a parameter, with those that are.
        """
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in _names(type(self)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"its parameters are {', '.join(_names(type(self))) or 'none'}"
                )
            if inner:
                setattr(self, name, set_inside(getattr(self, name), key, inner, value))
            else:
                setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, n), getattr(other, n)) for n in _names(type(self)))

    def __hash__(self) -> int:
        return hash((type(self), *(_hashable(getattr(self, n)) for n in _names(type(self)))))

    def __repr__(self) -> str:
        inner = ", ".join(f"{n}={_short(getattr(self, n))}" for n in _names(type(self)))
        return f"{type(self).__name__}({inner})"


def nested_parameters(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of the parameters inside a value, in a list by position."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if isinstance(item, Parameters):
                yield f"{name}__{index}", item
            yield from nested_parameters(f"{name}__{index}", item)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        for inner, item in value.get_params(deep=True).items():
            yield f"{name}__{inner}", item


def set_inside(owner: object, key: str, inner: str, value: object) -> object:
    """Set ``inner`` of ``owner`` and return the owner (a new tuple where it is one)."""
    if hasattr(owner, "set_params"):
        owner.set_params(**{inner: value})
        return owner
    head, _, rest = inner.partition("__")
    if not isinstance(owner, (list, tuple)) or not head.isdigit() or int(head) >= len(owner):
        name = key.removesuffix(f"__{inner}")
        places = range(len(owner)) if isinstance(owner, (list, tuple)) else ()
        wanted = f"give {name} a list of kernels such as [RBF(gamma=1.0)] first"
        if len(places):
            wanted = f"{name} has {', '.join(f'{name}__{place}' for place in places)}"
        elif isinstance(owner, str):
            wanted = f"{owner!r} is a name: give a kernel such as RBF(gamma=1.0) instead"
        raise ValueError(f"{key!r} names nothing inside {_short(owner)}: {wanted}")
    items = list(owner)
    items[int(head)] = set_inside(items[int(head)], key, rest, value) if rest else value
    return type(owner)(items)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and bool(a.dtype == b.dtype and np.array_equal(a, b))
    if hasattr(a, "tocsr") and hasattr(b, "tocsr"):
        return bool(a.shape == b.shape and (a != b).nnz == 0)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, partial) and isinstance(b, partial):
        return all(_same(x, y) for x, y in zip(_bound(a), _bound(b), strict=True))
    return bool(a == b)


def _bound(function: partial[Any]) -> tuple[object, ...]:
    """Return what two equal `functools.partial` have in common: copies of one are not equal."""
    return function.func, function.args, function.keywords


def _hashable(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if hasattr(value, "tocsr"):
        return (value.shape, value.nnz)
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    if isinstance(value, partial):
        return _hashable(_bound(value))
    return value if isinstance(value, Hashable) else type(value)


def _short(value: object) -> str:
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array(shape={value.shape})"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    return repr(value)


def is_vector(X: object) -> bool:
    """Tell whether ``X`` is one dense sample: a 1-dimensional array or a flat sequence."""
    if hasattr(X, "ndim"):
        return bool(X.ndim == 1) and not is_sparse(X)
    try:
        return np.asarray(X).ndim == 1
    except ValueError:  # rows of different lengths: check_samples says so
        return False


def check_size(X: Points) -> None:
    """Raise if all features are so small that products of them underflow."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max()) if values.size else 0.0
    if 0.0 < largest < LEAST:
        raise ValueError(
            f"X has values up to {largest:.3g} in size, too small: their products underflow, scale "
            f"the features, whose largest should be {LEAST:g} or more"
        )


def check_samples(X: Rows, what: str = "X", *, dtype: DTypeLike | None = None) -> Points:
    """Return samples as a finite C-contiguous float array, or as sorted CSR.

    float32 stays float32, everything else becomes float64, unless ``dtype`` says otherwise. Raises
    ValueError if ``X`` is not 2-dimensional, not real numbers, not finite, or without features.
    """
    # tocsr returns a CSR input itself: sorting that one would reorder the caller's data
    array = (X.copy() if X.format == "csr" else X.tocsr()) if is_sparse(X) else _as_array(X, what)
    if array.ndim != 2:
        raise ValueError(
            f"{what} has shape {array.shape}: samples are rows of a 2-dimensional array, "
            f"use {what}.reshape(1, -1) for one sample or {what}.reshape(-1, 1) for one feature"
        )
    if array.shape[1] == 0:
        raise ValueError(f"{what} has shape {array.shape}: at least one feature is needed")
    default = _float_type(array.dtype, what)
    wanted = default if dtype is None else dtype
    if is_sparse(array):
        array = array.astype(wanted, copy=False)  # type: ignore[assignment]
        array.sum_duplicates()
    else:
        array = np.ascontiguousarray(array, wanted)
    if not np.isfinite(array.data if is_sparse(array) else array).all():
        raise ValueError(f"{what} contains NaN or infinity: remove or impute those values")
    return array


def _as_array(X: Rows, what: str) -> RealArray:
    try:
        array = np.asarray(X)
        return array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must hold real numbers in rows of one length: {error}") from None


def _float_type(dtype: np.dtype[np.floating], what: str) -> type[np.floating]:
    if dtype.kind not in "fiub":
        raise ValueError(f"{what} has dtype {dtype}: real numbers are needed")
    return np.float32 if dtype == np.float32 else np.float64


def check_pair(X: Rows, Y: Rows | None) -> tuple[Points, Points | None]:
    """Return both sample sets checked, of one float type; ``Y`` is ``None`` where it is ``X``.

    Raises ValueError if either is invalid (see `check_samples`) or their numbers of features
    differ.
    """
    if Y is None or Y is X:
        return check_samples(X), None
    A, B = check_samples(X), check_samples(Y, "Y")
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"X has {A.shape[1]} features and Y has {B.shape[1]}: both need the same features"
        )
    if is_sparse(A) != is_sparse(B):
        raise ValueError("X and Y must both be sparse or both dense: use .toarray() on one")
    if A.dtype != B.dtype:
        A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    return A, B
