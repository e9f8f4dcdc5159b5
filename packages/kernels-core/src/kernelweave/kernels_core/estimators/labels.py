"""Labels as codes and ±1 targets, and the weights of classes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _get_feature_names

from ..arrays import FloatArray, Labels
from ..checks import check_sample_weight

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# by label, or "balanced"
ClassWeight: TypeAlias = "dict[str, float] | dict[int, float] | dict[float, float] | str | None"


def encode_classes(
    estimator: BaseEstimator, y: ArrayLike, weight: FloatArray
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Set ``classes_``; return the class of each sample and its weight times that of its class.

    `estimator`: its ``class_weight`` is read; `y` of shape (n_samples,): labels; `weight` of shape
    (n_samples,): sample weights. Returns `codes` of shape (n_samples,): places in ``classes_``;
    `weight` of shape (n_samples,): with the class weights. Raises ValueError if fewer than two
    classes have samples of positive weight, or one has none.
    """
    check_classification_targets(y)
    check_sample_weight(weight, len(weight))
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    mass = np.bincount(codes, weights=weight, minlength=len(estimator.classes_))
    n_present = int((mass > 0.0).sum())
    if n_present < max(2, len(mass)):
        got = "1 class" if n_present == 1 else f"{n_present} classes"
        without = [
            f", class {label!r} without any" for label in estimator.classes_[mass == 0.0].tolist()
        ]
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, each with a positive "
            f"weight; got {got}{''.join(without)}"
        )
    return codes, weight * class_weights(estimator, estimator.classes_, codes, weight)[codes]


def one_vs_rest(codes: npt.NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return ±1 targets, shape (1, n_samples) for two classes, else (n_classes, n_samples)."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    return np.where(codes[None, :] == np.arange(n_classes)[:, None], 1.0, -1.0)


def class_weights(
    estimator: BaseEstimator,
    classes: Labels,
    codes: npt.NDArray[np.intp],
    weight: FloatArray,
) -> FloatArray:
    """Return the factor of each class; ``"balanced"`` counts samples by their weights."""
    setting = getattr(estimator, "class_weight", None)
    if setting is None:
        return np.ones(len(classes))
    if isinstance(setting, str):
        if setting != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {setting!r}")
        mass = np.bincount(codes, weights=weight, minlength=len(classes))
        return np.asarray(weight.sum() / (len(classes) * mass))
    if not isinstance(setting, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {setting!r}")
    unknown = [key for key in setting if key not in classes]
    if unknown:
        raise ValueError(f"class_weight has keys that are no classes: {unknown}")
    factors = np.array([float(setting.get(label, 1.0)) for label in classes])
    if not np.isfinite(factors).all() or (factors <= 0).any():
        raise ValueError(f"class_weight values must be finite and > 0, got {setting!r}")
    return factors


def group_codes(groups: object, X: object, n_samples: int) -> npt.NDArray[np.intp] | None:
    """Return a number for the group of each sample, ascending with the groups; None without any.

    `groups`: a name of a column of X, or a value a sample; a gap is a group of its own. Raises
    ValueError if there is no such column, or another number of values.
    """
    if groups is None:
        return None
    if isinstance(groups, str):
        names = _get_feature_names(X)
        if names is None or groups not in names:
            near = get_close_matches(groups, [] if names is None else names, 1)
            known = "X has no names" if names is None else f"X has {', '.join(names)}"
            hint = f"did you mean {near[0]!r}?" if near else known
            raise ValueError(f"groups must name a column of X, got {groups!r}: {hint}")
        groups = _safe_indexing(X, groups, axis=1)
    values = np.asarray(groups)
    if values.shape != (n_samples,):
        raise ValueError(
            f"groups must be a column's name or one value a sample, shape ({n_samples},), got "
            f"shape {values.shape}"
        )
    gaps = np.array([each is None or (each == each) is not True for each in values.tolist()])
    codes = np.empty(n_samples, dtype=np.intp)
    known_groups, codes[~gaps] = np.unique(values[~gaps], return_inverse=True)
    codes[gaps] = len(known_groups) + np.arange(np.count_nonzero(gaps))
    return codes
