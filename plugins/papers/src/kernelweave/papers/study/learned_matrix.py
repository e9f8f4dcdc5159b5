"""Does a learned P beat P = I, and by which rule: by the evidence or by the training objective?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.families import TessellatedFamily
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize

from ..data import folds, notes
from ..measuring import CLASSES, in_words, within
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .sets import SETS, SetSource, address, samples

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


STRENGTHS = (math.inf, 50.0, 5.0, 0.5, 0.05)
_STEPS = 40
_WEIGHTS, _NOISES = (-14.0, 7.0), (-11.0, 3.0)
# two classes or numbers, and P of a side that all its entries can be learned
_MOST_COLUMNS = 13
_ROWS, _QUICK_ROWS, _MOST_TESTED = 150, 40, 2000
_N_FOLDS, _OUTER = 3, 5
_PENALTIES = tuple(10.0**power for power in range(-1, 4))
# the columns that an indicator compares
_FAMILIES = {"single columns": 1, "three columns at a time": 3}
_RULES = {
    "evidence": ("P by the evidence", "P = I by the evidence"),
    "strongest": (f"P by the evidence, λ = {STRENGTHS[-1]:g} alone", "P = I by the evidence"),
    "objective": ("P by the training objective", "P = I in the support vector machine"),
}
_NOTES = notes(
    "study.learned_matrix",
    rows=_ROWS,
    most_tested=_MOST_TESTED,
    listed=", ".join(f"{each:g}" for each in STRENGTHS),
    first=_PENALTIES[0],
    last=_PENALTIES[-1],
)


class Units(NamedTuple):
    """The Gram matrices of the symmetric units of P and their places in it.

    `lower` of shape (units, m(m + 1)/2): rows of the lower triangles.
    """

    lower: FloatArray
    rows: Index
    columns: Index

    @property
    def side(self) -> int:
        """n_P."""
        return int(self.columns[-1]) + 1

    @property
    def n_samples(self) -> int:
        """M."""
        return math.isqrt(2 * self.lower.shape[1])

    @property
    def places(self) -> tuple[Index, Index]:
        """Where the entries of a triangle stand."""
        return np.tril_indices(self.n_samples)

    def of(self, samples: Index) -> Units:
        """Return the units on some of the samples, in ascending order."""
        inside = np.isin(np.arange(self.n_samples), samples)
        i, j = self.places
        return self._replace(lower=self.lower[:, inside[i] & inside[j]])

    def gram(self, P: FloatArray) -> FloatArray:
        """Return Σ PₐᵦGₐᵦ."""
        m = self.n_samples
        K = np.zeros((m, m))
        K[self.places] = P[self.rows, self.columns] @ self.lower
        return np.asarray(K + np.tril(K, -1).T)

    def moment(self, G: FloatArray) -> FloatArray:
        """Return the derivative of ⟨G, K(P)⟩ by P, for a symmetric G."""
        twice = 2.0 * np.tril(G)
        twice[np.diag_indices(len(G))] *= 0.5
        D = np.zeros((self.side, self.side))
        # a unit off the diagonal stands for two entries of P
        D[self.rows, self.columns] = 0.5 * (self.lower @ twice[self.places])
        return D + D.T


class PriorPoint(NamedTuple):
    """A point of the path: log w, log σ² and the logarithmic factor of P."""

    log_weight: float
    log_noise: float
    factor: FloatArray

    @property
    def P(self) -> FloatArray:
        """P, of trace n_P."""
        product = self.factor @ self.factor.T
        return np.asarray(product * (len(product) / np.trace(product)))


def units_of(family: TessellatedFamily, X: FloatArray) -> Units:
    """Return the Gram matrix of each symmetric unit of P: n_P(n_P + 1)/2 of them."""
    rows, columns = np.triu_indices(family.n_P)
    places = np.tril_indices(len(X))
    lower = np.empty((len(rows), len(places[0])))
    for gram, i, j in zip(lower, rows, columns, strict=True):
        unit = np.zeros((family.n_P, family.n_P))
        unit[i, j] = unit[j, i] = 1.0
        gram[:] = family.gram(X, unit)[places]
    return Units(lower, rows, columns)


def learn_path(units: Units, y: FloatArray) -> list[PriorPoint]:
    """Return the kernel of each strength, each started at the one before.

    K = w Σ PₐᵦGₐᵦ with tr P = n_P and S = K + σ²I. Minimised over w, σ² and P ≻ 0:

        ½ yᵀS⁻¹y + ½ log det S + ½λ (n_P log(tr P / n_P) − log det P) + .01 (log w)²

    The prior is zero at multiples of the identity alone, so that λ → ∞ is P = I. The problem is not
    convex and its end is a stationary point; nothing is proved about it.
    """
    n = units.side
    mean_diagonal = float(np.trace(units.gram(np.eye(n)))) / len(y)
    found = [PriorPoint(-math.log(mean_diagonal), math.log(0.1), np.eye(n))]
    for strength in STRENGTHS:
        found.append(_descend(units, y, strength, found[-1]))
    return found[1:]


def _descend(units: Units, y: FloatArray, strength: float, start: PriorPoint) -> PriorPoint:
    lower, diagonal = np.tril_indices(units.side), np.diag_indices(units.side)
    free = math.isfinite(strength)

    def unpack(values: FloatArray) -> PriorPoint:
        factor = np.zeros((units.side, units.side)) if free else np.array(start.factor)
        if free:
            factor[lower] = values[2:]
            factor[diagonal] = np.exp(factor[diagonal])
        return PriorPoint(float(values[0]), float(values[1]), factor)

    def value(values: FloatArray) -> tuple[float, FloatArray]:
        kernel = unpack(values)
        found, (of_weight, of_noise, of_factor) = objective(kernel, units, y, strength)
        of_factor[diagonal] *= kernel.factor[diagonal]
        return found, np.array([of_weight, of_noise, *(of_factor[lower] if free else ())])

    logs = np.array(start.factor)
    logs[diagonal] = np.log(logs[diagonal])
    first = np.array([start.log_weight, start.log_noise, *(logs[lower] if free else ())])
    bounds = [_WEIGHTS, _NOISES, *[(None, None)] * (len(first) - 2)]
    found = minimize(
        value, first, method="L-BFGS-B", jac=True, bounds=bounds,
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS},
    )  # fmt: skip
    return unpack(found.x)


def objective(
    kernel: PriorPoint, units: Units, y: FloatArray, strength: float
) -> tuple[float, tuple[float, float, FloatArray]]:
    """Return the objective, and its derivatives by log w, log σ² and the lower factor of P."""
    n, P = units.side, kernel.P
    weight, noise = math.exp(kernel.log_weight), math.exp(kernel.log_noise)
    K = weight * units.gram(P)
    lower = cholesky(K + noise * np.eye(len(y)), lower=True)
    inverse = cho_solve((lower, True), np.eye(len(y)))
    a = inverse @ y
    G = 0.5 * (inverse - np.outer(a, a))
    value = 0.5 * float(y @ a) + float(np.log(np.diagonal(lower)).sum())
    value += 0.01 * kernel.log_weight**2
    D = weight * units.moment(G)
    L = kernel.factor
    scale = float(np.vdot(L, L)) / n
    of_product = (D - np.eye(n) * (np.vdot(D, P) / n)) / scale
    if math.isfinite(strength):
        diagonal = np.diagonal(L)
        value += 0.5 * strength * (n * math.log(scale) - 2.0 * float(np.log(diagonal).sum()))
        of_product += 0.5 * strength / scale * np.eye(n)
    of_factor = np.tril(2.0 * of_product @ L)
    if math.isfinite(strength):
        of_factor[np.diag_indices(n)] -= strength / diagonal
    of_weight = float(np.vdot(G, K)) + 0.02 * kernel.log_weight
    return value, (of_weight, noise * float(np.trace(G)), of_factor)


def weights_of(errors: FloatArray) -> FloatArray:
    """Return how much each strength counts, by its squared error on held-out rows."""
    counts = np.exp(-20.0 * (errors / errors.min() - 1.0))
    return np.asarray(counts / counts.sum())


def measure(where: str, task: str, order: int, fold: int, rows: int) -> dict[str, float]:
    """Return the score of each rule on an outer fold, in per cent."""
    X, y = samples(where)
    classes = task == CLASSES
    train, test = list(folds(_OUTER, 0, classes=classes).split(X, y))[fold]
    state = np.random.RandomState(fold)
    # ascending: the Gram matrices of a fold are parts of those of all rows
    train = np.sort(state.permutation(train)[:rows])
    test = state.permutation(test)[:_MOST_TESTED]
    learn, X_test = _prepared(X[train], X[test])
    if classes:
        y = np.where(y == np.unique(y)[1], 1.0, -1.0)
    offset, unit = (0.0, 1.0) if classes else (float(y[train].mean()), float(y[train].std()))
    z = (y[train] - offset) / unit
    parts = [held for _, held in folds(_N_FOLDS, 0, classes=classes).split(learn, z)]

    def score(predicted: FloatArray) -> float:
        from sklearn.metrics import accuracy_score, r2_score

        if classes:
            return 100.0 * float(accuracy_score(y[test], np.where(predicted > 0.0, 1.0, -1.0)))
        return max(0.0, 100.0 * float(r2_score(y[test], predicted * unit + offset)))

    family = TessellatedFamily.from_data(learn, degree=1, order=min(order, learn.shape[1]))
    path, counts = _by_evidence(
        family, learn, z, np.clip(X_test, family.lower, family.upper), parts
    )
    machines = _by_objective(family, learn, z, X_test, parts, classes=classes)
    return {
        "P = I by the evidence": score(path[0]),
        "P by the evidence": score(counts @ path),
        f"P by the evidence, λ = {STRENGTHS[-1]:g} alone": score(path[-1]),
        **{name: score(predicted) for name, predicted in machines.items()},
    }


def _prepared(X: FloatArray, X_test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return standardised columns with their tails drawn in, as the evidence kernel has them."""
    kept = np.ptp(X, axis=0) > 0.0
    mean, spread = X[:, kept].mean(axis=0), X[:, kept].std(axis=0)
    standard = [(each[:, kept] - mean) / spread for each in (X, X_test)]
    first, second = (np.asarray(t / np.sqrt(1.0 + (t / 8.0) ** 2)) for t in standard)
    return first, second


