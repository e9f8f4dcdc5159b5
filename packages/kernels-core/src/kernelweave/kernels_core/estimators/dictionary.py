"""Estimators that weight kernels: a dictionary of them, or Gram matrices that the user computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_X_y, validate_data

from ..arrays import FloatArray, Labels, Points, RealArray, Rows
from ..checks import Rule
from ..formula.learner import Learner
from ..formula.problem import Named, Problem
from ..grams.combined import PrecomputedKernel, PrecomputedStack
from ..grams.precomputed import PrecomputedGrams
from ..kernels import FittedDictionary, KernelDictionary, default_kernels
from ..parameters import fitted, parameter
from ..result import Result
from .machine import KernelMachine
from .samples import Samples
from .tables import TableReader

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from ..kernels import Kernel
    from ..kernels.dictionary import Normalize

KERNELS = Rule(
    "a KernelDictionary, a list of kernels or of their names such as ['rbf'], or 'precomputed'",
    lambda value: not isinstance(value, str) or value == "precomputed",
)


class DictionaryMachine(KernelMachine):
    """Mixed in before `KernelMachineClassifier` or `KernelMachineRegressor`.

    A subclass says which learner and which set of weights it means, and may put another family
    around the fitted dictionary.
    """

    kernels: KernelDictionary | Sequence[Kernel | str] | str | None = parameter(
        "The kernels; by default the ten of the sparse multiple kernel learning paper without the "
        'two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train); '
        "`PrecomputedGrams` makes of them what GridSearchCV can cut into folds.",
        kind='None, KernelDictionary, list of Kernel or str, or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
    normalize: Normalize | None = parameter(
        "`KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its "
        "own.",
        kind="None or str",
        default="trace",
    )

    weights_: FloatArray = fitted(
        "ndarray of shape (n_kernels,)", "β; 0 for kernels that the dictionary left out."
    )
    kernel_names_: tuple[str, ...] = fitted("tuple of str", "Names of the kernels used.")
    view_weights_: dict[str, float] | list[dict[str, float]] = fitted(
        "dict of str to float",
        "The weight of each view, summed over its kernels; empty where the dictionary has no "
        "``columns``.",
    )

    @abstractmethod
    def _learner(self) -> Learner:
        """Return the learner of the problem."""

    @abstractmethod
    def _constraint(self) -> Named:
        """Return the set of weights of the problem."""

    def _family(self, stored: FittedDictionary | PrecomputedStack) -> Named:
        """Return the family of the problem."""
        return stored.as_family()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.three_d_array = self._is_precomputed
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    @property
    def _accepts_sparse(self) -> bool:
        """Whether X may be sparse: the default kernels see standardised features, never sparse."""
        return self.kernels is not None and not self._is_precomputed

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _table(self) -> TableReader | None:
        """What the fit to a table left whose views are not simply positions."""
        reader: TableReader | None = getattr(self, "_reader", None)
        return reader

    def _read(
        self, X: Rows, y: ArrayLike, **options: object
    ) -> tuple[Points, Labels, RealArray | None]:
        self.__dict__.pop("_reader", None)
        if issparse(X) and not (self._accepts_sparse or self._is_precomputed):
            remedy = (
                "pass kernels such as ['linear', 'rbf']"
                if self.kernels is None
                else "set scale=False"
            )
            raise TypeError(
                "Sparse data was passed for X, and features that are standardised first are dense: "
                f"{remedy}, or pass X.toarray()"
            )
        if self._is_precomputed or not self._dictionary().reads_tables:
            return super()._read(X, y, **options)
        self._reader = TableReader(self._dictionary(), X, y)
        points, targets = check_X_y(self._reader.points, y, "csr", dtype=np.float64, **options)
        validate_data(self, X, skip_check_array=True)
        return points, targets, None

    def _points(self, X: Rows) -> Points:
        if self._table is None:
            return super()._points(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._table.transform(X)

    def _for_parts(self) -> dict[str, object]:
        return {} if self._table is None else {"kernels": self._table.dictionary}

    def _dictionary(self) -> KernelDictionary:
        if self._table is not None:
            return self._table.dictionary
        return self._stated_dictionary()

    def _stated_dictionary(self) -> KernelDictionary:
        """Return the dictionary as the user gave it."""
        if isinstance(self.kernels, KernelDictionary):
            return self.kernels
        kernels = default_kernels() if self.kernels is None else self.kernels
        return KernelDictionary(kernels, normalize=self.normalize)

    def _fitted(self, samples: Samples) -> FittedDictionary | PrecomputedStack:
        """Return the Gram matrices of the canonical samples."""
        if samples.grams is None:
            stored: FittedDictionary = self._dictionary().fit_grams(samples.X)
            return stored
        rows = samples.X[:, 0].astype(np.intp)
        grams = samples.grams
        if len(rows) < grams.shape[1]:
            grams = np.stack([K[np.ix_(rows, rows)] for K in grams])
        return PrecomputedStack(grams)

    def _problem(self, samples: Samples) -> Problem:
        stored = self._fitted(samples)
        self.kernel_names_ = stored.names
        self._places = len(stored) + len(stored.dropped), stored.kept
        return Problem(
            self._family(stored),
            self._learner(),
            self._constraint(),
            samples.X,
            samples.targets,
            samples.weight,
        )

    def _keep(self, problem: Problem, result: Result) -> None:
        size, kept = self._places
        self.weights_ = np.zeros(size)
        self.weights_[kept] = result.parameters
        self.view_weights_ = self._by_view(self.weights_)

    def _keep_parts(self) -> None:
        self.view_weights_ = [self._by_view(part.weights_) for part in self.estimators_]

    def _by_view(self, weights: FloatArray) -> dict[str, float]:
        """Return the sum of the weights of each view."""
        views = () if self._is_precomputed else self._stated_dictionary().view_names
        sums = dict.fromkeys(views, 0.0)
        for view, weight in zip(views, weights.tolist(), strict=bool(views)):
            sums[view] += weight
        return sums

    def _products(self, X: Rows) -> FloatArray:
        if not self._is_precomputed:
            return super()._products(X)
        grams = PrecomputedGrams.of(X)
        if (grams.n_kernels, grams.shape[1]) != (len(self.weights_), self.n_features_in_):
            raise ValueError(
                f"X must have shape ({len(self.weights_)}, n_samples, {self.n_features_in_}), one "
                f"cross-Gram matrix per kernel, got {(grams.n_kernels, *grams.shape)}"
            )
        u = np.zeros((self.n_features_in_, len(self._coef)))
        u[np.asarray(self._rows)[:, 0].astype(np.intp)] = self._coef.T
        kernel: PrecomputedKernel = self.kernel_
        return kernel.times(grams, u)
