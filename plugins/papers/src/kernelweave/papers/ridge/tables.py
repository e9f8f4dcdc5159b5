"""R, Tables 1 to 4: cross-validation and test errors on ionosphere and sonar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import sub
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..data import drawn, load, notes, printed
from ..engine.verdicts import WIDTHS, claim, heads
from ..measuring import mean, spread
from ..plan import PAPER, Plan, Request, Results, Sheet, Value, cell
from .protocol import N_FOLDS, N_SPLITS, folds, halves, lambdas, learn, ridge_errors, sizes_of

_NOTES = notes("ridge.tables")
_ON_CLAIMS = notes("ridge.tables claims")
_ON_LAMBDA = notes("ridge.tables lambda")
# whose error less whose: method and degree
_CLAIMS = {
    True: ((("PGD", 2), ("PGD", 1)), (("rPGD", 2), ("rPGD", 1)), (("rPGD", 1), ("PGD", 1))),
    False: ((("UNIF", 1), ("IIA", 1)), (("BM", 1), ("IIA", 1)), (("PGD", 2), ("IIA", 1))),
}
# whose error at the largest λ less that at the least: method and degree
_ALONG = (("PGD", 1), ("PGD", 2))
_Row = Mapping[str, Any]


@threadpool_limits.wrap(limits=1)
def validation_error(
    path: str, method: str, degree: int, n_folds: int, most: int | None, quick: bool, share: bool
) -> dict[str, Any]:
    """Return the least cross-validated RMSE by fold, what has it, and the least at each λ."""
    parts = list(folds(*drawn(*load(path), most), n_folds, share))

    def errors(lam: float, size: float) -> list[float]:
        weights = (learn(data, method, degree, lam, size, quick=quick) for data in parts)
        return [
            ridge_errors(data, mu, degree, lam)[0] for data, mu in zip(parts, weights, strict=True)
        ]

    pairs = [(lam, size) for lam in lambdas(quick) for size in sizes_of(method, quick)]
    every = np.array([errors(*pair) for pair in pairs])
    at = int(every.mean(axis=1).argmin())
    grid = every.reshape(len(lambdas(quick)), -1, n_folds)
    least = [each[each.mean(axis=1).argmin()].tolist() for each in grid]
    return {
        "rmse": every[at].tolist(),
        "lam": pairs[at][0],
        "size": pairs[at][1],
        "by λ": list(zip(lambdas(quick), least, strict=True)),
    }


@threadpool_limits.wrap(limits=1)
def held_out_error(
    path: str,
    method: str,
    degree: int,
    n_folds: int,
    n_splits: int,
    most: int | None,
    quick: bool,
    share: bool,
) -> dict[str, list[float]]:
    """Return the test errors over random halves at what cross-validation chose."""
    chosen = validation_error(path, method, degree, n_folds, most, quick, share)
    lam, size = chosen["lam"], chosen["size"]
    pairs = [
        ridge_errors(data, learn(data, method, degree, lam, size, quick=quick), degree, lam)
        for data in halves(*drawn(*load(path), most), n_splits, share)
    ]
    return {"rmse": [pair[0] for pair in pairs], "wrong": [pair[1] for pair in pairs]}


def table(request: Request, number: int) -> Plan:
    """Plan Table 1 or 3, cross-validation errors, or Table 2 or 4, test errors."""
    data = "ionosphere" if number <= 2 else "sonar"
    validates, quick = number in (1, 3), request.quick
    theirs = [row for row in printed("ridge") if row["table"] == number]
    compute = validation_error if validates else held_out_error
    splits = [] if validates else [request.repeats or (1 if quick else N_SPLITS)]
    path, sizes = request.data_file(f"{data}.csv"), [2 if quick else N_FOLDS, *splits]
    most = request.most_samples if quick else None
    cells = [
        cell(
            *(_key(row, width), 0.3 if quick else 8.0, quick, compute, path),
            *(row["method"], row["d"], *sizes, most, quick, share),
        )
        for row in theirs
        for width, share in WIDTHS.items()
    ]
    kind = f"ridge.tables {'validation' if validates else 'test'}"
    remarks = (*_NOTES, *(() if validates else notes(kind)))
    remarks += notes(f"{kind} shifted") if data == "sonar" else ()
    remarks += notes(f"{kind} quick") if quick else ()
    return Plan(cells, partial(_present, data, theirs, remarks, validates))


def _key(row: _Row, width: str) -> str:
    return f"{row['method']}/{row['d']}/{width}"


def _present(
    data: str, theirs: Sequence[_Row], notes: tuple[str, ...], validates: bool, results: Results
) -> list[Sheet]:
    rows = [
        [row["method"], row["d"], *_figures(row, validates, results), *_printed(row, validates)]
        for row in theirs
    ]
    columns: list[str] = ["method", "d"]
    for width in WIDTHS:
        fields = ("RMSE", "±", "λ", "Λ or β") if validates else ("RMSE", "±", "wrong", "±")
        columns += [f"{field}, {width}" for field in fields]
    columns += [f"{head} {PAPER}" for head in ("RMSE", "±", "wrong", "±")[: 2 if validates else 4]]
    title = f"{'Cross-validation' if validates else 'Test'} errors on {data}"
    return [Sheet(title, columns, rows, notes), _claims(data, theirs, validates, results)]


def _figures(row: _Row, validates: bool, results: Results) -> list[Value]:
    figures: list[Value] = []
    for width in WIDTHS:
        record = results.get(_key(row, width), {})
        figures += [mean(record.get("rmse", ())), spread(record.get("rmse", ()))]
        if validates:
            figures += [record.get("lam"), record.get("size")]
        else:
            figures += [mean(record.get("wrong", ())), spread(record.get("wrong", ()))]
    return figures


def _printed(row: _Row, validates: bool) -> list[Value]:
    names = ("RMSE", "spread") if validates else ("RMSE", "spread", "wrong", "spread of wrong")
    return [row[name] for name in names]


def _claims(data: str, theirs: Sequence[_Row], validates: bool, results: Results) -> Sheet:
    """Return the paper's differences between methods, ours, and verdicts."""
    table = {(row["method"], row["d"]): row for row in theirs}
    rows: list[list[Value]] = []
    claims = [pair for pair in _CLAIMS[validates] if data != "sonar" or pair[0][0] != "BM"]
    for pair in claims:
        errors = {
            width: [results.get(_key(table[each], width), {}).get("rmse", ()) for each in pair]
            for width in WIDTHS
        }
        their = table[pair[0]]["RMSE"] - table[pair[1]]["RMSE"]
        differences = {width: map(sub, *both) for width, both in errors.items()}
        rows.append([*claim(" less ".join(map(_name, pair)), their, differences), their])
    if validates:
        rows += [_along_lambda(table[method], results) for method in _ALONG]
    notes = _ON_CLAIMS + (_ON_LAMBDA if validates else ())
    columns = ["difference of RMSE", *heads(), f"mean {PAPER}"]
    return Sheet(f"What the errors on {data} say", columns, rows, notes)


def _along_lambda(row: _Row, results: Results) -> list[Value]:
    """Return a row: a method's error at the largest λ less that at the least."""
    by_width = {width: results.get(_key(row, width), {}).get("by λ", ()) for width in WIDTHS}
    lams = [lam for lam, _ in next(filter(None, by_width.values()), ())]
    ends = f"{lams[-1]:g} less at {lams[0]:g}" if lams else "the largest less at the least"
    differences = {
        width: map(sub, each[-1][1], each[0][1]) if each else () for width, each in by_width.items()
    }
    name = f"{_name((row['method'], row['d']))}, at λ = {ends}"
    return [*claim(name, -1.0, differences), None]


def _name(method: tuple[str, int]) -> str:
    return f"{method[0]} (d = {method[1]})"
