"""Series with a known graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, integer, number

Matrix = npt.NDArray[np.float64]


def lorenz96(
    n_nodes: int = 8,
    n_times: int = 200,
    *,
    forcing: float = 10.0,
    dt: float = 0.05,
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Return a series of the Lorenz-96 system and its true graph.

    dxᵢ/dt = (xᵢ₊₁ − xᵢ₋₂) xᵢ₋₁ − xᵢ + F, indices modulo n: node i is driven by itself and by
    i − 2, i − 1 and i + 1. Integrated by the classical Runge-Kutta method, 1000 steps discarded.

    Parameters
    ----------
    n_nodes : int, default=8
        n, at least 4.
    n_times : int, default=200
        Rows.
    forcing : float, default=10.0
        F; chaotic from about 8.
    dt : float, default=0.05
        Step, and distance of two rows.
    noise : float, default=0.0
        Standard deviation of the observation noise.
    random_state : int or RandomState, optional
        Of the start and the noise.

    Returns
    -------
    X : ndarray of shape (n_times, n_nodes)
        The series.
    truth : ndarray of bool of shape (n_nodes, n_nodes)
        ``truth[i, j]`` says that j drives i.

    Examples
    --------
    >>> from kernelweave.granger import lorenz96
    >>> X, truth = lorenz96(5, 50, random_state=0)
    >>> X.shape, int(truth[0].sum())
    ((50, 5), 4)
    """
    from sklearn.utils import check_random_state

    integer(4).check("n_nodes", n_nodes)
    COUNT.check("n_times", n_times)
    number().check("forcing", forcing)
    POSITIVE.check("dt", dt)
    NONNEGATIVE.check("noise", noise)
    rng = check_random_state(random_state)
    x = forcing + 0.01 * rng.standard_normal(n_nodes)
    rows = np.empty((n_times, n_nodes))
    for t in range(-1000, n_times):
        x = _runge_kutta(x, forcing, dt)
        if t >= 0:
            rows[t] = x
    node = np.arange(n_nodes)
    truth = np.zeros((n_nodes, n_nodes), dtype=bool)
    for shift in (-2, -1, 0, 1):
        truth[node, (node + shift) % n_nodes] = True
    return rows + noise * rng.standard_normal(rows.shape), truth


def _runge_kutta(x: Matrix, forcing: float, dt: float) -> Matrix:
    def slope(z: Matrix) -> Matrix:
        return (np.roll(z, -1) - np.roll(z, 2)) * np.roll(z, 1) - z + forcing

    a = slope(x)
    b = slope(x + 0.5 * dt * a)
    c = slope(x + 0.5 * dt * b)
    d = slope(x + dt * c)
    return x + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)
