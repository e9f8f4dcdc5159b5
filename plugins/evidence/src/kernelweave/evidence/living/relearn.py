"""What learning the kernel again would gain, at the rows that a model has by now.

A kernel was learned from the rows that there were. How well it suits those that came since is
measured, not guessed: some steps of the search that a fit takes, from the scales at hand and on
some of the rows, half of them the newest. What the evidence gains there is a lower bound of what a
whole search would gain on them. As a search gains by chance too, each half of these rows also
judges the scales that the other half finds: where rows are like those of the fit, these are hardly
ever better than the fit's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.exceptions import KernelWeaveWarning

from ..exact import ExactPredictor
from ..large.posterior import latent_variance
from ..objective import Evidence, log_prior
from ..path import EvidenceDescent
from ..rows import Rows, Standardised
from ..terms import N_TERMS, GaussianTerm, PairTerms, n_dimensions_of, restricted
from .canonical import renewed
from .state import LivingModel, Unsettled

if TYPE_CHECKING:
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor
    from ..terms import Scales
    from ..views import Views

# rows that are searched on, half of them the newest; steps, and the share of the evidence that a
# step must gain
_ROWS, _STEPS, _TOL = 400, 6, 1e-3
# λ where the best kernel of the path is one that leave-one-out errors chose
_PRECISION = 5.0
# a term of less weight than this is not there
_ABSENT = -50.0
# of a target, and of all rows measured, in nats: less is not worth a fit, or may be chance
_WORTH, _SURE = 0.03, 6.0
# new rows are measured where there are a tenth more than before, and where so many are, by their
# squares, this factor farther from their predictions than the model says, or nearer
_GROWTH, _FEWEST, _FACTOR = 1.1, 20, 1.5
# nats of which only this is said
_FAR = 1000.0


class RelearnWarning(KernelWeaveWarning):
    """Rows that came since a fit would now be worth another: its kernel suits them less.

    Examples
    --------
    >>> from kernelweave.evidence import RelearnWarning
    >>> from kernelweave.kernels_core import KernelWeaveWarning
    >>> issubclass(RelearnWarning, KernelWeaveWarning)
    True
    """


@dataclass(frozen=True)
class Relearn:
    """What learning the kernel again would gain on some rows, in nats of log evidence a target.

    - `gain`: by a few steps of the search, priors included: a lower bound of what it would find on
      these rows
    - `slope`: largest entry of the gradient of the log evidence at the scales at hand, in their
      logarithms; 0 where they are stationary for these rows
    - `held_out`: log evidence that half of these rows gain by scales that the other half finds,
      both ways; below 0 where the scales at hand are better
    - `n_rows`: how many rows this was measured on, and `n_outputs`, of how many targets each

    Examples
    --------
    >>> from kernelweave.evidence.living.relearn import Relearn
    >>> Relearn(gain=0.31, slope=41.0, held_out=0.22, n_rows=400).is_worth_it
    True
    >>> str(Relearn(gain=0.01, slope=3.0, held_out=-0.02, n_rows=400))[:42]
    'learning again would lose 0.02 nats of log'
    """

    gain: float
    slope: float
    held_out: float
    n_rows: int
    n_outputs: int = 1

    @property
    def is_worth_it(self) -> bool:
        """Whether rows that are not learned from gain, by more than chance and than is little."""
        return self.held_out > max(_WORTH, _SURE / (self.n_rows * self.n_outputs))

    def __str__(self) -> str:
        way = "gain" if self.held_out > 0.0 else "lose"
        return (
            f"learning again would {way} {_nats(abs(self.held_out))} of log evidence a target, "
            f"measured on {self.n_rows} rows by scales that the other half of them found (all of "
            f"them by their own: {_nats(self.gain)}; slope {self.slope:.2g})"
        )

    def warning(self, seconds: float = 0.0) -> RelearnWarning:
        """Return what is to be said where it is worth it; `seconds`: of the fit, if known."""
        took = f" (the last fit took {seconds:.2g} s of the processor)" if seconds else ""
        return RelearnWarning(
            f"the kernel suits the newest rows less than those that it was learned from: {self}. "
            f"Call fit with all rows{took}"
        )


def _nats(value: float) -> str:
    """Return so much evidence in words; far outside what a kernel knows, no number is of use."""
    return f"{value:.2f} nats" if value < _FAR else f"more than {_FAR:.0f} nats"


class KernelAtHand(NamedTuple):
    """The best kernel of a path, as a search may go on from it.

    - `thetas`: of all rows and of the folds, of the dimensions that have scales
    - `kept`: these, ``None`` where all have
    - `precision`: λ of its prior
    - `units`: of the targets
    """

    views: Views
    thetas: list[FloatArray]
    kept: Index | None
    precision: float
    terms: type[PairTerms | GaussianTerm]
    units: Standardised

    @classmethod
    def of(
        cls, predictor: ExactPredictor | LandmarkPredictor, weights: FloatArray,
        precisions: Sequence[float],
    ) -> KernelAtHand:  # fmt: skip
        """Return that of a fit.

        `weights`, `precisions`: of the fits of its path, as its certificate has them.
        """
        if isinstance(predictor, ExactPredictor):
            units = predictor.mixture.target
        else:
            units = predictor.targets
        place, thetas = _best_of_path(predictor.scales, weights, precisions)
        n_weights = len(predictor.scales[0].weights)
        n = n_dimensions_of(thetas[0], n_weights)
        scaled = np.flatnonzero(np.isfinite(thetas[0][:n]))
        kept = scaled if len(scaled) < n else None
        if kept is not None:
            thetas = [restricted(thetas[0], kept, n_weights)]
        absent = thetas[0][2 * len(scaled) + 1 : 2 * len(scaled) + N_TERMS] < _ABSENT
        precision = precisions[place] if np.isfinite(precisions[place]) else _PRECISION
        terms = GaussianTerm if absent.all() else PairTerms
        return cls(predictor.views, thetas, kept, precision, terms, units)

    def evidence(self, rows: Rows) -> Evidence:
        """Return the evidence of rows, their targets in the units of the model."""
        points, match_weight = self.views.points(rows.numeric, rows.codes), self.views.match_weight
        if self.kept is not None:
            points, match_weight = points.among(self.kept), match_weight[self.kept]
        values = self.units.of_rows(rows).values
        return Evidence(points, match_weight, values, self.precision, rows.precision, self.terms)

    def measure(self, rows: Rows, random: np.random.RandomState) -> Relearn:
        """Return what learning again would gain on rows of which the newest are last.

        `random`: draws the older ones of those that are measured.

        Raises Stopped where time is up.
        """
        rows = rows.take(_some(len(rows), random))
        return self._measured(rows, self._gain_of_halves(rows, random))

    def alarm(self, rows: Rows, random: np.random.RandomState) -> Relearn | None:
        """Return the same where it is worth it, else ``None``, which takes half of the time."""
        rows = rows.take(_some(len(rows), random))
        held_out = self._gain_of_halves(rows, random)
        is_worth_it = Relearn(0.0, 0.0, held_out, len(rows), len(rows.targets)).is_worth_it
        return self._measured(rows, held_out) if is_worth_it else None

    def _gain_of_halves(self, rows: Rows, random: np.random.RandomState) -> float:
        """Return what halves of rows gain by the scales that the other half finds, a target."""
        by, middle = random.permutation(len(rows)), len(rows) // 2
        halves = [rows.take(np.sort(each)) for each in (by[:middle], by[middle:])]
        one, other = map(self.evidence, halves)
        gains = [_gain_of_others(*pair, self.thetas) for pair in ((one, other), (other, one))]
        return sum(gains) / (len(rows) * len(rows.targets))

    def _measured(self, rows: Rows, held_out: float) -> Relearn:
        """Return this with what rows gain by scales of their own."""
        evidence = self.evidence(rows)
        first = _best_of(evidence, self.thetas)
        now = evidence.value(first)
        slope = float(np.abs(evidence.gradient()[evidence.free]).max())
        found = EvidenceDescent(evidence, first).run(_STEPS, _TOL)
        gain = (now - found.value) / (len(rows) * len(rows.targets))
        return Relearn(max(0.0, gain), slope, held_out, len(rows), len(rows.targets))


def _best_of(evidence: Evidence, thetas: Sequence[FloatArray]) -> FloatArray:
    """Return the best of some points, inside the box of the scales."""
    inside = [EvidenceDescent(evidence, theta).theta for theta in thetas]
    return min(inside, key=evidence.value)


def _gain_of_others(one: Evidence, other: Evidence, thetas: Sequence[FloatArray]) -> float:
    """Return what rows gain by scales that others find; priors are no part of what is judged."""
    found = EvidenceDescent(one, _best_of(one, thetas)).run(_STEPS, _TOL).theta

    def told(theta: FloatArray) -> float:
        return other.value(theta) - log_prior(theta, other.precision, other.n_weights)[0]

    inside = [EvidenceDescent(other, theta).theta for theta in thetas]
    return min(map(told, inside)) - told(found)


def _some(n_rows: int, random: np.random.RandomState) -> Index:
    """Return places of rows to measure on, half of them the last."""
    if n_rows <= _ROWS:
        return np.arange(n_rows)
    n_old = n_rows - _ROWS // 2
    older = np.sort(random.permutation(n_old)[: _ROWS - _ROWS // 2])
    return np.concatenate([older, np.arange(n_old, n_rows)])


def _best_of_path(
    scales: Sequence[Scales], weights: FloatArray, precisions: Sequence[float]
) -> tuple[int, list[FloatArray]]:
    """Return the place of the fit of the path that counts most, and its scales.

    First those of all rows, and then of each fold, where the kernel is a mean of both.

    `scales`: of the kernel, with the path's weights in them; `weights`, `precisions`: of the path.
    """
    alive = np.flatnonzero(weights).tolist()
    finite = [k for k in alive if np.isfinite(precisions[k])]
    place = max(finite or alive, key=lambda k: float(weights[k]))
    at, n_kernels = alive.index(place), len(scales) // len(alive)
    thetas = []
    for k, each in enumerate(scales[at :: len(alive)]):
        share = 1.0 if n_kernels == 1 else 0.5 if k == 0 else 0.5 / (n_kernels - 1)
        share *= weights[place]
        own = replace(each, weights=each.weights / share, noise=each.noise / share)
        thetas.append(own.to_vector())
    return place, thetas


def with_relearn(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a settled estimator, whose certificate says what a fit would gain.

    It is learned at all rows that the predictor keeps. Raises Stopped where time is up.
    """
    certificate, predictor = attributes["certificate_"], attributes["_predictor"]
    kernel = KernelAtHand.of(predictor, np.array(certificate.weights), certificate.precisions)
    rows = predictor.rows.take(newest_last(attributes["_owner"], len(predictor.rows)))
    found = kernel.measure(rows, attributes["_living"].random_state())
    return attributes | {"certificate_": replace(certificate, relearn=found, forgotten=None)}


