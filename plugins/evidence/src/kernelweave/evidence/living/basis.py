"""What sums of rows are made over: the landmarks of a model, and the units that it fixed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..division import n_folds_of
from ..exact import ExactPredictor
from ..large.features import Landmarks, level_of
from ..large.landmarks import LandmarkPredictor
from ..large.posterior import PosteriorOfSums, root_of
from ..last_step import ClassPredictor
from ..rows import Standardised
from ..tasks import Classification
from ..terms import N_TERMS
from ..views import Points

if TYPE_CHECKING:
    from ..base import EvidenceModel
    from ..columns.encoded import GroupColumn

# training points of a model of all pairs that become landmarks, at most
MOST = 2000
# of the size of the kernel of the landmarks, added to its diagonal
_FINE = 1e-12


@dataclass(frozen=True)
class FinePosterior(PosteriorOfSums):
    """What rows leave open of features in double precision that are whitened and then summed.

    Nothing is squared then before the root is applied to it, so that this may be of the kernel as
    it is, but for 1e-12 of its size: with all rows as landmarks it is the model of all pairs.
    """

    @cached_property
    def root(self) -> FloatArray:
        """L of Kₘₘ = LLᵀ, shape (n_landmarks, n_landmarks)."""
        return root_of(self.landmarks.gram(), _FINE)


@dataclass(frozen=True, eq=False)
class Basis:
    """The landmarks of a model, the ridge of their coefficients, and units of the targets.

    - `landmarks`: no one a copy of another
    - `ridge`: ρ of (KₓₘᵀWKₓₘ + ρKₘₘ)β = KₓₘᵀWY
    - `ratio`: of the noise to the levels of groups, ``None`` where these have none
    - `units`: of the targets, without values
    - `width`: deviation of a warped target around its prediction, 0 where there is no warp
    - `n_folds`: parts that rows are dealt to; 0 where none are held out at random or by groups
    - `metric`: digest of the kernel, the units, the columns and the classes; `kernel`: of all this
    - `fine`: whether the root is of the landmarks' kernel as it is
    """

    landmarks: Landmarks
    ridge: float
    ratio: float | None
    units: Standardised
    width: float
    n_folds: int
    metric: str
    kernel: str
    fine: bool

    def __len__(self) -> int:
        return len(self.landmarks)

    @cached_property
    def root(self) -> FloatArray:
        """Lower Cholesky factor of the kernel of the landmarks, shape (m, m)."""
        return self.posterior(self.ridge, np.empty(0), np.empty((len(self), 0))).root

    def posterior(self, ridge: float, inner: FloatArray, right: FloatArray) -> PosteriorOfSums:
        """Return what rows leave open, from the packed `inner` and `right` of their equations."""
        kind = FinePosterior if self.fine else PosteriorOfSums
        return kind(self.landmarks, ridge, inner, right)

    @property
    def column(self) -> GroupColumn | None:
        """The dimension that names groups with levels, ``None`` where these have none."""
        return None if self.ratio is None else self.landmarks.views.group

    def are_landmarks(self, numeric: FloatArray, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows are copies of a landmark, shape (n,)."""
        known = set(_keys(self.landmarks.points))
        points = self.landmarks.views.points(numeric, codes)
        return np.array([key in known for key in _keys(points)], dtype=np.bool_)


def basis_of(model: EvidenceModel) -> Basis:
    """Return what sums of rows are made over for a fitted model.

    Raises ValueError where its predictions are not those of sums of squares.
    """
    predictor: Any = model._predictor
    if predictor.views.further:
        raise ValueError(
            "sums have levels of one grouping, and this model has several or slopes that differ by "
            "group: share the model itself, or fit one grouping"
        )
    fine = True
    if type(predictor) is LandmarkPredictor:
        fine = isinstance(predictor.posterior, FinePosterior)
        ratio = None if predictor.levels is None else predictor.levels.ratio
        parts = (predictor.landmarks, predictor.ridge, ratio, predictor.targets, predictor.width)
    elif type(predictor) in (ExactPredictor, ClassPredictor):
        parts = _of_all_pairs(predictor)
    else:
        raise ValueError(_no_sums(predictor))
    landmarks, ridge, ratio, targets, width = parts
    n_outputs = len(targets.centre)
    units = replace(targets, values=np.empty((n_outputs, 0)))
    n_folds = n_folds_of(model) if _holds_out(model) else 0
    metric = metric_of(model)
    numbers = (ridge, ratio, width, n_folds, fine)
    kernel = _digest(metric, model, landmarks, numbers)
    return Basis(landmarks, ridge, ratio, units, width, n_folds, metric, kernel, fine)


