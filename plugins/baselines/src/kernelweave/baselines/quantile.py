"""Kernel quantile regression on one kernel, or on the best weights of several."""

from __future__ import annotations

from kernelweave.kernels_core.estimators.kernel import KernelRegressor, SpreadRegressor, unit_of
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.fit import Formula
from kernelweave.kernels_core.parameters import parameter, parameter_of
from kernelweave.qp_smo import QuantileSVR
from kernelweave.qp_smo.problem import QUANTILE

from .estimators import OptimalWeights, formula_of
from .simplemkl import Simplex


class KernelQuantileRegressor(OptimalWeights, KernelRegressor):
    """Kernel quantile regression: a function that a share τ of the targets lies below.

    ``min over f, b and β ≥ 0, Σβ = 1 of ½‖f‖² + C Σ ρ(yᵢ − f(xᵢ) − b)``, the norm being that of
    the kernel ``Σ βⱼKⱼ`` and ``ρ(r) = max(τr, (τ − 1)r)`` the pinball loss, to a certified gap.
    With one kernel, such as ``kernels=["rbf"]``, it is the machine of the paper; of several it
    learns the weights, as SimpleMKL does.

    ``score`` is R², as of scikit-learn's ``QuantileRegressor``, which is a fair score of medians at
    most: to compare settings, use ``d2_pinball_score`` or ``mean_pinball_loss``. Quantiles of
    different fits may cross where there are few samples.

    References
    ----------
    Takeuchi, Le, Sears and Smola, "Nonparametric quantile estimation", JMLR 2006. Rakotomamonjy,
    Bach, Canu and Grandvalet, "SimpleMKL", JMLR 2008, for the weights.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave.baselines import KernelQuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelQuantileRegressor(["rbf"], quantile=0.9).fit(scale(X), y)
    >>> bool(0.88 < (y <= model.predict(scale(X)) + 1e-6).mean() < 0.92)
    True
    """

    quantile: float = parameter(
        "τ in (0, 1): which quantile is predicted; 0.5 is the median.", default=0.5, rule=QUANTILE
    )
    units: str = parameter_of(SpreadRegressor, "units")

    def formula(self, samples: Samples) -> Formula:
        """Return the quantile machine over the simplex, in units of the targets' spread."""
        parts, unit = (QuantileSVR(self.C, self.quantile), Simplex()), unit_of(self, samples)
        return formula_of(self, parts, "mkl-simple", samples, unit=unit)
