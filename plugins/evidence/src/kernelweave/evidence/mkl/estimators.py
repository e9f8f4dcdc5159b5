"""EvidenceMKLRegressor and EvidenceMKLClassifier."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from kernelweave.kernels_core import KernelDictionary, Problem, Status, config_context, interrupts
from kernelweave.kernels_core.arrays import FloatArray, Index, Points, is_sparse, row_slices
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import COUNT, one_of
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.copies import first_copies
from kernelweave.kernels_core.estimators.kernel import Data, KernelClassifier, KernelRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.underfit import LEARNED
from kernelweave.kernels_core.estimators.weights import (
    KERNELS,
    WeightedKernels,
    fit_kernels,
    is_precomputed,
    weight_attributes,
)
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, Message
from kernelweave.kernels_core.fit import Formula
from kernelweave.kernels_core.kernels import Kernel
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.qp_smo import Ridge
from numpy.typing import ArrayLike
from scipy.linalg import cholesky
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..base import HeldOutScores
from ..columns import ColumnEncoder, Dimension, Encoded
from ..columns.encoded import places_of
from ..columns.encoder import NoColumnError
from ..division import Division, division_of, n_folds_of
from ..findings import HeldOutRows, held_out_attributes, new_rows_warnings
from ..fit import Stage
from ..kernel import default_kernels
from ..mixture import explained_by
from ..probabilities import CalibratedClasses
from ..rows import Rows, normalise_weights
from ..tasks import Classification, Regression, Task
from .criteria import FLOOR
from .folds import AllRows, Proved, combined, shares_of, without_folds
from .learn import NoisyFamily, learn_weights
from .path import along_path
from .step import PricedOrthant

_PROOFS = (
    "a feasible dual point of the convex problem that touches the negative log evidence at these "
    "weights from above",
    "its value at these weights; equal bounds prove a stationary point of the evidence, not its "
    "global maximum",
)
_COMBINED = (
    "a feasible dual point of ridge regression on the learned kernel, plus the price of its "
    "weights",
    "its value at these weights",
)
_PREMISE = (
    "the bounds are of ridge regression on the learned kernel, plus a price of its weights; rows "
    "held out chose the weights, of which nothing is proved"
)
# New rows whose kernel values with all training rows are held at a time.
_BLOCK = 2048


class EvidenceWeights(HeldOutScores, WeightedKernels):
    """Kernel weights and the noise by the evidence, for classifiers and regressors."""

    kernels: KernelDictionary | Sequence[Kernel] | str | None = parameter(
        "The kernels; by default Gaussians, Laplacians, a linear kernel and tessellated products "
        'of ranks, for features that are then standardised. With ``"precomputed"`` X holds Gram '
        "matrices, (n_kernels, n, n_train).",
        kind='None, KernelDictionary, list of Kernel or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
    algorithm: str = parameter(
        "``'path'`` learns weights by the evidence and by the density of each row given all "
        "others, under priors that pull the weights together, and combines them by their errors "
        "on rows held out. ``'lbfgs'`` and ``'majorize'`` end at one stationary point of the "
        "evidence, with a proof and often with weights of 0: by L-BFGS on the logarithms before "
        "each convex step, or by convex steps alone.",
        default="path",
        rule=one_of("path", "lbfgs", "majorize"),
    )
    max_iter: int = parameter(
        "Maximum number of convex steps; a path has none.",
        default=100,
        rule=COUNT,
    )

    n_iter_: int = fitted("int", "Convex steps on all rows; 1 for a path.")
    path_weights_: FloatArray = fitted(
        "ndarray of shape (4,) or (1,)",
        "How the weights of a path are combined: one weight for all kernels, the density of each "
        "row under a strong and a weak prior, the evidence under the weak one; each weight times "
        "the mean diagonal of its matrix. Equal where no fold was finished.",
    )
    noise_: float = fitted("float", "σ², in units of the targets' variance.")
    log_evidence_: float = fitted("float", "log p(y) of the standardised targets.")
    descent_: FloatArray = fitted(
        "ndarray",
        "Negative log evidence, up to a constant, at the start and after each step; of a path only "
        "at its end.",
    )

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None, *,
        groups: object = None, order: object = None,
    ) -> Self:  # fmt: skip
        """Learn the weights, the noise and what predicts with them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features, a table with the columns that views name, or Gram matrices of shape
            (n_kernels, n_samples, n_samples), as ``kernels`` says.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets, or labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Divides the variance of a sample's noise: 2 is the sample twice, and a common factor
            says nothing.
        groups, order : str or array-like of shape (n_samples,), optional
            Names of columns, which Gram matrices do not have, or values: whole groups are held out
            then, or blocks of the later half, each predicted from the rows before it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NotPSDError
            If a precomputed matrix has an eigenvalue below −1e-10 of the largest.
        """
        return self._fit_by(fit_weights, X, y, sample_weight, groups, order)

    def formula(self, samples: Samples) -> Formula:
        """Return ridge regression under a price of the weights, which the search chooses."""
        scaling: Scaling | None = None
        mass = np.ones(samples.X.shape[0]) if samples.weight is None else samples.weight
        stored: Any
        if self.kernels is None:
            scaling = Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))
            X = np.asarray(samples.scaled(scaling).X)
            kernels = default_kernels(X, samples.weight)
            stored = KernelDictionary(kernels, normalize=self.normalize).fit_grams(X)
        else:
            stored = fit_kernels(self, samples)
        family, proofs = NoisyFamily(stored, 1.0 / mass), _PROOFS
        if self.algorithm == "path":
            family, proofs = replace(family, premise=_PREMISE), _COMBINED
        return Formula(
            family,
            Ridge(C=1.0 / FLOOR),
            PricedOrthant(),
            "evidence-step",
            scaling=scaling,
            proofs=proofs,
            attributes=lambda _, result: {
                **weight_attributes(self, stored, result.parameters[:-1]),
                "noise_": FLOOR + float(result.parameters[-1]),
            },
        )

    def _searched(
        self, problem: Problem, verbose: int = 0
    ) -> tuple[list[FloatArray], Proved | None]:
        """Return the weights that are to be combined, and of a proved search how it ended."""
        if self.algorithm == "path":
            return along_path(problem), None
        limits: Any = {"quick": self.algorithm == "lbfgs", "tol": self.tol}
        result, descent = learn_weights(problem, max_iter=self.max_iter, verbose=verbose, **limits)
        return [np.asarray(result.parameters)], (result, descent)


def fit_weights(
    model: EvidenceWeights, X: Table, y: Any, weight: Any, groups: object, order: object
) -> Iterator[Stage]:
    """Learn the weights on all rows, and in folds while there is time."""
    data, _ = model._read_data(X, y, weight, None)
    if len(data.weight) < 2:
        raise ValueError("1 sample is too few to weight kernels: at least 2 are needed")
    table = X if data.grams is None else None
    for name, given in (("groups", groups), ("order", order)):
        if table is None and isinstance(given, str):
            raise ValueError(
                f"{name}={given!r} needs columns, which precomputed Gram matrices do not have: "
                "give a value for each row"
            )
    division = division_of(data.X if table is None else table, y, groups, order, model.cv)
    task: Task = Regression(model.scoring, flat=division.y.ndim == 1)
    if is_classifier(model):
        task = Classification(model.scoring, labels=model.classes_)
    dimensions, cells, issued = _columns(table, len(data.weight))
    samples, rows, first = _merged(data, division, cells)
    state = check_random_state(model.random_state)
    apart = _apart(rows, samples, division, dimensions)
    splits = division.folds(apart, samples.owner, task, n_folds_of(model), state)
    values, fold = np.full(rows.targets.T.shape, np.nan), np.full(len(rows), -1)
    held_out = HeldOutRows(rows, values, fold, samples.owner, dimensions, lambda: closed)
    judge = partial(held_out_attributes, task, division, held_out, model.random_state)
    # an unknown scorer is refused here, before there is work
    attributes, _ = judge()
    n, hint = len(rows), "raise {memory_limit} or give fewer samples"
    require(6 * 8 * n * n, f"factors of the Gram matrix of {n} samples", alternative=hint)
    with blas_threads(n):
        search = partial(model._searched, verbose=model.verbose)
        whole = AllRows.of(model.formula(samples), search, samples, rows, first, model.tol)
        n_members = len(whole.members)
        estimates, closed = whole.attributes(shares_of([], n_members))
    yield estimates | attributes, []
    result = estimates["result_"]
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    with blas_threads(len(rows)):
        folds = without_folds(whole, model._searched, splits)
        interrupts.check()
        values[:] = combined(whole, folds)
        for k, each in enumerate(folds):
            fold[each.others] = k
        if n_members > 1 and folds:
            estimates, closed = whole.attributes(shares_of(folds, n_members))
        attributes, late = judge()
    n_missing = len(splits) - len(np.unique(fold[fold >= 0]))
    omissions = [f"{n_missing} of {len(splits)} folds"] * bool(n_missing) + [late] * bool(late)
    result, noise = estimates["result_"], estimates["noise_"]
    text = "" if result.status.success else result.message
    if omissions:
        rest = Message("{undone} were not reached: raise {max_time}", undone=", ".join(omissions))
        text = Message("{text}; {rest}", text=text, rest=rest) if text else rest
    issued += [ConvergenceWarning(text)] if text else []
    issued += new_rows_warnings(attributes["_task"], attributes["_new_rows"], "the score is")
    learned = closed.targets.values.T - noise / rows.mass[:, None] * closed.dual[:, :-1]
    underfit = attributes["_task"].underfit(rows, closed.targets.restore(learned), LEARNED)
    yield estimates | attributes, issued if underfit is None else [*issued, underfit]


def _apart(
    rows: Rows, samples: Samples, division: Division, dimensions: Sequence[Dimension]
) -> Rows:
    """Return the rows as folds are to tell which are copies."""
    apart = replace(rows, names=places_of(dimensions, division.column))
    if samples.grams is not None:
        # as words: without columns, their matrices alone tell which are copies
        return replace(apart, codes=samples.places[:, None].astype(np.int64))
    if division.is_given or is_sparse(samples.X):
        return apart
    # copies are what the kernels see alike, whatever the columns are called
    nothing = np.empty((len(rows), 0), dtype=np.int64)
    return replace(rows, numeric=np.asarray(samples.X), codes=nothing)


def _columns(X: Table | None, n_rows: int) -> tuple[Sequence[Dimension], Encoded, list[Warning]]:
    """Return columns that could name groups or an order, and why not where nobody can tell.

    `X`: ``None`` where rows have no columns.
    """
    encoder, unknown = ColumnEncoder(), list[Warning]()
    try:
        if X is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KernelWeaveWarning)
                cells = encoder.fit_transform(X)
            return encoder.dimensions_, cells, []
    except NoColumnError:
        # constants, copies and names of rows name no groups
        pass
    except (TypeError, ValueError) as error:
        text = Message("{held_out_} has no lines of columns: {error}", error=error)
        unknown = [KernelWeaveWarning(text)]
    return [], Encoded(np.empty((n_rows, 0)), np.empty((n_rows, 0), dtype=np.int64)), unknown


def _merged(data: Data, division: Division, cells: Encoded) -> tuple[Samples, Rows, Index]:
    """Return the distinct samples, as rows of the table too, and where each stands first in it.

    Equal samples that are held out apart are not one; those equal up to rounding are.
    """
    n_tasks, like = len(data.targets), data.X[first_copies(data.given)]
    both = replace(data, X=like, targets=np.vstack([data.targets, division.keys.T])).merged
    kept, weight = np.flatnonzero(both.owner >= 0), normalise_weights(both.weight)
    first = kept[np.unique(both.owner[kept], return_index=True)[1]]
    samples = replace(both, targets=both.targets[:n_tasks], weight=weight)
    groups = None if division.groups is None else division.groups[first]
    times = None if division.order is None else division.order[first]
    numeric, codes = cells.numeric[first], cells.codes[first]
    return samples, Rows(numeric, codes, samples.targets, weight, groups=groups, times=times), first


def _deviation(
    kernel: Kernel, X: Points, noise: float, rows: Points, share: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return the posterior deviation of a new observation, noise included, (n_new, T).

    `noise`: in units of the targets' variance; `share` of shape (n,): what rows have of it.
    """
    n, hint = rows.shape[0], "raise {memory_limit} or predict without return_std"
    require(2 * 8 * n * n, f"a factor of the Gram matrix of {n} samples", alternative=hint)
    S = np.array(kernel(rows), dtype=np.float64)
    S[np.diag_indices_from(S)] += noise * share
    factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    variance = np.array(kernel.diag(X), dtype=np.float64)
    for block in row_slices(X.shape[0], _BLOCK):
        variance[block] -= explained_by(factor, np.asarray(kernel(X[block], rows), np.float64))
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) + noise)[:, None] * spread)


