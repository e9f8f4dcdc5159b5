"""Record the evidence of a small problem in fifty digits, as a golden value for plugins/evidence.

Run once, from anywhere::

    python tests/golden/make_evidence.py

It writes ``evidence.json`` beside itself and uses nothing of the project: the kernel, the priors,
the determinant and the gradient, by differences, are written down here once more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

HERE = Path(__file__).resolve().parent
N_ROWS, N_NUMBERS, PRECISION, JITTER, WEAK, CAP = 8, 2, 5.0, 1e-6, 0.02, 8
mp.mp.dps = 50


def problem() -> dict[str, Any]:
    """Return two numbers and a level of eight rows, two outputs, weights and a point."""
    state = np.random.RandomState(3)
    n = N_NUMBERS + 1
    return {
        "numeric": state.randn(N_ROWS, N_NUMBERS).round(3).tolist(),
        "codes": [[c] for c in (0, 1, 2, 0, 1, 0, 2, 2)],
        "targets": state.randn(2, N_ROWS).round(3).tolist(),
        "weight": [1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0],
        "precision": PRECISION,
        "theta": (0.5 * state.randn(2 * n + 6) - 0.5).round(3).tolist(),
    }


def views(case: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return capped scores and mid-ranks, a list per number, and the shares of the levels."""
    w = [mp.mpf(v) for v in case["weight"]]
    total = mp.fsum(w)
    X, U = [], []
    for column in zip(*case["numeric"], strict=True):
        x = [mp.mpf(v) for v in column]
        mean = mp.fsum(a * b for a, b in zip(w, x, strict=True)) / total
        spread = mp.sqrt(mp.fsum(a * (b - mean) ** 2 for a, b in zip(w, x, strict=True)) / total)
        t = [(b - mean) / spread for b in x]
        X.append([v / mp.sqrt(1 + (v / CAP) ** 2) for v in t])
        below = [mp.fsum(a for a, c in zip(w, x, strict=True) if c < b) for b in x]
        own = [mp.fsum(a for a, c in zip(w, x, strict=True) if c == b) for b in x]
        U.append([(a + b / 2) / total for a, b in zip(below, own, strict=True)])
    codes = [c[0] for c in case["codes"]]
    shares = [mp.fsum(a for a, c in zip(w, codes, strict=True) if c == k) / total for k in range(3)]
    return X, U, shares


def kernel(case: dict[str, Any], theta: list[Any]) -> Any:
    """Return the five terms, summed."""
    X, U, shares = views(case)
    codes = [c[0] for c in case["codes"]]
    n = N_NUMBERS + 1
    ell, s = [mp.exp(v) for v in theta[:n]], [mp.exp(v) for v in theta[n : 2 * n]]
    w = [mp.exp(v) for v in theta[2 * n : -1]]
    square = mp.fsum(p * p for p in shares)
    K = mp.matrix(N_ROWS, N_ROWS)
    for a in range(N_ROWS):
        for b in range(N_ROWS):
            same = mp.mpf(codes[a] == codes[b])
            overlap = same - shares[codes[a]] - shares[codes[b]] + square
            d2 = ell[-1] ** 2 * (1 - same)
            linear = ell[-1] ** 2 * overlap / 2
            kappas = [overlap / (1 - square)]
            for i in range(N_NUMBERS):
                x, y, u, v = X[i][a], X[i][b], U[i][a], U[i][b]
                d2 += ell[i] ** 2 * (x - y) ** 2
                linear += ell[i] ** 2 * x * y
                inside = -abs(u - v) + u * u - u + v * v - v + 1 - mp.mpf(1) / 3
                kappas.insert(i, 3 * inside)
            product = mp.mpf(1)
            for strength, kappa in zip(s, kappas, strict=True):
                product *= (1 + strength * kappa) / (1 + strength)
            terms = (mp.exp(-d2 / 2), mp.exp(-mp.sqrt(d2)), linear, product, mp.exp(-d2 / 200))
            K[a, b] = mp.fsum(p * q for p, q in zip(w, terms, strict=True))
    return K


def negative_log_evidence(case: dict[str, Any], theta: list[Any]) -> Any:
    """Return L with its priors."""
    S, noise = kernel(case, theta), mp.exp(theta[-1])
    for a, weight in enumerate(case["weight"]):
        S[a, a] += noise / mp.mpf(weight) + mp.mpf(JITTER)
    L = mp.cholesky(S)
    log_det = 2 * mp.fsum(mp.log(L[a, a]) for a in range(N_ROWS))
    value = mp.mpf(0)
    for row in case["targets"]:
        y = mp.matrix([mp.mpf(v) for v in row])
        value += (y.T * mp.lu_solve(S, y))[0] / 2 + log_det / 2
        value += (mp.fsum(case["weight"]) - N_ROWS) * theta[-1] / 2
    n = N_NUMBERS + 1
    for part in (theta[:n], theta[n : 2 * n]):
        mean = mp.fsum(part) / n
        value += PRECISION * mp.fsum((v - mean) ** 2 for v in part) / 2 + WEAK * mean**2 / 2
    return value + WEAK * mp.fsum(v * v for v in theta[2 * n : -1]) / 2


def main() -> None:
    """Write value and gradient beside this file."""
    case = problem()
    theta, h = [mp.mpf(v) for v in case["theta"]], mp.mpf(10) ** -15
    slopes = []
    for i in range(len(theta)):
        ends = [
            negative_log_evidence(case, [v + sign * h * (i == j) for j, v in enumerate(theta)])
            for sign in (1, -1)
        ]
        slopes.append(float((ends[0] - ends[1]) / (2 * h)))
    found = {"value": float(negative_log_evidence(case, theta)), "slopes": slopes}
    text = json.dumps({**case, **found}, indent=1)
    (HERE / "evidence.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
