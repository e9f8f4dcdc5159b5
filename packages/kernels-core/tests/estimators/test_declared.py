"""Estimators that declare their parameters: constructor, docstring and checks follow from that."""

from __future__ import annotations

import inspect
import pickle
from typing import Any, ClassVar

import pytest
from kernelweave.kernels_core.checks import (
    COUNT,
    DTYPE,
    FLAG,
    NONNEGATIVE,
    POSITIVE,
    SHARE,
    STRENGTH,
    integer,
    number,
    one_of,
)
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.parameters import Value, fitted, parameter, parameter_of
from sklearn.base import clone


class Ball(Value):
    """A set of weights."""

    name: ClassVar[str] = "ball"
    radius: float = parameter("How far weights may go.", default=1.0, rule=POSITIVE)


class Base(Estimator):
    """What two estimators share."""

    kernels: Any = parameter("The kernels.", kind="list of Kernel", default=None, kw_only=False)
    tol: float = parameter("Gap to reach.", default=1e-3, rule=NONNEGATIVE)
    seconds: float | None = parameter("At most.", default=None, rule=POSITIVE)
    seed: int = parameter("Of the draws.", default=0)
    weights_: Any = fitted("ndarray of shape (n_kernels,)", "β.")


class Learned(Base):
    """An estimator.

    Examples
    --------
    >>> 1 + 1
    2
    """

    way: str = parameter("Which way.", default="up", rule=one_of("up", "down"))
    radius: float = parameter_of(Ball, "radius")
    tol: float = 1e-6
    seed: ClassVar[int] = 0  # type: ignore[misc]


class Constructed(Base):
    """An estimator with a constructor of its own."""

    def __init__(self, tol: float = 0.5) -> None:
        self.tol = tol


def test_constructor() -> None:
    assert str(inspect.signature(Learned)) == (
        "(kernels=None, *, way='up', radius=1.0, tol=1e-06, seconds=None)"
    )
    with pytest.raises(TypeError, match="positional"):
        Learned([], "up")  # type: ignore[misc]
    assert Constructed().get_params() == {"tol": 0.5}


def test_docstring() -> None:
    assert Learned.__doc__ == (
        "An estimator.\n\n"
        "Parameters\n----------\n"
        "kernels : list of Kernel, optional\n    The kernels.\n"
        'way : {"up", "down"}, default="up"\n    Which way.\n'
        "radius : float, default=1.0\n    How far weights may go.\n"
        "tol : float, default=1e-06\n    Gap to reach.\n"
        "seconds : float, optional\n    At most.\n\n"
        "Attributes\n----------\n"
        "weights_ : ndarray of shape (n_kernels,)\n    β.\n\n"
        "Examples\n--------\n>>> 1 + 1\n2\n"
    )
    assert Ball.__doc__ is not None
    assert "radius : float, default=1.0\n    How far" in Ball.__doc__


def test_types_that_are_no_words_are_named() -> None:
    """As in a module without postponed annotations."""
    members = {
        "__doc__": "A value.",
        "__annotations__": {"rate": float, "most": float | None},
        "rate": parameter("The rate.", default=1.0),
        "most": parameter("The most.", default=None),
    }
    said = str(type("Plain", (Value,), members).__doc__)
    assert "rate : float, default=1.0\n" in said
    assert "most : float, optional\n" in said


def test_scikit_learn_sees_an_estimator() -> None:
    model = Learned([1], way="down")
    assert repr(model) == "Learned(kernels=[1], way='down')"
    assert not hasattr(model, "weights_")
    assert "seed" not in model.get_params()
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
    assert Learned() != Learned()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"tol": -1}, "tol must be a finite number >= 0, got -1"),
        ({"tol": None}, "tol must be a finite number >= 0, got None"),
        ({"way": "left"}, "way must be one of 'up', 'down', got 'left'"),
        ({"radius": 0.0}, "radius must be a finite number > 0, got 0.0"),
        ({"seconds": "3"}, "seconds must be None or a finite number > 0, got '3'"),
    ],
)
def test_a_wrong_parameter_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="must be") as refusal:
        Learned(**wrong)._check_parameters()
    assert str(refusal.value) == sentence


def test_a_value_is_frozen_and_checks_itself() -> None:
    assert Ball(2.0) == Ball(radius=2.0)
    Ball(2.0).validate()
    with pytest.raises(ValueError, match="radius must be a finite number > 0, got -1"):
        Ball(-1).validate()
    with pytest.raises(AttributeError):
        Ball().radius = 3.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("rule", "right", "wrong", "words"),
    [
        (POSITIVE, [1, 0.5], [0, -1, "1", True, None, float("nan"), float("inf")], "> 0"),
        (NONNEGATIVE, [0, 1.5], [-1e-300, float("inf")], ">= 0"),
        (SHARE, [0, 0.5, 1.0], [-0.1, 1.1], r"in \[0, 1\]"),
        (STRENGTH, [1e-50, 1e50], [1e-51, 1e51], "from 1e-50 to 1e\\+50"),
        (STRENGTH, [1], [0.0, -1, float("nan")], "a finite number > 0, got"),
        (COUNT, [1, 7], [0, 1.0, True, "1"], "an integer >= 1"),
        (integer(0, 3), [0, 3], [-1, 4], "an integer >= 0 and <= 3"),
        (number(above=0.0, below=1.0), [0.5], [0.0, 1.0], "> 0 and < 1"),
        (number(), [-1e300], [float("inf"), "x"], "a finite number"),
        (FLAG, [True, False], [1, 0, None, "True"], "True or False"),
        (DTYPE, ["float32"], ["float16", 3], "one of 'float64', 'float32'"),
    ],
)
def test_rules(rule: Any, right: list[Any], wrong: list[Any], words: str) -> None:
    for value in right:
        assert rule.check("x", value) is value
    for value in wrong:
        with pytest.raises(ValueError, match=f"^x must be .*{words}"):
            rule.check("x", value)
