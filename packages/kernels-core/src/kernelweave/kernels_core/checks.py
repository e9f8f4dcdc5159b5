"""The one vocabulary of validation: what a value must be, in one sentence for all callers.

A `Rule` says it in words, tests it, and raises with the argument, what is right and what was
seen. Fields of estimators and of settings name their rule (`parameter`), functions call
`Rule.check` themselves.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .arrays import FloatArray, Points, RealArray, is_sparse
from .exceptions import Message

__all__ = [
    "COUNT",
    "DTYPE",
    "FLAG",
    "NONNEGATIVE",
    "POSITIVE",
    "SHARE",
    "STRENGTH",
    "Rule",
    "check_array",
    "check_sample_weight",
    "check_targets",
    "integer",
    "number",
    "one_of",
]

# numbers whose fourth powers a float64 still holds
LARGEST = 1e50
SMALLEST = 1e-50

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """What a value must be.

    Parameters
    ----------
    words : str
        What fits behind "must be", e.g. ``"a finite number > 0"``.
    holds : callable
        Given a value of any type, tells whether it is so.
    choices : tuple of str, optional
        The values, where they are few: documentation lists them.
    then : Rule, optional
        What else must hold, said where this rule does.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import POSITIVE, Rule
    >>> POSITIVE.check("C", -1)
    Traceback (most recent call last):
    ValueError: C must be a finite number > 0, got -1
    >>> even = Rule("an even integer", lambda value: isinstance(value, int) and value % 2 == 0)
    >>> even.check("n", 4)
    4
    """

    words: str
    holds: Callable[[Any], bool]
    choices: tuple[str, ...] = ()
    then: Rule | None = None

    def or_none(self) -> Rule:
        """Return the rule that allows ``None`` too."""
        then = None if self.then is None else self.then.or_none()
        # None of a parameter is an option that is left out
        words = Message("{none_or}{words}", none_or="None or ", words=self.words)
        return Rule(words, lambda value: value is None or self.holds(value), then=then)

    def check(self, name: str, value: T) -> T:
        """Return the value if it keeps the rule, else raise ValueError with what is right.

        Parameters
        ----------
        name, value : str, object
            Of the argument, for the message, and what was given.
        """
        if not self.holds(value):
            seen = repr(value)
            if isinstance(value, np.ndarray) and value.size > 6:
                seen = f"an array of shape {value.shape}"
            # the parameter of a function, or that of a part of it
            named = Message(f"{{{name}}}") if name.isidentifier() else name
            template = "{named} must be {words}, got {seen}"
            raise ValueError(Message(template, named=named, words=self.words, seen=seen))
        return value if self.then is None else self.then.check(name, value)


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    finite: bool = True,
) -> Rule:
    """Return the rule for a real number, which truth values and NaN are not.

    Parameters
    ----------
    above, least : float, optional
        It is greater than, or at least.
    below, most : float, optional
        It is less than, or at most.
    finite : bool, default=True
        Whether infinity is refused.

    Returns
    -------
    Rule
        Whose words name the limits.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import number
    >>> number(above=0.0, below=1.0).words
    'a finite number > 0 and < 1'
    """
    ends = ((above, ">"), (least, ">="), (below, "<"), (most, "<="))
    words = " and ".join(f"{sign} {end:g}" for end, sign in ends if end is not None)
    if least is not None and most is not None:
        words = f"in [{least:g}, {most:g}]"

    def holds(value: Any) -> bool:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return (
            is_number
            and not math.isnan(value)
            and not (finite and math.isinf(value))
            and (above is None or value > above)
            and (least is None or value >= least)
            and (below is None or value < below)
            and (most is None or value <= most)
        )

    return Rule(f"a {'finite ' if finite else ''}number {words}".rstrip(), holds)


def integer(least: int | None = None, most: int | None = None) -> Rule:
    """Return the rule for an integer, which truth values are not.

    Parameters
    ----------
    least, most : int, optional
        The smallest and the largest that are right.

    Returns
    -------
    Rule
        Whose words name the limits.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import integer
    >>> integer(2).words
    'an integer >= 2'
    """
    ends = ((least, ">="), (most, "<="))
    words = " and ".join(f"{sign} {end}" for end, sign in ends if end is not None)

    def holds(value: object) -> bool:
        return (
            isinstance(value, numbers.Integral)
            and not isinstance(value, bool)
            and (least is None or int(value) >= least)
            and (most is None or int(value) <= most)
        )

    return Rule(f"an integer {words}".rstrip(), holds)


def one_of(*choices: str) -> Rule:
    """Return the rule for one of a few words.

    Parameters
    ----------
    *choices : str
        The words.

    Returns
    -------
    Rule
        With these ``choices``.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import one_of
    >>> one_of("ovr", "ovo").check("multiclass", "all")
    Traceback (most recent call last):
    ValueError: multiclass must be one of 'ovr', 'ovo', got 'all'
    """

    def holds(value: object) -> bool:
        return isinstance(value, str) and value in choices

    return Rule(f"one of {', '.join(map(repr, choices))}", holds, choices)


POSITIVE = number(above=0.0)
NONNEGATIVE = number(least=0.0)
SHARE = number(least=0.0, most=1.0)
COUNT = integer(1)
FLAG = Rule("True or False", lambda value: type(value).__name__ in ("bool", "bool_"))
DTYPE = one_of("float64", "float32")
ON_INTERRUPT = one_of("raise", "return")
# what multiplies or divides an objective
STRENGTH = Rule(
    POSITIVE.words,
    POSITIVE.holds,
    then=Rule(
        f"a number from {SMALLEST:g} to {LARGEST:g}, as others overflow or underflow",
        lambda value: SMALLEST <= value <= LARGEST,
    ),
)
# -1: all cores
JOBS = Rule("an integer other than 0", lambda value: integer().holds(value) and value != 0)
SECONDS = number(above=0.0, finite=False)


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[np.floating]:
    """Return float64 or float32 as a dtype.

    Raises ValueError if it is another.
    """
    name = DTYPE.check("dtype", np.dtype(dtype).name)
    return np.dtype(np.float32 if name == "float32" else np.float64)


def check_magnitude(name: str, values: RealArray, *, least: float = 0.0) -> None:
    """Raise if some |value| is above 1e50, or between 0 and ``least``.

    `name`: what the values are, for the message; `values`: finite numbers, of any shape; one pass
    and no copy; `least`: smallest size of a value that is not zero.
    """
    if values.size == 0:
        return
    largest = max(float(values.max()), -float(values.min()))
    if largest > LARGEST:
        raise ValueError(
            f"{name} has values up to {largest:.3g}, too large: their products overflow, scale "
            f"them to at most {LARGEST:g}"
        )
    if least > 0.0:
        sizes = np.abs(values[values != 0.0])
        if sizes.size and float(sizes.min()) < least:
            raise ValueError(
                f"{name} has values down to {float(sizes.min()):.3g}, too small: their products "
                f"underflow, scale them to at least {least:g}"
            )


def check_decision(values: RealArray, X: Points) -> None:
    """Raise if a decision value is not finite: the points are too far from the training points.

    `values` of shape (n_samples, n_outputs): what was computed; `X` of shape (n_samples,
    n_features): the points, for the message.
    """
    if not np.isfinite(values).all():
        points = X.data if is_sparse(X) else X
        raise ValueError(
            f"X has values up to {float(np.abs(points).max()):.3g}, too large: kernel values of "
            "such points overflow, scale the features"
        )


def check_array(
    name: str, values: npt.ArrayLike, n_dimensions: int, *, square: bool = False
) -> FloatArray:
    """Return finite numbers as an array that is not empty, of so many dimensions.

    Parameters
    ----------
    name, values : str, array_like
        Of the argument, for the message, and what was given.
    n_dimensions : int
        How many it must have.
    square : bool, default=False
        Whether all must have one size.

    Returns
    -------
    ndarray, float64
        Not copied where it is one already.

    Raises
    ------
    ValueError
        If the numbers are complex, not finite or none at all, or the shape is another.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import check_array
    >>> check_array("P", [[1.0, 2.0]], 2, square=True)
    Traceback (most recent call last):
    ValueError: P must be a square matrix, got shape (1, 2)
    """
    array = _finite(name, values)
    if array.ndim != n_dimensions or array.size == 0:
        raise ValueError(
            f"{name} must be an array with {n_dimensions} axes and at least one entry, "
            f"got shape {array.shape}"
        )
    if square and len(set(array.shape)) > 1:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    return array


def check_vector(name: str, values: npt.ArrayLike, size: int) -> FloatArray:
    """Return finite numbers of at most 1e50 in size, shape (size,)."""
    vector = _finite(name, values)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {vector.shape}")
    check_magnitude(name, vector)
    # a read-only argument would be another specialisation of compiled code
    return np.ascontiguousarray(vector) if vector.flags.writeable else vector.copy()


def check_weights(weights: npt.ArrayLike, n_kernels: int, *, signed: bool = False) -> FloatArray:
    """Return kernel weights as finite numbers, shape (n_kernels,), at least 0 unless ``signed``."""

    def holds(array: FloatArray) -> bool:
        valid = array.shape == (n_kernels,) and bool(np.isfinite(array).all())
        return valid and (signed or bool((array >= 0.0).all()))

    least = "" if signed else " >= 0"
    rule = Rule(f"{n_kernels} finite numbers{least}, one per kernel", holds)
    return rule.check("weights", np.asarray(weights, dtype=np.float64))


def check_targets(
    name: str, values: npt.ArrayLike, n_samples: int, *, labels: bool = False
) -> npt.NDArray[np.float64]:
    """Return targets as finite numbers, a row for each task.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    values : array_like of shape (n_samples,) or (n_tasks, n_samples)
        Numbers of at most 1e50 in size.
    n_samples : int
        Rows of the Gram matrix.
    labels : bool, default=False
        Whether each row must hold −1 and +1, and both.

    Returns
    -------
    ndarray of shape (n_tasks, n_samples), float64
        The rows.

    Raises
    ------
    ValueError
        If the values are something else.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import check_targets
    >>> check_targets("y", [-1, 1, 1], 3, labels=True)
    array([[-1.,  1.,  1.]])
    """
    rows = np.atleast_2d(_finite(name, values))
    check_magnitude(name, rows)
    if rows.ndim != 2 or rows.shape[1] != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples},) or (n_tasks, {n_samples}), one entry a sample, "
            f"got {np.shape(values)}"
        )
    if labels:
        odd = rows[np.abs(rows) != 1.0]
        if odd.size:
            raise ValueError(f"{name} must hold -1 and +1 only, got {odd[0]}: encode the classes")
        if (np.ptp(rows, axis=1) == 0.0).any():
            raise ValueError(f"{name} must hold both classes in each row, one is missing")
    return rows


def check_sample_weight(values: npt.ArrayLike | None, n_samples: int) -> FloatArray | None:
    """Return nonnegative finite weights, not all zero, or None.

    Parameters
    ----------
    values : array_like of shape (n_samples,) or None
        Of at most 1e50 in size.
    n_samples : int
        How many they must be.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None
        Contiguous and writeable; ``None`` for ``None``.

    Raises
    ------
    ValueError
        If the values are something else.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import check_sample_weight
    >>> check_sample_weight([1, 0, 2], 3)
    array([1., 0., 2.])
    """
    if values is None:
        return None
    weight = check_vector("sample_weight", values, n_samples)
    if weight.min() < 0.0:
        at = int(np.argmin(weight))
        raise ValueError(f"sample_weight must be at least 0, got {weight[at]} at position {at}")
    if not weight.any():
        raise ValueError("sample_weight must be positive somewhere, got zeros only")
    return weight


def _finite(name: str, values: npt.ArrayLike) -> FloatArray:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers: {error}") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = where[0] if len(where) == 1 else where
        raise ValueError(f"{name} must be finite, got {array[where]} at position {place}")
    return array


def check_limits(tol: object, max_iter: object, max_time: object, *, exact: bool = True) -> None:
    """Raise unless the stopping rules of a solve make sense.

    - `tol`: at least 0; positive unless ``exact``, for solvers that no amount of work takes to 0
    - `max_iter`: at least 1
    - `max_time`: seconds, positive
    - `exact`: whether ``tol`` may be 0
    """
    (NONNEGATIVE if exact else POSITIVE).check("tol", tol)
    COUNT.check("max_iter", max_iter)
    SECONDS.or_none().check("max_time", max_time)
