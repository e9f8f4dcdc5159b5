"""Public functions of vectors, matrices and numbers, each with arguments that are sound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from expectations import SAME, Case, Expectation, Fault, error

# what no number of ours may be; 0 is right for some
WRONG_NUMBERS = (math.nan, -1.0, "much", None)


@dataclass(frozen=True)
class Function:
    """A public function, sound arguments, and which of them are arrays and numbers.

    Attributes
    ----------
    vectors, matrices : tuple of str
        Arguments that are arrays of one and of two dimensions.
    numbers : dict
        Of each number, the values that are wrong beside nan, -1, words and None.
    """

    function: Callable[..., Any]
    sound: dict[str, Any]
    vectors: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    numbers: dict[str, tuple[Any, ...]] | None = None

    @property
    def name(self) -> str:
        """Where it is found: two packages may use one name."""
        return f"{self.function.__module__.split('.')[1]}.{self.function.__name__}"

    def run(self, case: Case) -> Any:
        """Call it, and return the numbers that must be finite."""
        return numbers_of(self.function(**case.params))

    def case(self) -> Case:
        """Return the sound arguments, copied."""
        params = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.sound.items()
        }
        return Case("any", None, None, None, params=params)

    def faults(self) -> Iterator[Fault]:
        """Yield what can be wrong with each argument."""
        for name in (*self.vectors, *self.matrices):
            for what, expected, change in ARRAYS:
                yield self._fault(name, what, expected, change)
        for name, others in (self.numbers or {}).items():
            optional = signature(self.function).parameters[name].default is None
            for value in (*WRONG_NUMBERS[: 3 if optional else 4], *others):
                outcome = "error" if isinstance(value, float | int) else "type"
                yield self._fault(name, f"{value!r} for {{}}", outcome, lambda _, v=value: v)

    def _fault(self, name: str, what: str, expected: str, change: Callable[[Any], Any]) -> Fault:
        def spoil(case: Case) -> None:
            case.params[name] = change(case.params.get(name))

        outcome: Expectation = SAME
        if expected == "error":
            outcome = error(rf"\b{name}\b")
        elif expected == "type":
            outcome = error(rf"\b{name}\b", "ValueError", "TypeError")
        return Fault(what.format(name), "arguments", spoil, outcome)


def numbers_of(outcome: Any) -> tuple[Any, ...]:
    """Return the arrays and numbers of what a function returned."""
    if isinstance(outcome, tuple):
        return tuple(part for each in outcome for part in numbers_of(each))
    if hasattr(outcome, "__dataclass_fields__"):
        return tuple(
            part
            for name in outcome.__dataclass_fields__
            for part in numbers_of(getattr(outcome, name))
        )
    return (np.asarray(outcome),) if isinstance(outcome, np.ndarray | float | int) else ()


def with_entry(value: float) -> Callable[[Any], Any]:
    """Return a change that puts a value into the middle of an array."""

    def change(array: Any) -> Any:
        spoilt = array.astype(np.result_type(array.dtype, type(value)))
        spoilt.flat[array.size // 2] = value
        return spoilt

    return change


def read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


def strided(array: Any) -> Any:
    large = np.full([2 * length for length in array.shape], np.nan)
    view = large[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


ARRAYS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("a NaN in {}", "error", with_entry(math.nan)),
    ("an infinity in {}", "error", with_entry(math.inf)),
    ("words in {}", "error", lambda array: np.full(array.shape, "a")),
    ("a complex {}", "error", lambda array: array + 1j),
    ("an empty {}", "error", lambda array: array[:0]),
    ("one dimension too many in {}", "error", lambda array: array[..., None]),
    ("None for {}", "error", lambda array: None),
    ("a list for {}", "same", lambda array: array.tolist()),
    ("a read-only {}", "same", read_only),
    ("Fortran order in {}", "same", np.asfortranarray),
    ("every second entry of a larger array for {}", "same", strided),
)


def functions() -> list[Function]:
    """Return the functions of all packages."""
    return [*_projections(), *_of_matrices(), *_of_numbers()]


def _projections() -> list[Function]:
    from kernelweave import baselines, mkl_sparse, ridge_mkl
    from kernelweave.kernels_core import psd_cone

    vector, square = np.array([0.9, 0.5, 0.125]), np.array([[2.0, 0.5], [0.5, -1.0]])
    return [
        Function(
            mkl_sparse.project_sparse_simplex, {"w": vector, "k0": 2}, ("w",), (), {"k0": (0, 1.5)}
        ),
        Function(
            psd_cone.project_simplex,
            {"values": vector, "total": 1.0},
            ("values",),
            (),
            {"total": (0.0, math.inf)},
        ),
        Function(
            psd_cone.project_spectahedron,
            {"P": square, "trace": 1.0},
            (),
            ("P",),
            {"trace": (0.0, math.inf)},
        ),
        Function(ridge_mkl.LqBall(q=1.5).project, {"mu": vector}, ("mu",), (), {}),
        Function(baselines.ElasticNetWeights().project, {"weights": vector}, ("weights",)),
        Function(
            baselines.elastic_net_weights,
            {"norms": vector, "l1_ratio": 0.25},
            ("norms",),
            numbers={"l1_ratio": (1.5, math.inf)},
        ),
    ]


def _of_matrices() -> list[Function]:
    from kernelweave import granger, vv_rkhs

    square = np.array([[2.0, 0.5], [0.5, 1.0]])
    series = np.random.default_rng(0).standard_normal((12, 3))
    return [
        Function(
            vv_rkhs.closed_form_output_kernel,
            {"L": square, "B": square, "tau": 2.0},
            (),
            ("L", "B"),
            {"tau": (0.0, math.inf)},
        ),
        Function(granger.lagged_samples, {"X": series, "lags": 1}, (), ("X",), {"lags": (0, 1.5)}),
        Function(
            granger.score_graph,
            {"weights": np.abs(series[:3]), "truth": np.eye(3) + np.eye(3, k=1)},
            (),
            ("weights", "truth"),
        ),
    ]


def _of_numbers() -> list[Function]:
    from kernelweave import granger, ridge_mkl

    sizes = {"n_samples": (0, 1.5), "n_kernels": (0, 1.5), "radius": (math.inf,)}
    return [
        Function(
            ridge_mkl.rademacher_bound,
            {"n_samples": 9, "n_kernels": 2},
            numbers=sizes | {"degree": (0, 1.5)},
        ),
        Function(
            ridge_mkl.margin_bound,
            {"n_samples": 9, "n_kernels": 2, "margin": 1.0},
            numbers=sizes
            | {"margin": (0.0, math.inf), "delta": (0.0, 1.0), "degree": (0, 1.5)}
            | {"empirical_margin_loss": (1.5,)},
        ),
        Function(
            granger.lorenz96,
            {"n_nodes": 4, "n_times": 5, "random_state": 0},
            numbers={
                "n_nodes": (0, 1.5),
                "n_times": (0, 1.5),
                "dt": (0.0, math.inf),
                "noise": (math.inf,),
            },
        ),
        Function(
            granger.random_network,
            {"n_nodes": 3, "n_times": 5, "random_state": 0},
            numbers={
                "n_nodes": (0, 1.5),
                "n_times": (0, 1.5),
                "degree": (-1.0, math.inf),
                "memory": (-0.5, 1.0),
            },
        ),
    ]
