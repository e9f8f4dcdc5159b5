"""A predictor as a sum of kernel values, whatever it was fitted by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..mixture import mixed_kernel
from ..rows import Standardised
from ..terms import Scales
from ..views import Points, Views


@dataclass(frozen=True)
class Expansion:
    """f(x) = Σ a k(x, point), standardised, and what its posterior variance takes from the prior's.

    - `points`: training rows or landmarks
    - `scales`: of the kernel, a weighted sum
    - `dual` of shape (n_points, n_outputs): a, for standardised targets
    - `target`: the way to the units of the targets
    - `width`: deviation of a warped target around its prediction
    - `explained`: from values of a linear functional on the kernel functions of the points, shape
      (n, n_points), to what the variance of the functional loses by the training rows, (n,)
    - `inflation` of shape (n_outputs,): what the posterior variance is multiplied by
    """

    views: Views
    points: Points
    scales: Sequence[Scales]
    dual: FloatArray
    target: Standardised
    width: float
    explained: Callable[[FloatArray], FloatArray]
    inflation: FloatArray

    def seen(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Points:
        """Return rows as the kernel sees them."""
        return self.views.points(numeric, codes)

    def kernel(self, left: Points, right: Points | None = None) -> FloatArray:
        """Return the kernel between points, by default with those of the expansion."""
        right = self.points if right is None else right
        return mixed_kernel(left, right, self.scales, self.views.jump)

    def restore(self, latent: FloatArray) -> FloatArray:
        """Return predictions of the targets from standardised ones, shape (n, n_outputs)."""
        return self.target.moments(latent, self.width)[0]
