"""Estimators whose kernel weights follow a rule, SimpleMKL, and the elastic net."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from kernelweave.kernels_core.checks import POSITIVE
from kernelweave.kernels_core.estimators.kernel import KernelClassifier, SpreadRegressor, unit_of
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.weights import (
    ApproximatedKernels,
    WeightedKernels,
    fit_kernels,
    weight_attributes,
)
from kernelweave.kernels_core.fit import Formula
from kernelweave.kernels_core.parameters import parameter, parameter_of
from kernelweave.qp_smo import SVC, SVR

from .alignment import AlignmentWeights
from .easymkl import EasyMKLWeights
from .elastic_net import ElasticNetWeights
from .proportional import AverageWeights, ProportionalWeights
from .simplemkl import Simplex

_AT_RULE = (
    "a feasible dual point at the weights of the rule, which this objective did not choose",
    "the primal value at the weights of the rule",
)


def formula_of(
    estimator: WeightedKernels,
    parts: tuple[Any, Any],
    algorithm: str,
    samples: Samples,
    **also: Any,
) -> Formula:
    """Return the problem of a learner over a set of weights, `parts`, of the kernels."""
    stored = fit_kernels(estimator, samples)
    return Formula(
        stored,
        *parts,
        algorithm,
        attributes=lambda _, result: weight_attributes(estimator, stored, result.parameters),
        **also,
    )


class _ByRule(WeightedKernels, KernelClassifier):
    """Weights by a rule, then a support vector machine."""

    C: float = parameter(
        "Penalty of the hinge loss, as in scikit-learn's SVC.", default=1.0, rule=POSITIVE
    )
    tol: float = 1e-4
    max_iter: int = 20

    _name: ClassVar[str]
    _rule: ClassVar[type]

    def formula(self, samples: Samples) -> Formula:
        """Return the support vector machine at the one point of the rule."""
        parameters = {field.name: getattr(self, field.name) for field in fields(self._rule)}
        parts = SVC(C=self.C), self._rule(**parameters)
        return formula_of(self, parts, self._name, samples, proofs=_AT_RULE)


class _ByMatrices(_ByRule):
    """Weights by a rule that needs Gram matrices."""

    # no rule draws anything
    random_state: ClassVar[None] = None  # type: ignore[misc]


class _ByFactors(ApproximatedKernels, _ByRule):
    """Weights by a rule that needs no Gram matrix; ``exact_certificate_`` is at these weights."""


class OptimalWeights(ApproximatedKernels):
    """Optimal weights of a set."""

    C: float = parameter(
        "Penalty of the loss, as in scikit-learn's SVC and SVR.", default=1.0, rule=POSITIVE
    )
    tol: float = 1e-4


class AverageMKLClassifier(_ByFactors):
    """Support vector classifier on the mean of the kernels, βⱼ = 1/q.

    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.

    References
    ----------
    Lewis, Jebara and Noble, "Support vector machine learning from heterogeneous data: an empirical
    analysis using protein sequence and structure", Bioinformatics 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import AverageMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(AverageMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    _name, _rule = "mkl-average", AverageWeights