def told_by_update(before: Unsettled | LivingModel, after: Unsettled) -> RelearnWarning | None:
    """Return the warning of rows that were just learned, where they tell that a fit is worth it.

    ``None`` where it was said before, where so few rows need not be measured, and for targets that
    are trusted less than others or known by half: of these the settled model tells.

    Raises Stopped where time is up.
    """
    model = after.model
    n_before = len(before.given if isinstance(before, Unsettled) else model.owner)
    old, certificate = model.predictor, model.certificate
    rows = _rows_of(after)
    new = rows.take(np.arange(n_before, len(rows)))
    if was_said(before) or old.rows.ends is not None or old.rows.trust is not None:
        return None
    if not is_to_be_measured(model.state.n_seen, n_before, len(rows), _squares(old, new)):
        return None
    kernel = KernelAtHand.of(old, np.array(certificate.weights), certificate.precisions)
    # the codes of groups may be new
    kernel = kernel._replace(views=replace(kernel.views, group=rows.group))
    found = kernel.alarm(rows, model.state.random_state())
    return None if found is None else found.warning(model.state.seconds)


def was_said(before: Unsettled | LivingModel) -> bool:
    """Return whether it was said before that learning again is worth it."""
    known = before.certificate.relearn if isinstance(before, LivingModel) else None
    return known.is_worth_it if known is not None else getattr(before, "said", False)