def _no_sums(predictor: object) -> str:
    """Return why a model has no sums."""
    kind = type(predictor).__name__
    what = "counts" if kind.startswith("Poisson") else "targets that are known by half"
    return (
        f"sums are of squares, and this model learned {what} by their likelihood ({kind}): share "
        "the model itself, or fit numbers (warp=False for counts)"
    )


def _holds_out(model: EvidenceModel) -> bool:
    """Return whether rows are held out at random or in groups, not in an order or by a splitter."""
    predictor: Any = model._predictor
    is_number = model.cv is None or isinstance(model.cv, int | np.integer)
    return is_number and predictor.rows.times is None


def _of_all_pairs(
    predictor: ExactPredictor,
) -> tuple[Landmarks, float, float | None, Standardised, float]:
    """Return at most 2,000 training points as landmarks, and the rest of a `Basis`."""
    mixture = predictor.mixture
    first = np.unique(_keys(mixture.points), return_index=True)[1]
    first = np.sort(first)
    if len(first) > MOST:
        first = first[np.linspace(0, len(first) - 1, MOST).astype(np.intp)]
    alone = tuple(each.without_levels() for each in mixture.scales)
    landmarks = Landmarks(mixture.views, mixture.points.take(first), alone, np.float64)
    level = level_of(mixture.scales)
    ratio = mixture.nugget / level if level else None
    return landmarks, mixture.nugget, ratio, mixture.target, float(np.mean(mixture.width))


def _keys(points: Points) -> list[bytes]:
    """Return bytes of each point that its copies share, whatever group they are of."""
    table = np.vstack([points.X, points.U, points.H, points.C]).T + 0.0
    return [row.tobytes() for row in np.ascontiguousarray(table)]


def metric_of(model: EvidenceModel) -> str:
    """Return a digest that two models share where one learned the kernel and the other took it."""
    predictor: Any = model._predictor
    digest, views = hashlib.sha256(), predictor.views
    for array in _arrays(predictor):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    units = predictor.targets if isinstance(predictor, LandmarkPredictor) else _target(predictor)
    words = [repr(units.warps), repr(views.warps), repr(views.columns), repr(model.encoder_.names_)]
    if isinstance(model._task, Classification):
        words.append(repr(np.asarray(model._task.labels).tolist()))
    digest.update("\n".join(words).encode())
    return digest.hexdigest()


def _target(predictor: ExactPredictor) -> Standardised:
    return predictor.mixture.target


def _arrays(predictor: Any) -> Iterator[FloatArray]:
    """Yield the numbers of a kernel and of the units of the targets."""
    views = predictor.views
    for each in predictor.scales:
        # landmarks have the term of groups as levels, whose weight follows from noise and ratio
        yield from (each.ell, each.strength, each.weights[:N_TERMS], np.array([each.noise]))
    units = predictor.targets if isinstance(predictor, LandmarkPredictor) else _target(predictor)
    yield from (views.mean, views.scale, views.slopes, views.match_weight)
    yield from (*views.knots, *views.ranks, units.centre, units.spread)


def _digest(
    metric: str, model: EvidenceModel, landmarks: Landmarks, numbers: tuple[float | None, ...]
) -> str:
    """Return a digest that two models share where sums over the one are sums over the other."""
    digest, points = hashlib.sha256(metric.encode()), landmarks.points
    for array in (points.X, points.U, points.H):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    words = [np.dtype(landmarks.dtype).name, repr(numbers)]
    # of categories those that landmarks have: codes of others come and go
    p = landmarks.views.n_dimensions - len(points.C)
    for dimension, codes in zip(model.dimensions_[p:], points.C, strict=True):
        names = np.array([*dimension.categories, ""], dtype=object)
        words.append(repr(names[np.minimum(codes, len(names) - 1)].tolist()))
    digest.update("\n".join(words).encode())
    return digest.hexdigest()