def _by_evidence(
    family: TessellatedFamily, X: FloatArray, z: FloatArray, X_test: FloatArray, parts: list[Index]
) -> tuple[FloatArray, FloatArray]:
    """Return what each strength predicts for the test rows, and how much it counts."""
    units, every = units_of(family, X), np.arange(len(X))

    def predict(kernel: PriorPoint, rows: Index, others: FloatArray) -> FloatArray:
        weight, noise = np.exp(kernel.log_weight), np.exp(kernel.log_noise)
        mean = float(z[rows].mean())
        S = weight * family.gram(X[rows], kernel.P) + noise * np.eye(len(rows))
        cross = weight * family.gram(others, kernel.P, X[rows])
        return np.asarray(mean + cross @ np.linalg.solve(S, z[rows] - mean))

    errors = np.zeros(len(STRENGTHS))
    for held in parts:
        kept = np.setdiff1d(every, held)
        for i, kernel in enumerate(learn_path(units.of(kept), z[kept] - z[kept].mean())):
            errors[i] += float(((predict(kernel, kept, X[held]) - z[held]) ** 2).sum())
    path = learn_path(units, z - z.mean())
    return np.array([predict(kernel, every, X_test) for kernel in path]), weights_of(errors)


def _by_objective(
    family: TessellatedFamily,
    X: FloatArray,
    z: FloatArray,
    X_test: FloatArray,
    parts: list[Index],
    *,
    classes: bool,
) -> dict[str, FloatArray]:
    """Return what support vector machines predict: at P = I, and at the P of their objective."""
    from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
    from sklearn.svm import SVC, SVR

    kind = TessellatedKernelClassifier if classes else TessellatedKernelRegressor
    kernel = family.kernel(np.eye(family.n_P))
    unit = 1.0 / float(np.mean(kernel.diag(X)))

    def plain(C: float) -> BaseEstimator:
        given = {"C": C * unit, "kernel": kernel}
        return SVC(**given) if classes else SVR(epsilon=0.1, **given)

    def learned(C: float) -> BaseEstimator:
        box = (family.lower, family.upper)
        return kind(C=C, order=family.order or "auto", scale=False, domain=box, tol=1e-2)

    def best(make: Callable[[float], BaseEstimator]) -> FloatArray:
        def error(C: float) -> float:
            found = np.empty_like(z)
            for held in parts:
                kept = np.setdiff1d(np.arange(len(z)), held)
                found[held] = make(C).fit(X[kept], z[kept]).predict(X[held])
            return float(((found - z) ** 2).mean())

        return np.asarray(make(min(_PENALTIES, key=error)).fit(X, z).predict(X_test))

    return {
        "P = I in the support vector machine": best(plain),
        "P by the training objective": best(learned),
    }


