"""The plain Gaussian beside the path: its grid is kernel ridge regression, its choice held-out."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.plain import RIDGES, WIDTHS, held_out_grid, plain_fit
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.views import Views
from sklearn.kernel_ridge import KernelRidge


def rows(n: int, seed: int, weight: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    numeric = rng.standard_normal((n, 3))
    codes = rng.integers(0, 3, (n, 1))
    targets = np.array([np.sin(2 * numeric[:, 0]) + codes[:, 0], numeric[:, 1] ** 2])
    return Rows(numeric, codes, targets, rng.uniform(0.5, 3.0, n) if weight else None)


@pytest.mark.parametrize("weight", [False, True])
def test_the_grid_is_kernel_ridge_regression(weight: bool) -> None:
    own, other = rows(40, 0, weight), rows(15, 1)
    views = Views.of(own.numeric, own.codes, own.weight)
    points, others = (views.points(each.numeric, each.codes) for each in (own, other))
    near = np.vstack([points.X, np.eye(3)[:, points.C[0]] / np.sqrt(2.0)]).T
    far = np.vstack([others.X, np.eye(3)[:, others.C[0]] / np.sqrt(2.0)]).T
    targets = Standardised.of(own)
    found = held_out_grid(views, own, other)
    assert found.shape == (len(WIDTHS) * len(RIDGES), 15, 2)
    for choice in (0, 29, 60):
        which, ridge = divmod(choice, len(RIDGES))
        machine = KernelRidge(kernel="rbf", gamma=WIDTHS[which] / 4, alpha=RIDGES[ridge])
        machine.fit(near, targets.values.T, sample_weight=own.weight)
        expected = targets.restore(machine.predict(far))
        np.testing.assert_allclose(found[choice], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("weight", [False, True])
def test_the_fit_of_a_choice_predicts_as_its_place_in_the_grid(weight: bool) -> None:
    own, other = rows(40, 0, weight), rows(15, 1)
    views = Views.of(own.numeric, own.codes, own.weight)
    fit = plain_fit(views, own, 34)
    mixture = fit_mixture(views, own, (fit.scales,))
    predicted = mixture.predict(views.points(other.numeric, other.codes))
    np.testing.assert_allclose(predicted, held_out_grid(views, own, other)[34], rtol=1e-4)


def test_it_rescues_classes_that_the_evidence_takes_for_noise() -> None:
    rng = np.random.default_rng(0)
    level = rng.uniform(1.0, 100.0, (240, 1))
    shape = np.exp(-((np.arange(12) - rng.integers(2, 10, (240, 1))) ** 2) / 4.0)
    sign = np.where(rng.random(240) < 0.5, 1.0, -1.0)
    X = level * (1.0 + 0.1 * sign[:, None] * shape + 0.002 * rng.standard_normal((240, 12)))
    model = EvidenceKernelClassifier().fit(X[:160], sign[:160])
    assert len(model.path_weights_) == len(model.precisions) + 1
    assert model.certificate_.precisions[-1] == np.inf
    assert model.score(X[160:], sign[160:]) > 0.75