def _rows_of(after: Unsettled) -> Rows:
    """Return rows as they were given, in the order in which they came, without merging copies."""
    like, given, unit = after.model.predictor.rows, after.given, after.model.state.unit
    given = given.take(np.flatnonzero(given.mass > 0.0))
    return replace(
        like.without_folds(), numeric=given.numeric, codes=given.codes, targets=given.targets,
        weight=given.mass / unit[0] / unit[1], groups=None, times=None, trust=None, ends=None,
        information=None, group=renewed(like.group, after.encoder),
    )  # fmt: skip


def _squares(predictor: ExactPredictor | LandmarkPredictor, rows: Rows) -> FloatArray:
    """Return squared residuals of rows that were not learned from, in deviations."""
    if not len(rows):
        return np.empty(0)
    if isinstance(predictor, ExactPredictor):
        mixture = predictor.mixture
        points = mixture.views.points(rows.numeric, rows.codes)
        _, latent, variance = mixture.posterior(points)
        residuals = mixture.target.of_rows(rows).values.T - latent
        return np.asarray(residuals**2 / (variance + mixture.nugget)[:, None])
    variance = latent_variance(predictor.landmarks, predictor.posterior, rows.numeric, rows.codes)
    return np.asarray(predictor.residuals(rows) ** 2 / (variance + predictor.ridge)[:, None])


