"""What the regressor and the classifier share: their parameters, and what a fit leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from kernelweave.kernels_core import clock, config_context, interrupts
from kernelweave.kernels_core.arrays import FloatArray, RandomState
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import (
    COUNT,
    FLAG,
    JOBS,
    POSITIVE,
    SECONDS,
    SEED,
    Rule,
    integer,
    number,
)
from kernelweave.kernels_core.estimators.base import Estimator, assigned_last
from kernelweave.kernels_core.estimators.kernel import SolvingEstimator
from kernelweave.kernels_core.exceptions import ExtrapolationWarning, warn
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.result import Result, SolveInterrupted, Status
from kernelweave.tables import ColumnPlan
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .columns import ColumnEncoder, Dimension, Encoded
from .explaining.mixin import Explained
from .explaining.notebook import fit_html
from .findings import EvidenceCertificate
from .fit import Stage, fit_table
from .kernel import EvidenceKernel
from .large.batches import Batches
from .living.mixin import Living
from .living.sharing import Sharing
from .monotone.columns import SIGNS
from .new_rows import Expectation
from .path import PRECISIONS
from .row_kinds import TellsKinds
from .tasks import Task

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.utils import Tags

    from .exact import ExactPredictor
    from .large.landmarks import LandmarkPredictor
    from .monotone.predictor import Monotone, MonotonePredictor

# of a column's range: rows beyond it are warned of, and few new rows of the same kind are
FAR = 0.25

_LANDMARKS = Rule(
    f'"auto" or {COUNT.words}',
    lambda value: value == "auto" if isinstance(value, str) else COUNT.holds(value),
)

_PRECISIONS = Rule(
    "one or more finite numbers > 0",
    lambda value: np.ndim(value) == 1 and len(value) > 0 and all(map(POSITIVE.holds, value)),
)


class HeldOutScores(Estimator):
    """Base of the estimators whose fit says what to expect of each kind of new rows."""

    n_folds: int = parameter(
        "Number of cross-validation folds. They decide how the models of a path are combined; of "
        "`EvidenceKernelRegressor` and its classifier above 5,000 rows the first decides and the "
        "others score.",
        default=3,
        rule=integer(2),
    )
    cv: Any = parameter(
        "Cross-validation other than ``n_folds`` random folds: a number of folds, a scikit-learn "
        "splitter such as ``TimeSeriesSplit()``, or an iterable of (train, test) indices. Above "
        "5,000 rows `EvidenceKernelRegressor` and its classifier choose and score by its first "
        "splits, as many as leave enough rows to learn length scales.",
        default=None,
        kind="int, splitter, iterable or None",
    )
    scoring: Any = parameter(
        "A scikit-learn scorer, or its name, by which rows held out are judged; by default R² or "
        "accuracy. `EvidenceKernelRegressor` and its classifier also combine the models of their "
        "path by it, and above 5,000 rows choose the ridge.",
        default=None,
        kind="str, callable or None",
    )
    max_time: float | None = parameter(
        "Maximum time in seconds; the best model so far is kept, and a warning says what was left "
        "out.",
        default=None,
        rule=SECONDS,
    )
    memory_limit: int | None = parameter(
        "Bytes that the fit may allocate; if it needs more, it does not start.",
        default=None,
        rule=COUNT,
    )
    on_interrupt: str = parameter_of(SolvingEstimator, "on_interrupt")
    random_state: RandomState = parameter(
        "Seed of the folds; the same integer gives the same model.",
        default=0,
        kind="int, RandomState or None",
        rule=SEED.or_none(),
    )

    held_out_score_: float = fitted("float", "Cross-validated score of the training rows.")
    held_out_error_: float = fitted(
        "float",
        "Its standard error over draws of the rows. Scores of other such tables vary more, since "
        "their fits differ too: R² 1.1 to 1.6 times as much at 60 rows, 1.1 to 1.4 times at 300.",
    )
    held_out_prediction_: FloatArray = fitted("ndarray", "Cross-validated predictions.")
    held_out_fold_: NDArray[np.intp] = fitted(
        "ndarray of shape (n_samples,)",
        "The fold that each row was held out in; -1 for rows that never were.",
    )

    if TYPE_CHECKING:
        _new_rows: list[Expectation] = fitted("", "")

    def _fit_by(self, stages: Callable[..., Iterator[Stage]], *given: Any) -> Self:
        """Fit within the limits; a Ctrl-C leaves the attributes of the last finished stage."""
        self._check_parameters()
        attributes: dict[str, Any] = {}
        issued: list[Warning] = []
        stopped: SolveInterrupted | None = None
        with assigned_last(self) as draft:
            with config_context(memory_limit=self.memory_limit), clock.time_limit(self.max_time):
                try:
                    with interrupts.defer_interrupt():
                        for stage in stages(draft, *given):
                            attributes, issued = stage
                except KeyboardInterrupt as stop:
                    if not attributes:
                        raise
                    result = replace(attributes["result_"], status=Status.INTERRUPTED)
                    attributes["result_"] = result
                    stopped, issued = SolveInterrupted(result), []
                    stopped.__cause__ = stop
            draft.__dict__.update(attributes)
            for warning in issued:
                warn(warning)
        if stopped is not None and self.on_interrupt == "raise":
            raise stopped
        return self

    @property
    def held_out_(self) -> pd.DataFrame:
        """What to expect of each kind of new rows.

        A row for each: those that the folds held out, whose score is `held_out_score_`; rows of a
        new group, for every column that could name one; rows that are later by a date, a year or in
        the table. The columns: the score, its standard error over groups or blocks of rows, and of
        how many rows and groups. An interval is Student's quantile of n_groups − 1 degrees of
        freedom times the error. All but the first are closed forms at the scales that all rows
        chose, and with components of texts that all rows showed, so upper estimates. Of more than
        50,000 rows in batches there is only the first, as nothing leaves rows out that are not in
        memory. Where at least a twentieth of the rows have a twin in all columns, which folds hold
        out with them, a line "as rows recur here" is for rows whose twins are known.

        Where targets are known by half, the first row also has, in three more columns, how right
        its predicted distributions were. ``brier``: the integrated Brier score with weights for
        censoring (Graf et al. 1999), over the times from the 10 % to the 90 % quantile of those
        that rows were last seen; ``brier_one_curve``: that of Kaplan and Meier's curve for all of
        these rows. ``calibration_p``: of a test, by ten bins of the predicted probabilities (Haider
        et al. 2020), that rows predicted short, middle and long are each as often in every bin as
        the others. Each fold is judged by the residuals of the other folds. NaN where it cannot be
        told: the Brier score where a range or an upper limit is within these times, the test for
        fewer than 36 rows or groups, both for fewer than two folds.
        """
        import pandas as pd

        check_is_fitted(self, "kernel_")
        names = pd.Index([line.kind.name for line in self._new_rows], name="new rows")
        columns = ("score", "error", "n_rows", "n_groups")
        table = pd.DataFrame([line[1:5] for line in self._new_rows], names, columns)
        for name, value in self._held_out_measures().items():
            table[name] = [value, *[np.nan] * (len(table) - 1)]
        return table

    def _held_out_measures(self) -> dict[str, float]:
        """Return what else tells how right the predictions of rows held out were."""
        return {}


class EvidenceModel(Living, Sharing, TellsKinds, Explained, HeldOutScores):
    """Base of the estimators whose kernel is chosen by the evidence."""

    precisions: tuple[float, ...] = parameter(
        "Strengths λ of the prior that pulls the length scales of all columns together, strongest "
        "first.",
        default=PRECISIONS,
        rule=_PRECISIONS,
    )
    max_categories: int = parameter(
        "Maximum number of categories per column; the rarest are merged.",
        default=10_000,
        rule=integer(2),
    )
    min_frequency: float = parameter(
        "Categories in fewer training rows, or as a float in a smaller share of them, are merged.",
        default=1,
        kind="int or float",
    )
    kinds: Mapping[str, str] | None = parameter(
        "Kinds of columns by name, where they should not be detected: number, category, text, "
        "date, day first or ignore.",
        default=None,
        kind="dict",
    )
    tol: float = parameter(
        "The length scales are optimised until a step improves the evidence by less than this "
        "fraction.",
        default=1e-5,
        rule=number(least=0.0),
    )
    max_iter: int = parameter(
        "Maximum number of steps for the length scales.", default=200, rule=COUNT
    )
    n_landmarks: int | str = parameter(
        "Maximum number of landmarks above 5,000 rows: 500 are doubled while the validation score "
        'improves. "auto" is 4,000, and for a million rows 2,000.',
        default="auto",
        rule=_LANDMARKS,
    )
    warp: bool = parameter(
        "Whether to also try power transforms (Box-Cox, Yeo-Johnson) of skewed columns and, in "
        "regression, of skewed targets such as prices, a Poisson likelihood for counts, and "
        "less weight for gross outliers among the targets; cross-validation decides. Outliers keep "
        "their weight with ``groups``, ``order`` or a splitter as ``cv``.",
        default=True,
        rule=FLAG,
    )
    monotone: Mapping[str | int, int] | None = parameter(
        "Columns, by name or place, that predictions rise with, 1, or fall with, -1, where the "
        "others stay as they are; of up to four columns of numbers or dates. Means, quantiles and "
        "probabilities are rearranged after the fit.",
        default=None,
        rule=SIGNS,
    )
    n_jobs: int | None = parameter("Number of processes for the folds.", default=None, rule=JOBS)
    verbose: int = parameter(
        "If positive, a line is printed for each stage.", default=0, rule=integer()
    )

    kernel_: EvidenceKernel = fitted("EvidenceKernel", "The learned kernel, a value.")
    noise_: float = fitted("float", "Variance of the noise, in units of the target's variance.")
    relevance_: FloatArray = fitted(
        "ndarray of shape (n_dimensions,)",
        "Largest inverse length scale of each dimension along the path, weighted.",
    )
    dimensions_: list[Dimension] = fitted(
        "list of Dimension", "The dimensions of the kernel's inputs."
    )
    columns_: list[ColumnPlan] = fitted("list of ColumnPlan", "What was done with each column.")
    encoder_: ColumnEncoder = fitted("ColumnEncoder", "Encodes tables as inputs of the kernel.")
    path_weights_: FloatArray = fitted(
        "ndarray", "Weights of the models of the path, and of the Gaussian kernels after it."
    )
    certificate_: EvidenceCertificate = fitted(
        "EvidenceCertificate", "What is proved, and what is not."
    )
    result_: Result = fitted("Result", "How the fit ended; no lower bound is claimed.")
    n_iter_: int = fitted("int", "Evaluations of the evidence on all rows.")

    if TYPE_CHECKING:
        _monotone: Monotone | None = fitted("", "")

    def _new_task(self, y: object) -> Task:
        """Return what these parameters, and the form of the targets, say of them.

        None was read yet.
        """
        raise NotImplementedError

    def fit(
        self,
        X: Table | Batches,
        y: object = None,
        sample_weight: object = None,
        *,
        groups: object = None,
        order: object = None,
        slopes: object = None,
        new: str | None = None,
    ) -> Self:
        """Learn the kernel and what predicts with it.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns), or Batches
            A pandas or polars DataFrame, an array or a sparse matrix, with numbers, text,
            booleans, dates and missing values as they are. `Batches` of a table larger than memory
            name their targets and weights; with a dask array or DataFrame, y and sample_weight
            are dask arrays too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets, of any size; several share the kernel. Labels of any kind for a
            classifier, two classes or more. A regressor also takes targets that are known by half:
            cells such as ``"<0.5"``, ``"36+"`` and ``"3-5"``; two columns, or fields, ``low`` and
            ``high``, infinite where there is no limit; or an event and a time, the two fields of
            scikit-survival's structured arrays or two columns of which the event is boolean, or yes
            and no.
        sample_weight : array-like of shape (n_samples,), optional
            Divides the variance of a row's noise: a weight of 2 counts the row twice. A common
            factor has no effect.
        groups : str, list of str or array-like of shape (n_samples,), optional
            Name of a column, or group of each row, such as the patient of a visit. Whole groups
            are then held out, so the score is for rows of new groups. If a column names them, each
            group has an intercept of its own, which predictions for known groups use. "rows alike"
            groups near-duplicate rows, such as visits of a patient whose number is not known.
            A fold learns from no copy of a row that it holds out, whatever its group is called,
            unless rows recur in every group. A list names columns of several groups, such as pupils
            and their schools, crossed or nested: each has an intercept of its own, whose variance
            the evidence learns, and the first is held out.
        order : str or array-like of shape (n_samples,), optional
            Name of a column of numbers or dates, or a time for each row. Blocks of the later half
            are then held out, each predicted from the rows before it; with ``groups`` rows of known
            and new groups as they come there. `held_out_` then has a line for known and new groups,
            now and later, and intervals are those of each row's kind.
        slopes : str or list of str, optional
            Columns of numbers whose effect differs by the groups that ``groups`` names first. It
            stays where rows of known groups, held out, are predicted better with it, by more than a
            standard error, and `certificate_` says what was found. For at most 5,000 rows.
        new : str, optional
            Which of several groups is held out, in place of the first.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_by(fit_table, X, y, sample_weight, groups, order, slopes, new)

    @property
    def _predicts(self) -> ExactPredictor | LandmarkPredictor | MonotonePredictor:
        """What predicts: the predictor as it was fitted, or rearranged."""
        # a model of an older file has none
        monotone: Monotone | None = getattr(self, "_monotone", None)
        if monotone is None:
            return self._predictor
        return monotone.of(self._predictor, self._task)

    @property
    def _predicts_means(self) -> Any:
        """What predicts means: rows that were learned late need not be settled for it.

        But grids follow from all that the model knows.
        """
        return self._mean_predictor if getattr(self, "_monotone", None) is None else self._predicts

    def _encoded(self, X: Table, *, folds: bool = False) -> Encoded:
        check_is_fitted(self, "kernel_")
        return self.encoder_.transform(X, estimator=self, folds=folds)

    def _warn_of_extrapolation(self, encoded: Encoded) -> None:
        """Warn of rows with numbers far beyond the range of training, and name their columns."""
        beyond = self.encoder_.outside(encoded, FAR)[:, : encoded.numeric.shape[1]]
        n_rows = int(beyond.any(axis=1).sum())
        if not n_rows:
            return
        counts: dict[str, int] = {}
        for each, count in zip(self.dimensions_, beyond.sum(axis=0).tolist(), strict=False):
            counts[each.source] = max(count, counts.get(each.source, 0))
        most = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
        named = ", ".join(map(repr, most[:3])) + (", …" if len(most) > 3 else "")
        lie = "lies" if n_rows == 1 else "lie"
        warn(
            f"{n_rows} of {len(beyond)} rows {lie} beyond the training rows, by more than a "
            f"quarter of the range of {named}: predictions go on as the model does there, and are "
            "less reliable",
            ExtrapolationWarning,
        )

    def encode(self, X: Table) -> FloatArray:
        """Return the rows that `kernel_` takes: numbers, then codes of categories.

        `X` of shape (n_samples, n_columns). Returns shape (n_samples, n_dimensions): equal to X
        where every column is numbers without missing values.
        """
        encoded = self._encoded(X)
        return np.hstack([encoded.numeric, encoded.codes.astype(np.float64)])

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_
        return lambda: diagram() + (fit_html(self) if hasattr(self, "kernel_") else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "kernel_"):
            shown["text/html"] += fit_html(self)
        return shown

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # scikit-learn's table reads every property, and importances cost a tenth of a fit
        kept = {name: value for name, value in vars(self).items() if name.endswith("_")}
        return Estimator._get_fitted_attr_html(SimpleNamespace(**kept), doc_link)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags
