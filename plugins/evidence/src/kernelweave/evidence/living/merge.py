"""Models with one kernel, and sums over its landmarks, become one model of all their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.exceptions import warn
from kernelweave.tables.columns import Words
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..columns.categories import GONE, MISSING, RARE
from ..exact import ExactPredictor
from ..large.landmarks import LandmarkPredictor
from .basis import Basis, basis_of, metric_of
from .canonical import rows_as_given
from .folds import keys_of_given
from .merged import Pool, attributes_of_sums, places_of
from .mixin import ways_of
from .parts import PartSums, dealt, facts_of, flat_unit, packed, rows_of, rows_of_model, state_of
from .relearn import with_relearn
from .sharing import SharedSums
from .state import LivingModel, RowsAsGiven, RowsToJoin

if TYPE_CHECKING:
    from ..base import EvidenceModel
    from ..columns import ColumnEncoder
    from ..columns.categories import Categories

# of the spread of the targets, and of sums of the same rows in two orders
_ROUNDING = 1e-9
# what the kernel's model gives to the one that is made
_KEPT = (
    "kernel_", "relevance_", "dimensions_", "columns_", "encoder_", "path_weights_", "result_",
    "n_iter_", "n_features_in_", "feature_names_in_", "classes_", "levels_", "_monotone",
)  # fmt: skip


def merge(parts: Sequence[Any], *, kernel: Any = None) -> Any:
    """Return the model of all rows that some models and sums have, with the kernel that they share.

    Its predictions are those of a fit to all these rows with this kernel, as if they had been in
    one table. No place needs to show a row: ``model.sums`` gives sums over the landmarks of the
    model, and sums of several places are added.

    Parameters
    ----------
    parts : sequence of fitted EvidenceKernelRegressor or EvidenceKernelClassifier, and SharedSums
        Models that are one model's copies, updated in different places, and sums that such a model
        made. Every part counts as it is given: no two may share rows, which nothing in sums tells.
    kernel : fitted EvidenceKernelRegressor or EvidenceKernelClassifier, optional
        A model that has the kernel, but whose rows do not count. By default the first model among
        the parts, whose rows do.

    Returns
    -------
    model : EvidenceKernelRegressor or EvidenceKernelClassifier
        A new model; the parts stay as they are.

    Raises
    ------
    ValueError
        If kernels differ, sums are given twice, or no part has a kernel.
    TypeError
        If a part is something else.

    Notes
    -----
    Of models alone that have all their rows, these are joined. Else it is one of landmarks: what
    follows of its rows is told by sums: the score and its error by parts of rows that were left out
    of all places together (in the unit of the power where targets have one), standard deviations by
    the noise and the added sums, as large as these parts say. Residuals are not known row by row,
    so intervals and distributions take those of a normal distribution. How noise varies, the
    likelihood of classes, and what forecasts met fall away. Classes keep the calibration of the
    kernel's own rows held out, and have no score (NaN). Levels of groups are known of the kernel's
    own model alone; other groups are new ones.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave.evidence import EvidenceKernelRegressor, merge
    >>> X, y = make_friedman1(1640, noise=0.5, random_state=0)
    >>> model = EvidenceKernelRegressor().fit(X[:40], y[:40])
    >>> one, other = model.sums(X[40:840], y[40:840]), model.sums(X[840:], y[840:])
    >>> merged, pooled = merge([model, one, other]), merge([model, model.sums(X[40:], y[40:])])
    >>> bool(abs(merged.predict(X) - pooled.predict(X)).max() < 1e-8)
    True
    """
    parts = list(parts)
    model = _kernel_of(parts, kernel)
    for each in (model, *parts):
        if not isinstance(each, SharedSums):
            each._settle()
    with one_blas_thread():
        whole = have_rows(parts, model)
        attributes = joined(parts, model) if whole else _of_sums(parts, model)
    merged = clone(model)
    kept = {name: vars(model)[name] for name in _KEPT if name in vars(model)}
    # in one order, so that files of equal models are equal
    merged.__dict__.update(sorted((kept | attributes).items()))
    return merged


def _of_sums(parts: Sequence[Any], model: EvidenceModel) -> dict[str, Any]:
    """Return the attributes of the model of added sums; `model`: has the kernel."""
    basis = basis_of(model)
    places = [_sums(basis, model, part, k) for k, part in enumerate(parts)]
    _refuse_twice(places)
    pool = Pool(
        basis,
        tuple(part for place in places for part in place.parts),
        places_of([len(place.parts) for place in places]),
    )
    facts: list[NDArray[np.bool_]] = [place.facts for place in places]
    rows = rows_of(model) if any(part is model for part in parts) else None
    return attributes_of_sums(model, pool, facts, rows)


def _kernel_of(parts: Sequence[Any], kernel: Any) -> EvidenceModel:
    """Return the model that has the kernel; raises ValueError or TypeError where there is none."""
    from ..base import EvidenceModel

    if not parts:
        raise ValueError("parts must hold at least one model or one value of sums, got none")
    for k, part in enumerate(parts):
        if not isinstance(part, EvidenceModel | SharedSums):
            raise TypeError(
                f"parts[{k}] must be an evidence kernel's model or its sums, got "
                f"{type(part).__name__}"
            )
    models = [part for part in parts if isinstance(part, EvidenceModel)]
    if kernel is not None and not isinstance(kernel, EvidenceModel):
        raise TypeError(f"kernel must be an evidence kernel's model, got {type(kernel).__name__}")
    if kernel is None and not models:
        raise ValueError(
            "sums have no kernel: give the model that made them, merge(parts, kernel=model)"
        )
    for each in models if kernel is None else [kernel, *models]:
        check_is_fitted(each, "kernel_")
    chosen: EvidenceModel = models[0] if kernel is None else kernel
    return chosen


def _sums(basis: Basis, model: EvidenceModel, part: Any, place: int) -> SharedSums:
    """Return the sums of a part; raises ValueError where they are over another kernel."""
    sums = part if isinstance(part, SharedSums) else own_sums(basis, model, part)
    if sums.kernel == basis.kernel:
        return sums
    what = f"parts[{place}]"
    n_outputs = len(basis.units.centre)
    if sums.n_landmarks != len(basis):
        detail = f"{sums.n_landmarks} landmarks for {len(basis)}"
    elif sums.facts.shape[1] != n_outputs:
        detail = f"{sums.facts.shape[1]} outputs for {n_outputs}"
    else:
        detail = "other columns, scales, classes or units"
    raise ValueError(
        f"{what} has another kernel than the model ({detail}): all places must sum over one model, "
        "made once and sent to them"
    )


def _refuse_twice(places: Sequence[SharedSums]) -> None:
    """Raise ValueError where sums of the same rows are given twice, in whatever order they were."""
    for k, place in enumerate(places):
        for first, other in enumerate(places[:k]):
            pairs = list(zip(place.parts, other.parts, strict=False))
            alike = len(place.parts) == len(other.parts) and place.n_rows == other.n_rows
            if alike and all(_equal(*pair) for pair in pairs):
                raise ValueError(
                    f"parts[{first}] and parts[{k}] are sums of the same {place.n_rows} rows, "
                    "which would count twice: give them once"
                )


def _equal(one: PartSums, other: PartSums) -> bool:
    """Return whether two parts are the same but for rounding."""
    told, again = (
        np.concatenate([[part.mass, part.prior], part.squares, part.right.ravel()])
        for part in (one, other)
    )
    return bool(np.abs(told - again).max() <= _ROUNDING * max(1.0, np.abs(told).max()))


def own_sums(basis: Basis, kernel: EvidenceModel, model: EvidenceModel) -> SharedSums:
    """Return the sums of a model's own rows over the landmarks of another, or of its own.

    `kernel`: the model that has the landmarks. The kernel of the sums is another where the model
    has another.
    """
    predictor, rows = model._predictor, rows_of(model)
    own = None
    if isinstance(predictor, LandmarkPredictor):
        own = basis_of(model)
        if own.kernel == basis.kernel:
            parts, targets = _of_landmarks(own, predictor)
            return SharedSums(own.kernel, len(own), parts, facts_of(own.units, targets))
    if rows is None or metric_of(model) != basis.metric:
        own = basis_of(model) if own is None else own
        nothing = np.ones((7, len(own.units.centre)), dtype=np.bool_)
        return SharedSums(own.kernel, len(own), (), nothing)
    rows, fold = rows_of_model(basis, kernel.encoder_, model, rows)
    parts = dealt(basis, rows, fold, basis.are_landmarks(rows.numeric, rows.codes))
    return SharedSums(basis.kernel, len(basis), parts, facts_of(basis.units, rows.targets))


def _of_landmarks(
    basis: Basis, predictor: LandmarkPredictor
) -> tuple[tuple[PartSums, ...], FloatArray]:
    """Return the parts of a model of landmarks, those that judge apart; and targets to look at."""
    rows = predictor.rows
    judging = np.flatnonzero(predictor.fold >= 0)
    subset = rows.take(judging)
    parts: tuple[PartSums, ...] = ()
    if basis.n_folds and len(judging):
        is_landmark = basis.are_landmarks(subset.numeric, subset.codes)
        parts = dealt(basis, subset, predictor.fold[judging], is_landmark)
    equations = predictor.posterior.equations
    inner, right = packed(equations.inner), np.array(equations.right)
    for part in parts:
        less = part.equations
        inner, right = inner - less[0], right - less[1]
    zeros: Any = np.zeros(len(basis.units.centre))
    n_rows = max(1, len(rows) - len(judging))
    rest = PartSums(-1, False, n_rows, 1.0, inner, right, None, None, 0.0, zeros, zeros)
    ends = predictor.targets.restore(predictor.targets.values.T).T
    # standardised and restored, a 0 is one no more
    whole = np.rint(ends) + 0.0
    near = np.abs(ends - whole) < _ROUNDING * flat_unit(basis.units)[1][:, None]
    return (*parts, rest), np.hstack([rows.targets, np.where(near, whole, ends)])


def have_rows(models: Sequence[Any], kernel: Any) -> bool:
    """Return whether all parts are models of one kind that have all their rows."""
    kind = LandmarkPredictor if isinstance(kernel._predictor, LandmarkPredictor) else ExactPredictor
    return all(
        isinstance(getattr(each, "_predictor", None), kind) and rows_of(each) is not None
        for each in models
    )


def joined(models: Sequence[EvidenceModel], kernel: EvidenceModel) -> dict[str, Any]:
    """Return the attributes of the model of all rows of some models.

    `kernel`: has the kernel that they have, and its landmarks if it has such. Raises ValueError
    where one of them has another.
    """
    encoder, metric = kernel.encoder_, metric_of(kernel)
    state_of(kernel)
    for k, model in enumerate(models):
        state_of(model)
        if metric_of(model) != metric:
            raise ValueError(
                f"parts[{k}] has another kernel than the model (other columns, scales, classes or "
                "units): all models must be of one fit, updated in different places"
            )
        encoder = _with_categories(encoder, model.encoder_)
    rows = [
        rows_as_given(LivingModel.of(model)).recoded(encoder._codes_of(model.encoder_))
        for model in models
    ]
    _warn_of_shared(rows)
    together = rows[0]
    for each in rows[1:]:
        together = together.and_others(each)
    base = LivingModel.of(kernel)
    given = RowsToJoin(encoder, together)
    return with_relearn(ways_of(base.predictor).refitted(base, given))


def _with_categories(encoder: ColumnEncoder, other: ColumnEncoder) -> ColumnEncoder:
    """Return an encoder that also has another's categories, of the same kernel."""
    both = zip(encoder._categories, other._categories, strict=True)
    return encoder._with_categories(
        [mine.categories.gaining(_words_of(theirs.categories)) for mine, theirs in both]
    )


def _words_of(categories: Categories) -> Words:
    """Return a column that has each category once."""
    labels = tuple(each for each in categories.labels if each not in (RARE, MISSING, GONE))
    codes = np.arange(len(labels), dtype=np.int64)
    if categories.missing < len(categories.labels):
        codes = np.append(codes, -1)
    return Words(codes, labels)


def _warn_of_shared(rows: Sequence[RowsAsGiven]) -> None:
    """Warn of rows that two models have: they count twice."""
    seen: dict[bytes, int] = {}
    for k, each in enumerate(rows):
        keys = keys_of_given(each)
        twice = [seen[key] for key in keys if key in seen]
        if twice:
            warn(
                f"{len(twice)} of {len(keys)} rows of parts[{k}] equal rows of parts[{twice[0]}], "
                "and count twice: if they are the same rows, those of the kernel's own model for "
                "instance, refit each place's model to its own rows, model.refit(X, y)"
            )
        seen |= dict.fromkeys(keys, k)