def is_to_be_measured(n_seen: int, n_before: int, n_after: int, squares: FloatArray) -> bool:
    """Return whether new rows may tell that learning again is worth it: a measure costs a little.

    They may where a model has a tenth more rows than when it was measured before, or than it was
    learned from, and where many new ones are at other distances from their predictions than their
    deviations say.

    - `n_seen`: rows that the kernel was learned from; `n_before`, `n_after`: rows of the model
    - `squares` of shape (n_new,): of residuals of new rows before these are learned, in deviations

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.living.relearn import is_to_be_measured
    >>> is_to_be_measured(1000, 1000, 1050, np.ones(50))
    False
    >>> is_to_be_measured(1000, 1050, 1101, np.ones(51))
    True
    >>> is_to_be_measured(1000, 1000, 1050, 2.0 * np.ones(50))
    True
    """
    # of models of sums only the rows that come are known
    times = [max(n, n_seen) / n_seen for n in (n_before, n_after)]
    steps = [np.floor(np.log(each) / np.log(_GROWTH)) for each in times]
    if n_after > n_seen and steps[0] < steps[1]:
        return True
    mean = float(np.mean(squares)) if len(squares) >= _FEWEST else 1.0
    return not 1.0 / _FACTOR <= mean <= _FACTOR


def newest_last(owner: Index, n_rows: int) -> Index:
    """Return the places of a model's rows by when they were given last.

    `owner` of shape (n_given,): the place of each given row, −1 of none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.living.relearn import newest_last
    >>> newest_last(np.array([2, 0, -1, 1, 0]), 3)
    array([2, 1, 0])
    """
    last = np.full(n_rows, -1)
    kept = np.flatnonzero(owner >= 0)
    last[owner[kept]] = kept
    return np.argsort(last, kind="stable")