class EasyMKLClassifier(_ByFactors):
    """Support vector classifier on kernels weighted by the margin of their sum.

    ``βⱼ ∝ γᵀYKⱼYγ`` with γ the minimiser of ``(1 − λ)γᵀY(ΣKⱼ)Yγ + λ‖γ‖²`` over pairs of
    distributions, one on each class.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.

    References
    ----------
    Aiolli and Donini, "EasyMKL: a scalable multiple kernel learning algorithm", Neurocomputing
    2015. There a classifier of the same margin distribution follows; here a support vector machine.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import EasyMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(EasyMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    lam: float = parameter_of(EasyMKLWeights, "lam")
    _name, _rule = "mkl-easy", EasyMKLWeights


class CKAClassifier(_ByMatrices):
    """Support vector classifier on kernels weighted by centred alignment with the labels.

    β maximises ``(βᵀa)²/βᵀMβ``, ``aⱼ = yᵀKⱼᶜy``, ``Mᵢⱼ = ⟨Kᵢᶜ, Kⱼᶜ⟩``, ``‖β‖₂ = 1``.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.

    References
    ----------
    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import CKAClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(CKAClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    method: str = parameter_of(AlignmentWeights, "method")
    _name, _rule = "mkl-cka", AlignmentWeights


class PWMKClassifier(_ByMatrices):
    """Support vector classifier on kernels weighted by the accuracy of each alone.

    ``βⱼ ∝ πⱼ − threshold · min π`` with π the cross-validated accuracies.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.

    References
    ----------
    Tanabe, Ho, Nguyen and Kawasaki, "Simple but effective methods for combining kernels in
    computational biology", RIVF 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import PWMKClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(PWMKClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    threshold: float = parameter_of(ProportionalWeights, "threshold")
    n_folds: int = parameter_of(ProportionalWeights, "n_folds")
    _name, _rule = "mkl-pwmk", ProportionalWeights


class SimpleMKLClassifier(OptimalWeights, KernelClassifier):
    """Support vector classifier on the kernel weights that are best for it.

    ``min over β ≥ 0, Σβ = 1 of Σₜ max over α of 1ᵀα − ½(y∘α)ᵀK(β)(y∘α)``, to a certified gap.
    Several classes share the weights, one task per class.

    References
    ----------
    Rakotomamonjy, Bach, Canu and Grandvalet, "SimpleMKL", JMLR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import SimpleMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SimpleMKLClassifier(tol=1e-2).fit(X, y).score(X, y) > 0.9)
    True
    """

    def formula(self, samples: Samples) -> Formula:
        """Return the classifier over the simplex of weights."""
        return formula_of(self, (SVC(C=self.C), Simplex()), "mkl-simple", samples)


class SimpleMKLRegressor(OptimalWeights, SpreadRegressor):
    """Support vector regressor on the kernel weights that are best for it.

    ``min over β ≥ 0, Σβ = 1 of max over α of yᵀα − ε‖α‖₁ − ½αᵀK(β)α``, to a certified gap.

    References
    ----------
    Rakotomamonjy, Bach, Canu and Grandvalet, "SimpleMKL", JMLR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.baselines import SimpleMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SimpleMKLRegressor(tol=1e-2).fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-2)
    True
    """

    def formula(self, samples: Samples) -> Formula:
        """Return the regressor over the simplex of weights, in units of the targets' spread."""
        parts, unit = (SVR(C=self.C, epsilon=self.epsilon), Simplex()), unit_of(self, samples)
        return formula_of(self, parts, "mkl-simple", samples, unit=unit)


class ElasticNetMKLClassifier(OptimalWeights, KernelClassifier):
    """Support vector classifier on kernels with an elastic net: sparse, and similar kernels share.

    ``min over f = Σ fⱼ of ½ρ (Σ ‖fⱼ‖)² + ½(1 − ρ) Σ ‖fⱼ‖² + hinge loss``, ρ being ``l1_ratio``, to
    a certified gap. The weights are those of `elastic_net_weights`, in [0, 1], and a kernel without
    weight has a part fⱼ = 0. Several classes share the weights, one task per class.

    References
    ----------
    Mourão-Miranda, Hussain, Tsirlis, Phillips and Shawe-Taylor, "Elastic-net multiple kernel
    learning: combining multiple data sources for prediction", arXiv 2512.11547. Its closed form of
    the weights takes turns with cutting planes here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import ElasticNetMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(ElasticNetMKLClassifier(tol=1e-2).fit(X, y).score(X, y) > 0.9)
    True
    """

    l1_ratio: float = parameter_of(ElasticNetWeights, "l1_ratio")

    def formula(self, samples: Samples) -> Formula:
        """Return the classifier over the weights of the elastic net."""
        parts = SVC(C=self.C), ElasticNetWeights(self.l1_ratio)
        return formula_of(self, parts, "mkl-elastic-net", samples)


class ElasticNetMKLRegressor(OptimalWeights, SpreadRegressor):
    """Support vector regressor on kernels with an elastic net: sparse, and similar kernels share.

    ``min over f = Σ fⱼ of ½ρ (Σ ‖fⱼ‖)² + ½(1 − ρ) Σ ‖fⱼ‖² + ε-insensitive loss``, ρ being
    ``l1_ratio``, to a certified gap. The weights are those of `elastic_net_weights`, in [0, 1].

    References
    ----------
    Mourão-Miranda, Hussain, Tsirlis, Phillips and Shawe-Taylor, "Elastic-net multiple kernel
    learning: combining multiple data sources for prediction", arXiv 2512.11547.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.baselines import ElasticNetMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetMKLRegressor(tol=1e-2).fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-2)
    True
    """

    l1_ratio: float = parameter_of(ElasticNetWeights, "l1_ratio")

    def formula(self, samples: Samples) -> Formula:
        """Return the regressor over the elastic net, in units of the targets' spread."""
        parts = SVR(C=self.C, epsilon=self.epsilon), ElasticNetWeights(self.l1_ratio)
        return formula_of(self, parts, "mkl-elastic-net", samples, unit=unit_of(self, samples))