class EvidenceMKLRegressor(EvidenceWeights, KernelRegressor):
    """Regression on a weighted sum of kernels: no C, no budget, nothing to tune.

    The weights wⱼ and the noise σ² of ``S = Σ wⱼKⱼ + σ²I`` are those of a Gaussian process on
    centred and scaled targets. Several outputs share them. It takes strings, graphs and views as
    Gram matrices, ``kernels="precomputed"``.

    Notes
    -----
    By default four sets of weights are learned, by the evidence and by the density of each row
    given all others, under priors that pull the logarithms of the weights together, and combined by
    their errors on rows held out: ``path_weights_``. ``certificate_`` then bounds ridge regression
    on the learned kernel.

    ``algorithm="lbfgs"`` or ``"majorize"`` minimises ``½yᵀS⁻¹y + ½ log det S``, which is not convex
    in w. log det lies below its tangent, so each step is a convex problem, ridge kernel learning
    under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ), solved with proved bounds; the evidence never falls.
    ``certificate_`` holds the bounds of the convex problem that touches the evidence at the
    weights: where they meet, the weights are stationary, kernels of weight 0 included. That no
    other weights have more evidence is not proved.

    Folds learn the weights anew for the held-out score; what kernels learn from X alone, such as
    their traces, they learn from all rows.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.2; Wipf and
    Nagarajan, "A new view of automatic relevance determination", NIPS 2007; Zhou, Hu, Zhou and
    Lange, "MM algorithms for variance components models", JCGS 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.evidence import EvidenceMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMKLRegressor().fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-3), bool(model.held_out_score_ > 0.3)
    (True, True)
    """

    _multi_output: ClassVar[bool] = True

    def predict(self, X: Table, return_std: bool = False) -> Any:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.
        return_std : bool, default=False
            Also return the standard deviation of a new observation, its noise included. Gram
            matrices do not hold k(x, x) of new points: kernels are needed.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.
        std : ndarray of the same shape
            If asked for.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        if is_precomputed(self):
            raise ValueError(
                "return_std needs k(x, x) of new points, which precomputed Gram matrices do not "
                "hold: give kernels instead"
            )
        with config_context(memory_limit=self.memory_limit):
            width = _deviation(self.kernel_, self._points(X), self.noise_, *self._training)
        return mean, width[:, 0] if self._is_flat else width


class EvidenceMKLClassifier(EvidenceWeights, CalibratedClasses, KernelClassifier):
    """Classification on a weighted sum of kernels: no C, no budget, nothing to tune.

    The weights of `EvidenceMKLRegressor` on ±1 targets; classes share them, one output a class.
    Held-out rows calibrate the probabilities. What is proved and what is not is the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.evidence import EvidenceMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceMKLClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9), model.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    # classes share the weights: their evidence is summed
    multiclass: ClassVar[str] = "shared"  # type: ignore[misc]
    # the folds of the fit give probabilities without being asked
    probability: ClassVar[bool] = False  # type: ignore[misc]
    calibration_: ClassVar[None] = None  # type: ignore[misc]
