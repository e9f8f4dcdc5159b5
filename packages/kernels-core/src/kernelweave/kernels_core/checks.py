"""Checks of arguments, so that one mistake is told in the same words by every function.

A `Rule` says what a value must be, tests it, and raises an error with the name of the argument,
what would be right and the value seen. Estimators and settings declare the rules of their
parameters by `parameter`; functions call `Rule.check` themselves.
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

# Values that are multiplied stay in this range: fourth powers still fit into a float64.
LARGEST = 1e50
SMALLEST = 1e-50

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """A condition on the value of an argument, with its wording.

    Parameters
    ----------
    words : str
        How the message goes on after "must be", e.g. ``"a finite number > 0"``.
    holds : callable
        Takes a value of any type and returns whether it is right.
    choices : tuple of str, optional
        All values that are right if they are a few strings; the documentation lists them.
    then : Rule, optional
        Second condition, checked if this one holds, with words of its own.

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
        """Return a rule that also allows ``None``."""
        then = None if self.then is None else self.then.or_none()
        # A field of its own, since the command line omits it: None is an option that is left out.
        words = Message("{none_or}{words}", none_or="None or ", words=self.words)
        return Rule(words, lambda value: value is None or self.holds(value), then=then)

    def check(self, name: str, value: T) -> T:
        """Return the value if it is right, else raise ValueError.

        Parameters
        ----------
        name : str
            Name of the argument, for the message.
        value : object
            Value of the argument.
        """
        if not self.holds(value):
            seen = repr(value)
            if isinstance(value, np.ndarray) and value.size > 6:
                seen = f"an array of shape {value.shape}"
            # The command line writes the name of a parameter as an option; a name such as
            # "FamilyKernel: P" stays as it is.
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
    """Return the rule for a real number between limits; booleans and NaN are refused.

    Parameters
    ----------
    above, least : float, optional
        Lower limit: the number must be > ``above`` and >= ``least``.
    below, most : float, optional
        Upper limit: the number must be < ``below`` and <= ``most``.
    finite : bool, default=True
        Whether infinity is refused.

    Returns
    -------
    Rule
        The rule; its words name the limits.

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
    """Return the rule for an integer between limits; booleans are refused.

    Parameters
    ----------
    least, most : int, optional
        The smallest and the largest integer allowed.

    Returns
    -------
    Rule
        The rule; its words name the limits.

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
    """Return the rule for one of a few strings.

    Parameters
    ----------
    *choices : str
        The strings allowed.

    Returns
    -------
    Rule
        The rule, with these ``choices``.

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
# by name: numpy's boolean type is "bool" or, before numpy 2, "bool_"
FLAG = Rule("True or False", lambda value: type(value).__name__ in ("bool", "bool_"))
DTYPE = one_of("float64", "float32")
ON_INTERRUPT = one_of("raise", "return")
# parameters that multiply or divide the objective, such as C
STRENGTH = Rule(
    POSITIVE.words,
    POSITIVE.holds,
    then=Rule(
        f"a number from {SMALLEST:g} to {LARGEST:g}, as others overflow or underflow",
        lambda value: SMALLEST <= value <= LARGEST,
    ),
)
# n_jobs of joblib, where -1 means all cores
JOBS = Rule("an integer other than 0", lambda value: integer().holds(value) and value != 0)
SECONDS = number(above=0.0, finite=False)
SEED = Rule(
    "an integer from 0 to 4294967295 or a numpy RandomState",
    lambda value: isinstance(value, np.random.RandomState) or integer(0, 2**32 - 1).holds(value),
)


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[np.floating]:
    """Return the dtype, in native byte order; ValueError unless it is float64 or float32."""
    name = DTYPE.check("dtype", np.dtype(dtype).name)
    return np.dtype(np.float32 if name == "float32" else np.float64)


def check_magnitude(name: str, values: RealArray, *, least: float = 0.0) -> None:
    """Raise ValueError if some |value| is above 1e50, or below ``least`` but not 0.

    `name`: name of the argument, for the message; `values`: finite numbers, of any shape; they are
    copied only if ``least`` is positive.
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
    """Raise ValueError if a decision value is not finite, because kernel values overflowed.

    `values` of shape (n_samples, n_outputs): the decision values at the points `X`, of shape
    (n_samples, n_features), whose largest entry the message names.
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
    """Check an array of finite real numbers and return it in float64.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    values : array_like
        Value of the argument.
    n_dimensions : int
        Number of dimensions that the array must have.
    square : bool, default=False
        Whether all dimensions must be of the same size.

    Returns
    -------
    ndarray, float64
        The array, not copied if it is of that type already.

    Raises
    ------
    ValueError
        If the array is empty or has another shape, or an entry is complex or not finite.

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
    """Check finite numbers of at most 1e50 in absolute value; return them, shape (size,)."""
    vector = _finite(name, values)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {vector.shape}")
    check_magnitude(name, vector)
    # Contiguous and writeable: numba would compile its functions again for other arrays.
    return np.ascontiguousarray(vector) if vector.flags.writeable else vector.copy()


def check_weights(weights: npt.ArrayLike, n_kernels: int, *, signed: bool = False) -> FloatArray:
    """Check finite kernel weights, at least 0 unless ``signed``; return shape (n_kernels,)."""

    def holds(array: FloatArray) -> bool:
        valid = array.shape == (n_kernels,) and bool(np.isfinite(array).all())
        return valid and (signed or bool((array >= 0.0).all()))

    least = "" if signed else " >= 0"
    rule = Rule(f"{n_kernels} finite numbers{least}, one per kernel", holds)
    return rule.check("weights", np.asarray(weights, dtype=np.float64))


def check_targets(
    name: str, values: npt.ArrayLike, n_samples: int, *, labels: bool = False
) -> npt.NDArray[np.float64]:
    """Check targets and return them with a row for each task.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    values : array_like of shape (n_samples,) or (n_tasks, n_samples)
        Finite numbers of at most 1e50 in absolute value.
    n_samples : int
        Number of samples, the rows of the Gram matrix.
    labels : bool, default=False
        Whether each row must consist of −1 and +1, and hold both.

    Returns
    -------
    ndarray of shape (n_tasks, n_samples), float64
        The targets.

    Raises
    ------
    ValueError
        If the values or their shape are not as described.

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
    """Check sample weights, which may be None.

    Parameters
    ----------
    values : array_like of shape (n_samples,) or None
        Weights between 0 and 1e50, not all 0.
    n_samples : int
        Number of samples.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None
        The weights, contiguous and writeable; ``None`` for ``None``.

    Raises
    ------
    ValueError
        If the values or their shape are not as described.

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
    """Return values as a float64 array; ValueError unless all are finite real numbers."""
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
    """Raise ValueError if a stopping rule of a solver is out of range.

    - `tol`: at least 0, and positive if not ``exact``
    - `max_iter`: at least 1
    - `max_time`: seconds, positive; or ``None``
    - `exact`: whether ``tol`` may be 0, which some solvers can approach but never reach
    """
    (NONNEGATIVE if exact else POSITIVE).check("tol", tol)
    COUNT.check("max_iter", max_iter)
    SECONDS.or_none().check("max_time", max_time)
