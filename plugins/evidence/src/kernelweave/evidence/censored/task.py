"""What a fit asks of targets that are known by half: their scale, and how they are judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.estimators.underfit import HELD_OUT, Judged
from kernelweave.kernels_core.exceptions import UnderfitWarning, warn

from ..intervals import Range
from ..rows import Rows
from ..scores import share_with_error
from ..targets import warn_if_few
from ..tasks import Regression
from .concordance import concordance
from .concordance import losses as losses_of_pairs
from .ends import ends_of, refuse_unknown
from .likelihood import normal_of, sites


def values_within(ends: FloatArray) -> FloatArray:
    """Return the middle of ends (2, n), or the finite one of them, shape (1, n)."""
    finite = np.where(np.isfinite(ends), ends, np.nan)
    known = np.isfinite(ends).any(axis=0)
    values = np.full(ends.shape[1], float(np.nanmean(finite)))
    values[known] = np.nanmean(finite[:, known], axis=0)
    return values[None]


def may_be_logarithms(ends: FloatArray) -> bool:
    """Return whether targets within ends, shape (2, n), may all be positive; from 0 is from −∞."""
    low, high = ends
    return bool((high > 0.0).all() and ((low >= 0.0) | np.isneginf(low)).all())


@dataclass(frozen=True)
class CensoredRegression(Regression):
    """Targets are numbers that are known by half, judged by concordance.

    `log`: whether the logarithm of targets is learned, so that predictions are medians; `times`:
    whether they are times up to an event; `ends` of shape (2, n_rows): of targets that were read,
    on that scale, until the fit has them.
    """

    log: bool = False  # type: ignore[misc]
    times: bool = False
    ends: FloatArray | None = None  # type: ignore[misc]
    usual_score = "concordance"
    is_share = True

    @property
    def lower(self) -> float:
        """What all targets are larger than: 0 of logarithms and times, else −∞."""
        return 0.0 if self.log or self.times else -np.inf

    def read(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[CensoredRegression, FloatArray, FloatArray | None]:
        """Return the task of checked targets, values within their ends, and the weights."""
        if self.scorer is not None:
            raise ValueError(
                f"scoring must be None where targets are known by half, got {self.scorer!r}: "
                "concordance judges them"
            )
        ends, times = ends_of(y, n_rows)
        mass = np.ones(n_rows) if weight is None else weight
        counted = mass > 0.0
        refuse_unknown(ends[:, counted], times=times)
        warn_if_few(int(counted.sum()))
        # fields or cells mean ranges, and columns of a data frame may be two outputs
        is_frame = hasattr(y, "columns") or hasattr(y, "column_names")
        if is_frame and np.isfinite(ends).all() and (ends[0] < ends[1]).any():
            warn("y is read as ranges from 'low' to 'high': give an array for two outputs")
        log = self._is_log(ends[:, counted], mass[counted], times=times)
        task = replace(self, log=log, times=times)
        ends = task.learned(ends)
        return replace(task, ends=ends), values_within(ends), weight

    def more(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return values within the ends of more targets, these ends, and the weights."""
        ends, times = ends_of(y, n_rows, known=True)
        mass = np.ones(n_rows) if weight is None else weight
        refuse_unknown(ends[:, mass > 0.0], times=times)
        if times != self.times:
            had, got = ("events and times", "values or ranges")[:: 1 if self.times else -1]
            raise ValueError(f"y must hold {had} as when the kernel was learned, got {got}")
        if self.log and not may_be_logarithms(ends[:, mass > 0.0]):
            raise ValueError(
                "y must be positive: the kernel was learned for logarithms of the targets; fit the "
                "model again"
            )
        ends = self.learned(ends)
        return values_within(ends), ends, weight

    @staticmethod
    def _is_log(ends: FloatArray, mass: FloatArray, *, times: bool) -> bool:
        """Return whether logarithms are nearer to a normal distribution, as times always are.

        The rows held out choose the scale later; this is the one that they compare another with.
        """
        if times:
            return True
        if not may_be_logarithms(ends):
            return False
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(ends, 0.0))
        likelihoods = []
        for each in (ends, logs):
            mean, spread = normal_of(each, mass)
            told = sites(np.full(each.shape[1], mean), spread, each).log_likelihood
            likelihoods.append(float(mass @ told))
        known = ends[0] == ends[1]
        # of a density in the unit of the targets
        likelihoods[1] -= float(mass[known] @ logs[0, known])
        return likelihoods[1] > likelihoods[0]

    def learned(self, values: FloatArray) -> FloatArray:
        """Return ends, shape (2, n), on the scale that is learned; a time of 0 is at most the next.

        What ended at 0 did so before the first time that tells more.
        """
        if not self.log:
            return values
        positive = values[np.isfinite(values) & (values > 0.0)]
        least = float(positive.min()) if len(positive) else 1.0
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(values[0], 0.0))
            high = np.log(np.maximum(values[1], least))
        return np.array([low, high])

    def calibrated(
        self, rows: Rows, held_out: FloatArray
    ) -> tuple[CensoredRegression, float, float]:
        """Return the task, the concordance of rows held out, and its standard error."""
        task, seen = replace(self, ends=None), np.flatnonzero(~np.isnan(held_out[:, 0]))
        if not len(seen):
            return task, np.nan, np.nan
        subset = rows.take(seen)
        losses, units = self.losses(subset, held_out[seen])
        if not units.any():
            return task, np.nan, np.nan
        lost, error = share_with_error(losses, units, subset.mass)
        return task, 1.0 - lost, error

    def losses(self, rows: Rows, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return losses of answers and their units: concordance is 1 less the ratio of means."""
        assert rows.ends is not None
        return losses_of_pairs(rows.ends, answers[:, 0], rows.mass)

    def shaped(self, values: FloatArray) -> FloatArray:
        """Return values (…, 1) as medians of the targets, one for each row."""
        with np.errstate(over="ignore"):
            shaped = np.exp(values[..., 0]) if self.log else values[..., 0]
        return np.maximum(shaped, 0.0) if self.times else shaped

    def deviations(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return deviations of the targets, of logarithms those of the log-normal distribution."""
        if not self.log:
            return deviation[:, 0]
        variance = deviation[:, 0] ** 2
        with np.errstate(over="ignore"):
            return np.exp(mean[:, 0] + 0.5 * variance) * np.sqrt(np.expm1(variance))

    def range_of(self, rows: Rows) -> Range:
        """Return no range: what is known by half may lie anywhere beyond."""
        free = np.full(1, np.inf)
        return Range(-free, free, np.zeros(1, dtype=np.bool_))

    def underfit(self, rows: Rows, values: FloatArray, judged: Judged = HELD_OUT) -> Warning | None:
        """Return the warning that pairs of rows are in the right order by chance, if they are.

        That is where the concordance is at most one half.
        """
        assert rows.ends is not None
        share = concordance(rows.ends, values[:, 0], rows.mass)
        if np.isnan(share):
            return UnderfitWarning(
                f"no two of {judged.where} are in a known order: there is no score, and "
                "intervals say little"
            )
        if share > 0.5:
            return None
        return UnderfitWarning(f"concordance is {share:.3f} on {judged.where}: {judged.meaning}")

    def score(self, y: object, predicted: FloatArray, weight: FloatArray | None) -> float:
        """Return the concordance of predictions with other targets, in a form that `fit` takes.

        `predicted` of shape (n_rows,); numbers are known targets.
        """
        ends = ends_of(y, len(predicted), known=True)[0]
        return concordance(ends, predicted, np.ones(len(predicted)) if weight is None else weight)
