"""Objects that are their constructor's parameters: copy, compare, print and search over them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Self

import numpy as np


def _names(cls: type) -> tuple[str, ...]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return ()
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return tuple(p.name for p in parameters)


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
                out.update(_nested(name, value))
        return out

    def set_params(self, **params: object) -> Self:
        """Change parameters in place, nested ones by ``name__inner``; return the object.

        Raises
        ------
        ValueError
            If a name is not a parameter; the message lists those that are.
        """
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in _names(type(self)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"its parameters are {', '.join(_names(type(self))) or 'none'}"
                )
            if inner:
                setattr(self, name, _set_inside(getattr(self, name), key, inner, value))
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


def _nested(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if isinstance(item, Parameters):
                yield f"{name}__{index}", item
            yield from _nested(f"{name}__{index}", item)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        for inner, item in value.get_params(deep=True).items():
            yield f"{name}__{inner}", item


def _set_inside(owner: object, key: str, inner: str, value: object) -> object:
    """Set ``inner`` of ``owner`` and return the owner (a new tuple where it is one)."""
    if hasattr(owner, "set_params"):
        owner.set_params(**{inner: value})
        return owner
    head, _, rest = inner.partition("__")
    if not isinstance(owner, (list, tuple)) or not head.isdigit() or int(head) >= len(owner):
        raise ValueError(f"{key!r} names nothing inside {_short(owner)}")
    items = list(owner)
    items[int(head)] = _set_inside(items[int(head)], key, rest, value) if rest else value
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
    return bool(a == b)


def _hashable(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if hasattr(value, "tocsr"):
        return (value.shape, value.nnz)
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    return value


def _short(value: object) -> str:
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array(shape={value.shape})"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    return repr(value)
