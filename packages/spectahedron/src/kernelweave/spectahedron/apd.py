"""The accelerated primal-dual method: ``tkl-apd``.

Talitckii, Colbert and Peet (2024), Algorithms 4 and 5, after Hamedani and Aybat (2021).

As printed the step constants are not Lipschitz constants, the strong convexity μ > 0 does not
exist, labels are applied twice, the projection has its bracket upside down and the loop stops on
differences that bound nothing. Here: L_αα = n_P λ_max(K(I)), L_αP = ‖C‖₂ λ_max(K(I)) with the box
ends C (C √m for equal ones), μ = 0 and so O(1/k) for the averages, labels once, the exact
projection, and OPT_A(P) − OPT_P(α).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import Matrix, RealArray
from kernelweave.kernels_core.psd_cone import project_spectahedron
from kernelweave.qp_smo.engine import solve_box
from kernelweave.qp_smo.problem import Budget
from scipy.linalg import eigh

from .algorithm import SpectahedronSearch
from .frank_wolfe_search import balanced_direction
from .saddle import SpectahedronOracle
from .settings import AcceleratedPrimalDual

# Limits of the quadratic program of a step: iterations, which none comes near, since the ridge 1/τ
# leaves a condition number of 4/3 at most, and the tolerance in units of that ridge.
_STEPS = 1_000_000
_INNER_TOL = 1e-8
# σ grows as 1/C²: for the smallest C it would overflow.
_LONGEST_STEP = 1e100


class PrimalDualPath(SpectahedronSearch):
    """The steps from a feasible pair, on an oracle that exists.

    - `P`, `average` of shape (n_P, n_P)
    - `u`, `average_u` of shape (n_tasks, n_samples)
    - `x`, `last_x` of shape (n_P, n_P): ½ D(u), scaled
    - `parameters` of shape (n_P, n_P): the P where ``upper`` was proved
    """

    def __init__(
        self, oracle: SpectahedronOracle, P: Matrix, u: Matrix, certify_every: int
    ) -> None:
        """Find the step lengths, and prove both bounds at the pair.

        `P` of shape (n_P, n_P), `u` of shape (n_tasks, n_samples); `certify_every`: steps from one
        proof of the bounds to the next.
        """
        self.oracle, self.certify_every = oracle, certify_every
        K = oracle.public_gram(np.eye(oracle.n_P))
        top = float(eigh(K, eigvals_only=True, subset_by_index=[len(K) - 1] * 2)[0])
        weight = oracle.problem.sample_weight
        ends = oracle.learner.C * (np.ones(len(K)) if weight is None else np.asarray(weight))
        l_aa = oracle.n_P * top
        # in factors, because C may be as large or small as numbers go
        longest = float(ends.max())
        l_ap = longest * float(np.linalg.norm(ends / longest)) * math.sqrt(len(u)) * top
        self.tau = 1.0 / (3.0 * l_aa)
        self.sigma = min(0.5 * (l_aa / l_ap) / l_ap, _LONGEST_STEP)
        self.P = self.average = self.parameters = P
        self.u = self.average_u = u
        self.x = self.last_x = 0.5 * oracle.moment(u)
        self.n_steps, self.lower, self.upper = 0, 0.0, np.inf
        self._certify()

    def step(self) -> None:
        """Project P, solve the proximal quadratic program in α, and average."""
        oracle, eta = self.oracle, self.oracle.min_eig
        ahead = self.P + self.sigma * (2.0 * self.x - self.last_x)
        ahead.flat[:: oracle.n_P + 1] -= eta
        self.P = project_spectahedron(ahead, oracle.spread)
        self.P.flat[:: oracle.n_P + 1] += eta
        self.u = self._proximal(oracle.public_gram(self.P), self.u)
        self.last_x, self.x = self.x, 0.5 * oracle.moment(self.u)
        self.n_steps += 1
        self.average = self.average + (self.P - self.average) / self.n_steps
        self.average_u = self.average_u + (self.u - self.average_u) / self.n_steps
        if self.n_steps % self.certify_every == 0:
            self._certify()

    def _proximal(self, K: RealArray, u: Matrix) -> Matrix:
        """Return argmax κ(u′) − ½ u′ᵀ K u′ − ‖u′ − u‖²/(2τ) of each task; K is changed."""
        oracle, inverse = self.oracle, 1.0 / self.tau
        K.flat[:: len(K) + 1] += inverse
        K.flags.writeable = False
        budget = Budget(_INNER_TOL * inverse, _STEPS)
        found = np.empty_like(u)
        for row, target, out in zip(u, oracle.targets, found, strict=True):
            problem = oracle.learner.problem(K, target, oracle.problem.sample_weight)
            problem = replace(problem, p=problem.p + inverse * row, exact_kappa=False)
            out[:] = solve_box(problem, row, budget, "smo").landing.point.u
        return found

    def _certify(self) -> None:
        """Bound the optimum at the last pair and at the averages."""
        oracle = self.oracle
        pairs = [(self.P, self.u)]
        if self.n_steps > 1:
            pairs.append((self.average, self.average_u))
        for P, u in pairs:
            K = oracle.public_gram(P)
            own = oracle.direction(oracle.evaluate(K, u))
            target = 0.1 * max(self.upper - self.lower, 1e-12 * abs(own.lower_bound))
            solution = oracle.solve(K, oracle.evaluate(K, u), target)
            upper = oracle.upper_bound(solution, P)
            self.lower = max(own.lower_bound, oracle.direction(solution).lower_bound, self.lower)
            if upper < self.upper:
                self.upper, self.parameters, self.inner = upper, P, solution


class PrimalDualSearch(PrimalDualPath):
    """``tkl-apd``: proximal steps in P and α with constants that are valid, and so very short.

    A reproduction: `tkl-low-rank` needs fewer learner solves than this method needs for a tenth
    of the gap. One iteration forms a Gram matrix of a P of full rank, one moment matrix, one
    projection (an eigendecomposition of order n_P) and one quadratic program.
    """

    settings: AcceleratedPrimalDual = AcceleratedPrimalDual()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: AcceleratedPrimalDual = settings,
    ) -> None:
        """Start at P = I and the balanced direction's learner solution.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        self.settings = settings
        oracle = SpectahedronOracle(problem, settings.dtype, n_grams=2)
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        super().__init__(oracle, np.eye(oracle.n_P), oracle.feasible(u), settings.certify_every)