def study(request: Request) -> Plan:
    """Plan the study: a cell per set, family and outer fold."""
    chosen = {name: source for name, source in SETS.items() if _is_small(source)}
    if request.quick:
        chosen = {name: chosen[name] for name in ("haberman", "Gu and Wahba")}
    n_folds = 1 if request.quick else min(request.repeats or 2, _OUTER)
    rows = _QUICK_ROWS if request.quick else min(request.subsample or _ROWS, _ROWS)
    cells = [
        cell(
            f"{family}/{name}/{fold}",
            0.03 * source.n_columns**2 * (rows / 150.0) ** 2 + 3.0,
            *(rows < _ROWS, measure),
            *(address(source, request), source.task, order, fold, rows),
        )
        for fold in range(n_folds)
        for family, order in _FAMILIES.items()
        for name, source in chosen.items()
    ]
    return Plan(cells, lambda results: [_verdict(results), *_scores(results, chosen)])


def _is_small(source: SetSource) -> bool:
    return source.n_columns <= _MOST_COLUMNS and source.n_classes in (0, 2)


def _means(results: Results, family: str, name: str) -> dict[str, float]:
    found = list(within(results, family, name).values())
    return {key: float(np.mean([each[key] for each in found])) for key in found[0]} if found else {}


def _verdict(results: Results) -> Sheet:
    rows: list[list[Value]] = []
    for family in _FAMILIES:
        found = {name: _means(results, family, name) for name in SETS}
        for learned, fixed in _RULES.values():
            gains = {n: each[learned] - each[fixed] for n, each in found.items() if each}
            row: list[Value] = [family, f"{learned}, above {fixed}", len(gains)]
            row += [sum(gain > 0.0 for gain in gains.values()), in_words(list(gains.values()))]
            for classes in (True, False):
                row.append(
                    in_words([g for n, g in gains.items() if bool(SETS[n].n_classes) == classes])
                )
            rows.append(row)
    heads = ("indicators of", "points of", "sets", "ahead on", "mean", "classes", "numbers")
    return Sheet("What a learned P is worth", heads, rows, _NOTES)


def _scores(results: Results, chosen: dict[str, SetSource]) -> list[Sheet]:
    columns = [name for pair in _RULES.values() for name in reversed(pair)]
    columns = list(dict.fromkeys(columns))
    sheets = []
    for family in _FAMILIES:
        found = {name: _means(results, family, name) for name in chosen}
        rows: list[list[Value]] = [
            [name, *(round(each[column], 1) if each else None for column in columns)]
            for name, each in found.items()
        ]
        sheets.append(Sheet(f"Scores, indicators of {family}", ("data", *columns), rows))
    return sheets
