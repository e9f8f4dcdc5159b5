"""The linear baseline: a lasso vector autoregression, cross-validated and swept."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix

from .selection import make_folds
from .series import lagged_samples
from .simulation import score_graph

# from a penalty that selects nothing to one that selects nearly all, in standardised units
_ALPHAS = np.logspace(0, -4, 30)


@dataclass(frozen=True, eq=False)
class LassoVAR:
    """A path of linear graphs.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Penalties, descending.
    graphs : ndarray of shape (n_alphas, n_nodes, n_nodes)
        Sum over lags of the absolute coefficients of node j in the equation of node i.
    errors : ndarray of shape (n_alphas, n_nodes)
        Held-out mean squared error, in standardised units.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger import lasso_var
    >>> path = lasso_var(np.random.default_rng(0).standard_normal((40, 3)))
    >>> path.graphs.shape == (len(path.alphas), 3, 3)
    True
    """

    alphas: npt.NDArray[np.float64]
    graphs: Matrix
    errors: Matrix

    def chosen(self, *, shared: bool = False) -> Matrix:
        """Return the cross-validated graph.

        Parameters
        ----------
        shared : bool, default=False
            One penalty for all equations, or one each, as ``LassoCV`` per equation does.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
            Weights.
        """
        if shared:
            graph: Matrix = self.graphs[self.errors.sum(axis=1).argmin()]
            return graph
        best = self.errors.argmin(axis=0)
        return np.array([self.graphs[k, i] for i, k in enumerate(best)])

    def best_auroc(self, truth: npt.ArrayLike) -> float:
        """Return the largest AUROC on the path, which only who knows the graph can choose.

        Parameters
        ----------
        truth : array-like of bool of shape (n_nodes, n_nodes)
            The true graph.

        Returns
        -------
        float
            Its area.
        """
        return max(score_graph(graph, truth).auroc for graph in self.graphs)


def lasso_var(
    X: npt.ArrayLike, lags: int = 1, *, replicates: object = None, cv: object = 5
) -> LassoVAR:
    """Fit min (1/2n) ‖y − H b‖² + α‖b‖₁ for every node and thirty α from 1 to 10⁻⁴.

    Parameters
    ----------
    X : array-like of shape (n_times, n_nodes)
        The series; standardised inside.
    lags : int, default=1
        Length of a history.
    replicates : array-like of shape (n_times,), optional
        Replicate of each row.
    cv : int or splitter, default=5
        Folds, as for `GrangerGraph`.

    Returns
    -------
    LassoVAR
        The path.

    Raises
    ------
    ValueError
        As `lagged_samples`, or if there are fewer samples than folds.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger import lasso_var
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> X[1:, 0] += 2 * X[:-1, 2]
    >>> lasso_var(X).chosen()[0].argmax()
    np.int64(2)
    """
    samples = lagged_samples(X, lags, replicates)
    H = _standardised(samples.history)
    Y = _standardised(samples.targets)
    n_nodes = Y.shape[1]
    errors = np.zeros((len(_ALPHAS), n_nodes))
    folds = make_folds(cv, samples.replicate)
    for train, test in folds:
        mean = Y[train].mean(axis=0)
        for i in range(n_nodes):
            coef = _path(H[train], Y[train, i] - mean[i])
            predicted = H[test] @ coef + mean[i]
            errors[:, i] += ((predicted - Y[test, i, None]) ** 2).sum(axis=0)
    graphs = np.empty((len(_ALPHAS), n_nodes, n_nodes))
    for i in range(n_nodes):
        coef = np.abs(_path(H, Y[:, i])).reshape(n_nodes, lags, -1)
        graphs[:, i] = coef.sum(axis=1).T
    return LassoVAR(_ALPHAS.copy(), graphs, errors / sum(len(test) for _, test in folds))


def _standardised(values: Matrix) -> Matrix:
    scale = values.std(axis=0)
    scaled: Matrix = (values - values.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return scaled


def _path(H: Matrix, y: npt.NDArray[np.float64]) -> Matrix:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the smallest penalties, rarely chosen
        coef: Matrix = lasso_path(H, y, alphas=_ALPHAS, max_iter=5000)[1]
    return coef
