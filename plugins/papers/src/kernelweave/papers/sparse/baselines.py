"""The baselines on the ten data sets, ours beside Tables 2 to 4."""

from __future__ import annotations

from ..data import folds, load, split
from ..measuring import mean, spread, within
from ..plan import Cell, Plan, Request, Results, Sheet, Value
from .sets import SETS, report, size_of, theirs

METHODS = ("AverageMKL", "EasyMKL", "CKA", "PWMK", "SimpleMKL")
_SPLITS = 5
_GRID = {"C": [1.0, 10.0, 100.0]}
_GRID_EASY = {**_GRID, "lam": [0.01, 0.1, 0.5]}
# seconds of a cell in units of (m / 1000)², measured on one core
_SECONDS = {"AverageMKL": 6.0, "EasyMKL": 12.0, "CKA": 8.0, "PWMK": 60.0, "SimpleMKL": 25.0}
_NOTES = (
    "Ours: 80 % of the rows train, at random, the mean of five splits; features standardised by "
    "the training part; the paper's ten kernels without its two indefinite sigmoids; C from 1, 10, "
    "100 (EasyMKL: λ from .01, .1, .5 too) by three folds; seconds: processor "
    "seconds of the last fit on one thread, with all code loaded.",
    "The paper: one split; C = 1000 and its own classifier for EasyMKL, as MKLpy has them; ten "
    "kernels, the polynomial ones with (⟨x, z⟩ + 1)^d and not the (0.01⟨x, z⟩ + 1)^d of its text; "
    "CKA with weights of any sign. PWMK and SimpleMKL are not in the paper.",
)


def measure(
    path: str, columns: list[int] | None, method: str, n_train: int, n_test: int, seed: int
) -> dict[str, float]:
    """Tune, fit and test one method on one random split."""
    from kernelweave import baselines
    from kernelweave.kernels_core import PrecomputedGrams, default_kernels
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler

    X, X_test, y, y_test = split(*load(path, columns), n_train, n_test, seed, classes=True)
    scaler = StandardScaler().fit(X)
    fitted = default_kernels().fit_grams(scaler.transform(X))
    cross = fitted.cross(scaler.transform(X_test))
    model = getattr(baselines, f"{method}Classifier")("precomputed", tol=1e-3)
    grid = _GRID_EASY if method == "EasyMKL" else _GRID
    search = GridSearchCV(model, grid, cv=folds(3, seed, classes=True), refit=False)
    search.fit(PrecomputedGrams(fitted.grams), y)
    model.set_params(**search.best_params_)
    return report(model, fitted.grams, y, cross, y_test)


def table(request: Request) -> Plan:
    """Accuracy, kernels used and seconds of every baseline on the ten sets."""
    cells = []
    for name, about in SETS.items():
        n_train = size_of(request, name)
        if request.quick:
            n_train = min(n_train, int(0.8 * request.most_samples))
        cells += [
            Cell(
                key=f"{name}/{method}/{seed}",
                compute=measure,
                arguments={
                    "path": str(request.data_file(about.file)),
                    "columns": about.columns,
                    "method": method,
                    "n_train": n_train,
                    "n_test": max(20, round(n_train / 4)),
                    "seed": seed,
                },
                seconds=max(0.5, _SECONDS[method] * (n_train / 1000) ** 2),
                is_reduced=request.sample_limit is not None,
            )
            for method in METHODS
            for seed in range(1 if request.quick else _SPLITS)
        ]
    return Plan(cells, _present)


def _present(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    for name in SETS:
        for method in METHODS:
            found = within(results, name, method).values()
            accuracy = [each["accuracy"] for each in found]
            ours = [mean(each[field] for each in found) for field in ("n_kernels", "seconds")]
            gap = max((each["gap"] for each in found), default=None)
            printed = [theirs(number).get(method, {}).get(name) for number in (2, 3, 4)]
            rows.append([name, method, mean(accuracy), spread(accuracy), *ours, gap, *printed])
    columns = ("data", "method", "accuracy (%)", "±", "kernels", "seconds", "gap")
    heads = (*columns, "accuracy (paper)", "kernels (paper)", "seconds (paper)")
    return [Sheet("Baselines on ten sets, ours beside the paper's", heads, rows, _NOTES)]
