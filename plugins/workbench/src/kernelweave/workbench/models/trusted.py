"""Which types a model file may contain. Everything else is refused before it is imported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec

from kernelweave.kernels_core import components

# packages whose values a model holds
_PACKAGES = tuple(
    f"kernelweave.{name}."
    for name in (
        *("kernels_core", "qp_smo", "spectahedron", "mkl_sparse", "relaxations", "vv_rkhs"),
        *("baselines", "evidence", "granger", "ridge_mkl", "tables", "workbench"),
    )
)
# of the others of these packages that models hold
_PLAIN = frozenset({"ColumnEncoder", "KernelDictionary", "PosteriorOfRows", "TableReader"})
# what estimators hold of others, built from words and arrays and nothing else
_HARMLESS = frozenset({"numpy.dtype", "skrub._string_encoder.StringEncoder", "skrub._to_str.ToStr"})
_KINDS = ("kernels", "families", "learners", "constraints")


def trusted_types(wanted: Iterable[str]) -> set[str]:
    """Return those of the ``wanted`` types that a model file may contain.

    They are the values, kernels and estimators of our own packages, and the classes that installed
    plugins register as kernels, families, learners or constraints: somebody installed those on
    purpose. Functions are not among them, nor the types that skops itself trusts (NumPy's arrays,
    scikit-learn's estimators).

    `wanted`: qualified names from a file. A subset of them.
    """
    names = set(wanted)
    known = {name for name in names if name in _HARMLESS or _is_own_value(name)}
    return known | (names - known) & _registered(names - known)


def _is_own_value(name: str) -> bool:
    """Whether a name is that of a value of ours, in the module that defines it."""
    from kernelweave.kernels_core.kernels.base import Kernel
    from sklearn.base import BaseEstimator

    module, _, last = name.rpartition(".")
    if not name.startswith(_PACKAGES) or not _is_there(module):
        return False
    found = getattr(import_module(module), last, None)
    if not isinstance(found, type) or (found.__module__, found.__name__) != (module, last):
        return False
    kinds = (tuple, Enum, Kernel, BaseEstimator)
    return is_dataclass(found) or issubclass(found, kinds) or last in _PLAIN


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _registered(names: set[str]) -> set[str]:
    """Return the qualified names of registered classes, importing only look-alikes of ``names``."""
    endings = {name.rpartition(".")[2] for name in names}
    found = set()
    for kind in _KINDS if names else ():
        for spec in components(kind).values():
            if spec.target.partition(":")[2] in endings:
                loaded = spec.load()
                found.add(f"{loaded.__module__}.{loaded.__qualname__}")
    return found
