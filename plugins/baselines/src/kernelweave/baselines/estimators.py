"""Estimators whose kernel weights follow a rule, and SimpleMKL."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.arrays import FloatArray, RealArray, Rows
from kernelweave.kernels_core.estimators import KernelMachineClassifier, SpreadRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.grams import GramStack, PrecomputedStack, as_grams, check_once
from kernelweave.kernels_core.grams.psd import refuse_indefinite
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.kernels_core.parameters import parameter_of
from kernelweave.qp_smo import SVC, SVR

from .alignment import AlignmentWeights
from .average import AverageWeights, average_weights
from .easymkl import EasyMKLWeights
from .machine import AveragedStack, LowRankRuleMachine, MatrixRuleMachine, SimplexMachine
from .proportional import ProportionalWeights


class AverageMKLClassifier(LowRankRuleMachine):
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
    _definite: ClassVar[str] = "the average"

    def _matrices_of(self, X: Rows) -> RealArray:
        grams = as_grams(X, "X")
        if grams.shape[1] != grams.shape[2] or grams.shape[1] == 0:
            return super()._matrices_of(X)
        self._average: FloatArray | None = None
        check_once(self._definite, self._prove_average, X, grams)
        return grams

    def _prove_average(self, grams: RealArray) -> None:
        """Refuse where the average is unsound: no other matrix is used, the proof needs no more."""
        self._average = GramStack(grams, check=False).combine(average_weights(len(grams)))
        # as precise as what it is the average of
        average = self._average.astype(grams.dtype, copy=False)
        try:
            as_grams(average[None], square=True)
        except ValueError:
            # names the one that is not symmetric; what float32 rounded is forgiven
            as_grams(grams, "X", square=True)
        refuse_indefinite(average, "the average of the matrices in X")

    def _fitted(self, samples: Samples) -> FittedDictionary | PrecomputedStack:
        """Return the Gram matrices, with the average where the check has just formed it."""
        stored = super()._fitted(samples)
        average = self.__dict__.pop("_average", None)
        if average is None or getattr(stored, "grams", None) is not samples.grams:
            return stored
        return AveragedStack(stored.grams, average)

    def _keep_parts(self) -> None:
        # each part has an average of its own
        self.__dict__.pop("_average", None)
        super()._keep_parts()


class EasyMKLClassifier(LowRankRuleMachine):
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


class CKAClassifier(MatrixRuleMachine):
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


class PWMKClassifier(MatrixRuleMachine):
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


class SimpleMKLClassifier(SimplexMachine, KernelMachineClassifier):
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

    def _learner(self) -> SVC:
        return SVC(C=self.C)


class SimpleMKLRegressor(SimplexMachine, SpreadRegressor):
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

    def _learner(self) -> SVR:
        return SVR(C=self.C, epsilon=self.epsilon)
