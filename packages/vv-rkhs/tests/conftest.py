"""The golden problems of matrix-valued kernel learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem
from kernelweave.vv_rkhs import PrecomputedFamily, SeparableKernels, VectorLeastSquares


@dataclass(frozen=True)
class GoldenProblem:
    grams: np.ndarray
    Y: np.ndarray
    cases: list[dict[str, Any]]

    def cases_of(self, kind: str) -> list[dict[str, Any]]:
        return [case for case in self.cases if case["kind"].startswith(kind)]

    def problem(self, lam: float, constraint: Any) -> Problem:
        return as_problem(self.grams, self.Y, lam, constraint)


def as_problem(grams: np.ndarray, Y: np.ndarray, lam: float, constraint: Any) -> Problem:
    positions = np.arange(float(len(Y)))[:, None]
    family = PrecomputedFamily(grams)
    return Problem(family, VectorLeastSquares(lam), constraint, positions, Y.T)


@pytest.fixture(scope="session")
def problems(golden: Callable[[str], Any]) -> list[GoldenProblem]:
    return [
        GoldenProblem(np.array(each["K"]), np.array(each["Y"]), each["cases"])
        for each in golden("vv_golden")["problems"]
    ]


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., Problem]:
    """Return a maker of problems with n outputs that share a few smooth functions."""

    def make(
        l: int = 40,
        n: int = 5,
        m: int = 8,
        *,
        lam: float = 1e-2,
        constraint: Any = None,
        seed: int = 0,
    ) -> Problem:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((l, 10))
        gammas = (0.1, 0.5, 2.0)
        grams = np.stack(
            [
                np.exp(-gammas[j // 10 % 3] * (X[:, j % 10, None] - X[:, j % 10]) ** 2)
                for j in range(m)
            ]
        )
        shared = np.stack([np.sin(2 * X[:, k % 4] + k) for k in range(5)], axis=1)
        Y = shared @ rng.standard_normal((5, n)) + 0.3 * rng.standard_normal((l, n))
        return as_problem(grams, Y, lam, SeparableKernels() if constraint is None else constraint)

    return make
