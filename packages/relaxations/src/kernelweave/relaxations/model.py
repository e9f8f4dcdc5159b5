"""The conic relaxations as cvxpy problems; cvxpy is imported when the first one is built."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kernelweave.qp_smo.saddle import GramStack, Learner
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SparseProblem:
    """``min over sparse β of Σₜ max κ(uₜ) − ½uₜᵀK(β)uₜ + λ‖β‖²`` as data.

    Attributes
    ----------
    grams : GramStack
    targets : ndarray of shape (t, n)
    learner : Learner
    lam : float
    k0 : int
    sample_weight : ndarray of shape (n,) or None
    """

    grams: GramStack
    targets: FloatArray
    learner: Learner
    lam: float
    k0: int
    sample_weight: FloatArray | None = None

    def boxes(self) -> list[Any]:
        """Return the box problem of each task: p, lower, upper and ε of its dual."""
        K = self.grams.matrices[0]
        return [self.learner.problem(K, y, self.sample_weight) for y in self.targets]


@dataclass
class Model:
    """A relaxation in cvxpy, with the parts that its duals are read from.

    Attributes
    ----------
    problem : cvxpy.Problem
    weights, shares : cvxpy.Variable
        β and z.
    thetas, functions : list of cvxpy.Variable
        θ and γ = f of each task; the maximum over uₜ is bounded below through ``½θₜ``.
    above, below : list of cvxpy constraints
        ``σ⁺ ≥ p − f − b − ε`` and ``σ⁻ ≥ f + b − p − ε``, whose multipliers make u.
    coupling : list of cvxpy constraints
        What ties θ, f and β, per task.
    """

    problem: Any
    weights: Any
    shares: Any
    thetas: list[Any]
    functions: list[Any]
    above: list[Any]
    below: list[Any]
    coupling: list[Any]

    def dual_points(self) -> list[FloatArray]:
        """Return u of each task, nearly feasible, shape (n,) each."""
        return [
            np.asarray(up.dual_value) - np.asarray(down.dual_value)
            for up, down in zip(self.above, self.below, strict=True)
        ]


def cvxpy() -> Any:
    """Import cvxpy.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to go on.
    """
    try:
        import cvxpy as cp
    except ModuleNotFoundError as error:
        raise ImportError(
            "this relaxation needs cvxpy: pip install cvxpy clarabel, or use relaxation='saddle', "
            "which has the value of 'full-sdp' and needs neither"
        ) from error
    return cp


def base_model(problem: SparseProblem, couple: Any, *, integer: bool = False) -> Model:
    """Return ``min Σ losses + ½Σθ + λΣω`` over everything but the tie between θ, f and β.

    Parameters
    ----------
    problem : SparseProblem
    couple : callable
        ``couple(theta, f, beta)`` returns the list of constraints of one task.
    integer : bool
        Whether z is 0 or 1 (problem (13)) or between them.
    """
    cp = cvxpy()
    n, q = problem.grams.n_samples, len(problem.grams)
    beta = cp.Variable(q, nonneg=True)
    z = cp.Variable(q, boolean=True) if integer else cp.Variable(q, nonneg=True)
    omega = cp.Variable(q, nonneg=True)
    constraints = [cp.sum(beta) == 1, cp.sum(z) <= problem.k0]
    if not integer:
        constraints.append(z <= 1)
    constraints.append(cp.SOC(z + omega, cp.vstack([2 * beta, z - omega]), axis=0))
    cost = problem.lam * cp.sum(omega)
    model = Model(None, beta, z, [], [], [], [], [])
    for box in problem.boxes():
        theta, intercept = cp.Variable(), cp.Variable()
        f = cp.Variable(n)
        up, down = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
        above = up >= box.p - f - intercept - box.epsilon
        below = down >= f + intercept - box.p - box.epsilon
        tie = couple(theta, f, beta)
        constraints += [above, below, *tie]
        cost = cost + box.upper @ up - box.lower @ down + 0.5 * theta
        model.thetas.append(theta)
        model.functions.append(f)
        model.above.append(above)
        model.below.append(below)
        model.coupling.append(tie)
    model.problem = cp.Problem(cp.Minimize(cost), constraints)
    return model


def couple_vectors(vectors: FloatArray, forms: FloatArray) -> Any:
    """Return the tie ``θ · Σ βⱼ xᵀKⱼx ≥ (xᵀf)²`` for the rows x of ``vectors``, as cones.

    Parameters
    ----------
    vectors : ndarray of shape (L, n)
    forms : ndarray of shape (q, L)
        ``xᵀKⱼx``.
    """
    cp = cvxpy()

    def couple(theta: Any, f: Any, beta: Any) -> list[Any]:
        combined = forms.T @ beta
        along = vectors @ f
        total, ones = combined + theta, np.ones(len(vectors))
        return [cp.SOC(total, cp.vstack([2 * along, theta * ones - combined]), axis=0)]

    return couple


def couple_diagonal(basis: FloatArray, diagonals: FloatArray) -> Any:
    """Return the tie of (15): ``θ ≥ Στⱼ`` and ``τⱼ · Σ βᵢ(Dᵢ)ⱼⱼ ≥ (uⱼᵀf)²``.

    Parameters
    ----------
    basis : ndarray of shape (n, n)
        The common eigenvectors as columns.
    diagonals : ndarray of shape (q, n)
        The eigenvalues of each Gram matrix.
    """
    cp = cvxpy()

    def couple(theta: Any, f: Any, beta: Any) -> list[Any]:
        tau = cp.Variable(basis.shape[1], nonneg=True)
        combined = diagonals.T @ beta
        along = basis.T @ f
        cone = cp.SOC(tau + combined, cp.vstack([2 * along, tau - combined]), axis=0)
        return [cone, theta >= cp.sum(tau)]

    return couple


def couple_matrix(problem: SparseProblem) -> Any:
    """Return the tie ``[θ fᵀ; f K(β)] ⪰ 0``, a linear matrix inequality in n + q + 2 unknowns."""
    cp = cvxpy()
    grams = [np.asarray(K, dtype=np.float64) for K in problem.grams.matrices]

    def couple(theta: Any, f: Any, beta: Any) -> list[Any]:
        n = problem.grams.n_samples
        combined = sum(beta[j] * K for j, K in enumerate(grams))
        column = cp.reshape(f, (n, 1), order="F")
        corner = cp.reshape(theta, (1, 1), order="F")
        return [cp.bmat([[corner, column.T], [column, combined]]) >> 0]

    return couple


def couple_pairs(problem: SparseProblem) -> Any:
    """Return the tie of (18): all 3 × 3 principal submatrices with the first row are ⪰ 0.

    They are one linear map of θ, f and β onto an array of shape (n(n − 1)/2, 3, 3): a constraint
    of its own for each of them would take cvxpy minutes to compile.
    """
    cp = cvxpy()
    grams = np.stack([np.asarray(K, dtype=np.float64) for K in problem.grams.matrices])
    q, n = grams.shape[:2]
    j, k = np.triu_indices(n, 1)
    start = 9 * np.arange(j.size)
    from scipy.sparse import csr_array

    corner = csr_array((np.ones(j.size), (start, np.zeros_like(j))), shape=(9 * j.size, 1))
    border = np.concatenate([start + 1, start + 3, start + 2, start + 6])
    of_f = csr_array(
        (np.ones(border.size), (border, np.concatenate([j, j, k, k]))), shape=(9 * j.size, n)
    )
    inner = np.concatenate([start + 4, start + 5, start + 7, start + 8])
    rows, columns = np.concatenate([j, j, k, k]), np.concatenate([j, k, j, k])
    of_beta = csr_array(
        (
            grams[:, rows, columns].ravel(),
            (np.tile(inner, q), np.repeat(np.arange(q), inner.size)),
        ),
        shape=(9 * j.size, q),
    )

    def couple(theta: Any, f: Any, beta: Any) -> list[Any]:
        corners = corner @ cp.reshape(theta, (1,), order="C")
        flat = corners + of_f @ f + of_beta @ beta
        return [cp.reshape(flat, (j.size, 3, 3), order="C") >> 0]

    return couple


@cache
def mosek_licence() -> str:
    """Return "" where MOSEK has a licence, else what it says; asked for once a process."""
    try:
        import mosek
    except ImportError as error:
        return str(error)
    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return str(error).strip()
    return ""


def solve_model(model: Model, solver: str | None) -> tuple[float, float]:
    """Solve by the named solver; return the value and the seconds.

    Raises
    ------
    ValueError
        If the solver is not installed; the message lists those that are.
    RuntimeError
        If it finds no solution, or is MOSEK and has no licence.
    """
    cp = cvxpy()
    name = "CLARABEL" if solver is None else solver.upper()
    installed = cp.installed_solvers()
    if name not in installed:
        raise ValueError(f"solver={solver!r} is not installed: choose one of {installed}")
    if name == "MOSEK" and mosek_licence():
        raise RuntimeError(
            f"MOSEK has no licence ({mosek_licence()}): leave solver=None for CLARABEL"
        )
    started = time.perf_counter()
    with warnings.catch_warnings():
        # the value is no proof in any case: the bound is computed from the multipliers
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        # the only backend for arrays of matrices; cvxpy would choose it with a warning
        value = model.problem.solve(solver=getattr(cp, name, name), canon_backend="SCIPY")
    seconds = time.perf_counter() - started
    if model.problem.status not in ("optimal", "optimal_inaccurate"):
        raise RuntimeError(f"{name} stopped with status {model.problem.status!r}: try another")
    return float(value), seconds


def misdp(
    grams: Any,
    y: Any,
    *,
    C: float | None = None,
    lam: float,
    k0: int,
    learner: Learner | None = None,
) -> Model:
    """State the mixed-integer semidefinite program (13) for cvxpy.

    ``min C Σσ + ½θ + λΣω`` over ``[θ fᵀ; f K(β)] ⪰ 0``, ``σ ≥ 1 − y∘(f + b)``, ``βⱼ² ≤ zⱼωⱼ``,
    ``Σβ = 1``, ``Σz ≤ k₀`` and z in {0, 1}. cvxpy needs a solver of such programs to solve it;
    `solve_global` needs none.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n)
    y : ndarray of shape (n,) or (t, n)
    C, lam : float
    k0 : int
    learner : Learner, optional
        Instead of C.

    Returns
    -------
    Model
        ``problem`` is a cvxpy.Problem.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.relaxations import misdp
    >>> x = np.array([-1.0, 1.0])
    >>> model = misdp(np.stack([np.outer(x, x), np.eye(2)]), x, C=1.0, lam=0.1, k0=1)
    >>> model.problem.is_mixed_integer()
    True
    """
    from .bounds import as_problem

    problem = as_problem(grams, y, C=C, lam=lam, k0=k0, learner=learner)
    return base_model(problem, couple_matrix(problem), integer=True)
