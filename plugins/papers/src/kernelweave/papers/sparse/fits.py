"""Tables 2 to 5 and 8 to 10: accuracy, kernels used and seconds, with ten kernels and fifty."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kernelweave.kernels_core.arrays import FloatArray

from ..data import notes
from ..plan import Cell, Plan, Request, Results, Sheet, Value
from .question import ALGORITHM_1, BASELINES, dictionary
from .question import cells_of as cells_of_baselines
from .sets import SETS, compared_sheet, ours, read, report, set_cell, size_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

VARIANTS = ("random", "relaxation", "optimum", "cross-validated")
# Algorithm 1 by its start, and what a start by the conic relaxation must be kept to
STARTS = ("random", "3×3", "relaxation", "optimum")
_LARGEST_START, _QUICK_START = 306, 130
_INITS = {"random": "random", "3×3": "sdp-3x3", "relaxation": "saddle"}
_GRID: dict[str, Any] = {
    "C": [5.0, 10.0, 50.0, 100.0],
    "lam": [0.01, 0.1, 1.0, 10.0, 100.0],
    "k0": [1, 2, 3, 4, 5],
}
_QUICK_GRID: dict[str, Any] = {"C": [5.0, 50.0], "lam": [0.1, 10.0], "k0": [1, 3]}
_PRINTED = (ALGORITHM_1, *BASELINES)
# title, what is measured, our columns, the paper's
_TABLES = {
    2: ("Test accuracy (%)", "accuracy", VARIANTS, _PRINTED),
    3: ("Kernels used", "n_kernels", VARIANTS, _PRINTED),
    4: ("CPU seconds of a fit", "seconds", VARIANTS[:3], _PRINTED),
    5: (
        *("Test accuracy (%) by start", "accuracy", STARTS),
        ("best baseline", "random", "3×3", "full"),
    ),
}
# title and what is measured, with fifty kernels
_FIFTY = {
    8: ("Test accuracy (%), fifty kernels", "accuracy"),
    9: ("Kernels used of fifty", "n_kernels"),
    10: ("CPU seconds of a fit, fifty kernels", "seconds"),
}
_FIFTY_VARIANTS = {"best response": "smkl-best-response", "optimum": "smkl-global"}
_FIFTY_GRID: dict[str, Any] = {
    "C": [1.0, 2.0, 5.0, 10.0],
    "lam": [0.01, 0.1, 1.0, 10.0, 100.0],
    "k0": [1, 2, 3],
}
_FIFTY_QUICK_GRID: dict[str, Any] = {"C": [1.0, 10.0], "lam": [0.1, 10.0], "k0": [1, 3]}
_DATA = notes("sparse.fits data")
_ON_SECONDS = notes("sparse.fits seconds")
_ON_FIFTY = notes("sparse.fits fifty")
_FIFTY_SECONDS = notes("sparse.fits fifty seconds")
_ON_ACCURACY = ("One split: accuracies differ by single test samples.",)
_ON_BEST = ("best baseline: the most accurate of EasyMKL, AverageMKL and CKA on this split.",)
_ON_BASELINES = notes("sparse.fits baselines")
_BEST = "best baseline"


def measure(
    path: str,
    columns: list[int] | None,
    limit: int | None,
    C: float,
    lam: float,
    k0: int,
    variant: str,
    quick: bool = False,
) -> dict[str, float]:
    """Fit a variant on the published training part and test it; quick is a coarser choice."""
    from kernelweave.mkl_sparse import SparseMKLClassifier

    parts = read(path, columns, limit)
    # the paper takes its kernels as they are
    model = SparseMKLClassifier(normalize=None, scale=False, random_state=0, C=C, lam=lam, k0=k0)
    if variant in _INITS:
        model.set_params(algorithm="smkl-best-response", init=_INITS[variant])
    else:
        model.set_params(algorithm="smkl-global")
    if variant == "cross-validated":
        grid, folds = (_QUICK_GRID, 2) if quick else (_GRID, 5)
        _choose(model.set_params(choice="best"), grid, folds, parts.X, parts.y)
    return report(model, *parts)


def _choose(model: BaseEstimator, grid: dict[str, Any], folds: int, X: Any, y: FloatArray) -> None:
    """Set what cross-validation over a grid chooses."""
    from sklearn.base import clone

    search = clone(model).set_params(**grid, cv=folds).fit(X, y)
    model.set_params(**{name: getattr(search, f"{name}_") for name in grid})


def measure_fifty(
    path: str,
    columns: list[int] | None,
    limit: int | None,
    n_kernels: int = 50,
    quick: bool = False,
    **_: object,
) -> dict[str, dict[str, float]]:
    """Choose settings by cross-validation, then fit and test both variants.

    The settings with ten kernels are not used: the grid is another.
    """
    from kernelweave.kernels_core import PrecomputedGrams
    from kernelweave.mkl_sparse import SparseMKLClassifier

    parts = read(path, columns, limit)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*set to zero")
        fitted = dictionary(n_kernels).fit_grams(parts.X)
    cross = fitted.cross(parts.X_test)
    model = SparseMKLClassifier("precomputed", random_state=0, choice="best")
    grid, folds = (_FIFTY_QUICK_GRID, 2) if quick else (_FIFTY_GRID, 3)
    _choose(model, grid, folds, PrecomputedGrams(fitted.grams), parts.y)
    return {
        variant: report(
            model.set_params(algorithm=algorithm), fitted.grams, parts.y, cross, parts.y_test
        )
        for variant, algorithm in _FIFTY_VARIANTS.items()
    }


def cells_of(request: Request, variants: Sequence[str]) -> list[Cell]:
    """Return a cell per data set and variant; the tables share them."""
    # who does not search does the same, quick or not
    searches: dict[str, Any] = {"quick": True} if request.quick else {}
    effort = {"cross-validated": 12.0 if request.quick else 150.0, "3×3": 400.0}
    return [
        set_cell(
            *(request, name, variant, measure, effort.get(variant, 2.0)),
            **{"variant": variant, **(searches if variant == "cross-validated" else {})},
        )
        for name in SETS
        for variant in variants
        if not _is_left_out(request, variant, name)
    ]


def _most(request: Request) -> int:
    return _QUICK_START if request.quick else _LARGEST_START


def _is_left_out(request: Request, variant: str, name: str) -> bool:
    return variant == "3×3" and size_of(request, name) > _most(request)


def on_starts(request: Request) -> tuple[str, ...]:
    """Return the note on the starts of Tables 5 to 7."""
    return (
        "3×3: Algorithm 1 from the largest weights of the relaxation by 3 × 3 minors, where the "
        f"training part has at most {_most(request)} samples. relaxation has the value of the "
        "paper's full semidefinite program.",
    )


def figure_of(request: Request, results: Results, variant: str, field: str, name: str) -> Value:
    """Return what a variant has on a set, or why it is left out."""
    if _is_left_out(request, variant, name):
        return f"n > {_most(request)}"
    figure: Value = ours(results, variant, field)(name)
    return figure


def _best_baseline(results: Results, name: str) -> Value:
    accuracies = [ours(results, f"{method}/0", "accuracy")(name) for method in BASELINES]
    return max((each for each in accuracies if each is not None), default=None)


def table(request: Request, number: int) -> Plan:
    """Plan one of Tables 2 to 5."""
    title, field, variants, printed = _TABLES[number]

    def present(results: Mapping[str, object]) -> list[Sheet]:
        figures: dict[str, Callable[[str], Value]] = {
            v: partial(figure_of, request, results, v, field) for v in variants
        }
        if number == 5:
            figures = {_BEST: partial(_best_baseline, results), **figures}
        else:
            figures |= {name: ours(results, f"{name}/0", field) for name in BASELINES}
        remarks: tuple[str, ...] = _DATA
        if "cross-validated" in variants:
            remarks += notes(f"sparse.fits chosen{' quickly' if request.quick else ''}")
        remarks += on_starts(request) + _ON_BEST if number == 5 else ()
        remarks += _ON_BASELINES
        remarks += {"accuracy": _ON_ACCURACY, "seconds": _ON_SECONDS}.get(field, ())
        return [compared_sheet(title, figures, number, printed, remarks)]

    baselines = cells_of_baselines(request, BASELINES, 8, 1)
    return Plan([*cells_of(request, variants), *baselines], present)


def fifty_kernels(request: Request, number: int) -> Plan:
    """Plan one of Tables 8 to 10; they share their cells."""
    title, field = _FIFTY[number]
    quick, effort = ({"quick": True}, 60.0) if request.quick else ({}, 600.0)

    def present(results: Results) -> list[Sheet]:
        chosen = notes(f"sparse.fits fifty chosen{' quickly' if request.quick else ''}")
        remarks = (*_ON_FIFTY, *chosen, *(_FIFTY_SECONDS if field == "seconds" else ()))
        figures = {variant: ours(results, "fifty", variant, field) for variant in _FIFTY_VARIANTS}
        figures |= {method: ours(results, f"{method}/0", field) for method in BASELINES}
        return [compared_sheet(title, figures, number, _PRINTED, remarks)]

    cells = [set_cell(request, name, "fifty", measure_fifty, effort, **quick) for name in SETS]
    return Plan([*cells, *cells_of_baselines(request, BASELINES, 50, 1)], present)
