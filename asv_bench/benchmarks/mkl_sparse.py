"""Sparse kernel weights: solves of Algorithm 1 and of paths, seconds and memory of a fit."""

from __future__ import annotations

import numpy as np

from ._measure import checkered

LAMS, K0S = tuple(np.geomspace(0.01, 10.0, 6)), (1, 2, 4)


def grams_of(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    from kernelweave.kernels_core import RBF, KernelDictionary

    X, y = checkered(n_samples, 5)
    widths = np.geomspace(0.05, 50.0, 8)
    return KernelDictionary([RBF(gamma=g) for g in widths]).fit_grams(X).grams, y


class Path:
    """Learner solves along a grid of λ and k₀, beside those of every setting alone."""

    def setup_cache(self) -> dict[str, float]:
        from kernelweave.mkl_sparse import sparse_mkl_path

        grams, y = grams_of(200)
        together = sparse_mkl_path(grams, y, Cs=[10.0], lams=LAMS, k0s=K0S, check=False)
        alone = [
            sparse_mkl_path(grams, y, Cs=[10.0], lams=[lam], k0s=[k0], check=False).n_svm_solves
            for lam in LAMS
            for k0 in K0S
        ]
        return {"solves": together.n_svm_solves, "ratio": together.n_svm_solves / sum(alone)}

    def track_svm_solves(self, found: dict[str, float]) -> float:
        return found["solves"]

    def track_ratio_to_single_settings(self, found: dict[str, float]) -> float:
        return found["ratio"]


class Fit:
    """A fit of the classifier, from the relaxation and from a random start."""

    params = (("saddle", "random"),)
    param_names = ("start",)

    def setup(self, start: str) -> None:
        from kernelweave.mkl_sparse import SparseMKLClassifier

        self.X, self.y = checkered(400, 5)
        self.model = SparseMKLClassifier(
            C=10.0, k0=3, algorithm="smkl-best-response", init=start, random_state=0
        )

    def time_fit(self, start: str) -> None:
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, start: str) -> None:
        self.model.fit(self.X, self.y)

    def track_svm_solves(self, start: str) -> int:
        self.model.fit(self.X, self.y)
        return int(self.model.result_.history.counts["n_svm_solves"][-1])
