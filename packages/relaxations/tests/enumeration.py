"""The proved optimum over a list of supports, which every search is held against."""

import numpy as np
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights


def best_of(grams, y, supports, lam, *, tol=1e-8, **learner):
    """Return the least proved ends over all supports, to a relative `tol`.

    A support whose rough lower end is above the upper end of another holds no optimum: the least
    ends are found without solving it again.
    """

    def ends(support, tol):
        s = solve_kernel_weights(grams[list(support)], y, penalty=KSupport(lam), tol=tol, **learner)
        return s.lower_bound, s.upper_bound

    rough = [(support, *ends(support, 1e-2)) for support in supports]
    least = min(high for _, _, high in rough)
    low, high = np.array([ends(support, tol) for support, low, _ in rough if low <= least]).T
    return low.min(), high.min()
