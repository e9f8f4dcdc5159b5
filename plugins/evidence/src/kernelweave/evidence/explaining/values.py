"""Shapley values as people read them: on the scale of predictions, beside the table's cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import integer
from kernelweave.tables.sided import MARKS
from numpy.typing import NDArray
from scipy.special import softmax

from ..columns.categories import MISSING

if TYPE_CHECKING:
    from kernelweave.tables import ColumnPlan
    from kernelweave.tables.columns import RawTable
    from shap import Explanation

    from ..columns import Dimension
    from ..mixture import Expansion
    from ..rows import Rows
    from .shapley import Latent

# a shorter way has the slope of its middle
_NEAR = 1e-6
# nodes on the way between logits: their integrals err below 1e-12 for logits of up to 40
_STEPS = 64


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """What each column adds to each prediction.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        In units of ``scale``; with ``base_values`` they add up to the prediction.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        The mean prediction, the same for every row.
    data : ndarray of shape (n_rows, n_columns)
        The cells of the table.
    feature_names : list of str
        Its columns.
    errors : ndarray of the shape of values
        Their standard errors: deviations of the posterior.
    output_names : list of str
        The explained quantities, one for each output.
    scale : str
        What the values add up to, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import ShapleyValues
    >>> found = ShapleyValues(
    ...     np.array([[1.5, -0.2]]), np.array([10.0]), np.array([[3.0, 7.0]]), ["size", "age"],
    ...     np.array([[0.3, 0.1]]), ["price"], "the target",
    ... )
    >>> found.predictions
    array([11.3])
    >>> found.reasons(2)
    [['size = 3: +1.5', 'age = 7: −0.2']]
    """

    values: FloatArray
    base_values: FloatArray
    data: NDArray[Any]
    feature_names: list[str]
    errors: FloatArray
    output_names: list[str]
    scale: str

    @property
    def predictions(self) -> FloatArray:
        """What is explained: the sums of the values and the base, one a row and output."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def reasons(self, n_reasons: int = 3, output: int = 0) -> list[list[str]]:
        """Return the columns that change each prediction most, the strongest first.

        Parameters
        ----------
        n_reasons : int, default=3
            How many for each row; columns that change nothing are not named.
        output : int, default=0
            Which output, where there are several.

        Returns
        -------
        list of list of str
            For each row, such as ``"age = 63: +1.2"``.
        """
        integer(1).check("n_reasons", n_reasons)
        integer(0, len(self.output_names) - 1).check("output", output)
        values = self.values if self.values.ndim == 2 else self.values[:, :, output]
        order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :n_reasons]
        return [
            [
                f"{self.feature_names[j]} = {shown_cell(cells[j])}: {shown_change(row[j])}"
                for j in places
                if row[j] != 0.0
            ]
            for places, cells, row in zip(order, self.data, values, strict=True)
        ]

    def to_shap(self) -> Explanation:
        """Return the values as ``shap.Explanation``, which the plots of that library take.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                "to_shap needs the library shap: pip install shap, or read values, base_values "
                "and errors of what explain returned"
            ) from error
        return shap.Explanation(
            self.values, self.base_values, self.data, feature_names=self.feature_names,
            output_names=self.output_names if self.values.ndim == 3 else None,
            error_std=self.errors,
        )  # fmt: skip


def cells_of(table: RawTable) -> NDArray[Any]:
    """Return the cells of a table: numbers where all are, else what each column holds."""
    from kernelweave.tables.columns import Numbers, Words

    columns: list[Any] = []
    for each in table.columns:
        if isinstance(each, Words):
            labels = np.array([*each.labels, None], dtype=object)
            columns.append(labels[each.codes])
        else:
            columns.append(np.array(each.values, dtype=object))
    cells = np.array(columns, dtype=object).T
    numbers = all(isinstance(each, Numbers) for each in table.columns)
    return cells.astype(np.float64) if numbers else cells


def cells_of_encoded(
    rows: Rows, dimensions: Sequence[Dimension], plans: Sequence[ColumnPlan]
) -> NDArray[Any]:
    """Return the cells of a table as its encoding tells them: rare words are not told apart."""
    import pandas as pd

    p, out = rows.n_numbers, np.full((len(rows), len(plans)), None, dtype=object)
    for k, plan in enumerate(plans):
        dims = [(j, each) for j, each in enumerate(dimensions) if each.source == plan.column]
        for j, each in dims:
            if each.kind == "category":
                words = [None if word == MISSING else word for word in (*each.categories, MISSING)]
                out[:, k] = np.array(words, dtype=object)[rows.codes[:, j - p]]
            elif each.kind == "number":
                out[:, k] = rows.numeric[:, j]
        for j, each in dims:
            if each.kind == "side":
                side = each.name.removeprefix(f"{plan.column} ")
                share = 2.0 if side == "below" and plan.parameters.get("halved") else 1.0
                shown = rows.numeric[:, j] != 0.0
                out[shown, k] = [f"{MARKS[side]}{share * value:g}" for value in out[shown, k]]
        parts = [(j, each.name.removeprefix(f"{plan.column} ")) for j, each in dims
                 if each.kind == "date part"]  # fmt: skip
        days = [j for j, name in parts if name == "days since 1970"]
        if days:
            moments = pd.to_datetime(rows.numeric[:, days[0]], unit="D").round("s")
            if zone := plan.parameters.get("zone"):
                moments = moments.tz_localize("UTC").tz_convert(zone)
            out[:, k] = moments.astype(object)
        elif parts:
            cells = [[f"{name} {row[j]:g}" for j, name in parts] for row in rows.numeric]
            out[:, k] = [", ".join(each) for each in cells]
        for j, each in dims:
            if each.kind == "missing":
                out[rows.numeric[:, j] != 0.0, k] = None
    return out


def shown_cell(cell: object) -> str:
    """Return a cell of a table for people."""
    import pandas as pd

    if pd.isna(cell):  # type: ignore[call-overload]
        return "missing"
    if isinstance(cell, pd.Timestamp):
        return str(cell.date() if cell == cell.normalize() else cell)
    return f"{cell:.6g}" if isinstance(cell, float | np.floating) else str(cell)


def shown_change(value: float) -> str:
    """Return three digits of a change, with its sign."""
    digits = np.format_float_positional(abs(float(f"{value:.3g}")), trim="-")
    return f"{'−' if value < 0.0 else '+'}{digits}"


def on_scale(
    latent: Latent,
    expansion: Expansion,
    link: Callable[[FloatArray], FloatArray],
    *,
    response: bool,
    classes: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values (n, n_players, n_outputs), base (n_outputs,) and errors on a scale.

    `link`: from predictions of the targets to what values add up to, affine in each output;
    `response`: whether on the scale of what users are told, with the mean slope on the way from the
    base to the prediction; `classes`: whether the response is the softmax of the link.
    """
    target, (n, p, n_outputs) = expansion.target, latent.values.shape
    deviation = np.sqrt(latent.variances[:, :, None] * expansion.inflation)
    if response:
        whole = latent.base + latent.values.sum(axis=1)
        parts = partial(target.parts, width=expansion.width)
        slope = _mean_slope(parts, latent.base, whole)[:, None]
        start = parts(latent.base[None])
    else:
        slope, start = target.spread, (latent.base * target.spread + target.centre)[None]

    def added(parts: FloatArray) -> FloatArray:
        return link(parts if target.shares is None else parts.sum(axis=1, keepdims=True))

    def linked(steps: FloatArray) -> FloatArray:
        moved = added(start + (steps * slope).reshape(-1, n_outputs)) - added(start)
        return moved.reshape(n, p, -1)

    values, errors, base = linked(latent.values), np.abs(linked(deviation)), added(start)[0]
    if not (response and classes):
        return values, base, errors
    two = len(base) == 1
    if two:
        base = np.append(0.0, base)
        values, errors = (np.concatenate([0.0 * each, each], axis=2) for each in (values, errors))
    slopes = _softmax_slopes(base, base + values.sum(axis=1))
    shares = np.einsum("nck,npk->npc", slopes, values)
    spread = np.sqrt(np.einsum("nck,npk->npc", slopes**2, errors**2))
    kept = slice(1, None) if two else slice(None)
    return shares[:, :, kept], softmax(base)[kept], spread[:, :, kept]


def _mean_slope(
    function: Callable[[FloatArray], FloatArray], start: FloatArray, end: FloatArray
) -> FloatArray:
    """Return the mean slope of a function of each output alone, between two points."""
    step = end - start
    near = np.abs(step) < _NEAR
    low, high = np.where(near, start - _NEAR, start), np.where(near, start + _NEAR, end)
    return np.asarray((function(high) - function(low)) / (high - low))


def _softmax_slopes(start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the mean of diag(p) − ppᵀ between logits, shape (n, n_classes, n_classes)."""
    nodes, masses = np.polynomial.legendre.leggauss(_STEPS)
    out = np.zeros((*end.shape, end.shape[1]))
    for node, mass in zip(0.5 * (nodes + 1.0), 0.5 * masses, strict=True):
        p = softmax(start + node * (end - start), axis=1)
        out -= mass * p[:, :, None] * p[:, None]
        np.einsum("nii->ni", out)[:] += mass * p
    return out
