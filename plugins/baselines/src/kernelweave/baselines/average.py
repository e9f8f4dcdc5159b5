"""AverageMKL: the same weight for every kernel."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.checks import COUNT
from kernelweave.kernels_core.formula import Learner
from kernelweave.kernels_core.grams import LowRankStack
from kernelweave.kernels_core.parameters import Value


def average_weights(n_kernels: int) -> FloatArray:
    """Return βⱼ = 1/q.

    Parameters
    ----------
    n_kernels : int
        q ≥ 1.

    Returns
    -------
    ndarray of shape (q,)
        Equal weights.

    Raises
    ------
    ValueError
        If q is not an integer of at least 1.

    Notes
    -----
    The baseline of Bertsimas, Iglesias and Johnson 2025, section 2.2; Lewis, Jebara and Noble,
    "Support vector machine learning from heterogeneous data", Bioinformatics 2006, show how hard
    it is to beat.

    Examples
    --------
    >>> from kernelweave.baselines import average_weights
    >>> average_weights(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    COUNT.check("n_kernels", n_kernels)
    return np.full(n_kernels, 1.0 / n_kernels)


class AverageWeights(Value):
    """The one point {β : βⱼ = 1/q}.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import AverageWeights
    >>> AverageWeights().weights(np.ones((2, 3, 3)), np.ones((1, 3)))
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "average-weights"
    is_point: ClassVar[bool] = True

    def weights(
        self,
        grams: RealArray | LowRankStack,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        learner: Learner | None = None,
    ) -> FloatArray:
        """Return equal weights, one per Gram matrix; nothing else is used."""
        return average_weights(len(grams))
