"""Estimators that learn new rows and forget some, with the kernel that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.arrays import Index
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.exceptions import warn
from sklearn.utils.validation import check_is_fitted

from ..exact import ExactPredictor
from ..large.again import kept_of
from ..large.censored import CensoredLandmarks
from . import pairs
from .forgetting import Forgotten, places_to_forget
from .reading import read_new
from .relearn import told_by_update, was_said, with_relearn
from .state import LivingModel, Unsettled

if TYPE_CHECKING:
    from ..columns import ColumnEncoder
    from ..large.landmarks import LandmarkPredictor

# what is worked out when it is first asked for; of a model that learned rows `_unsettled_` has the
# rest, which another fit drops as it does all attributes of that form
_SETTLED = frozenset(
    (
        "_predictor", "_task", "_new_rows", "_owner", "_importance", "_living", "certificate_",
        "held_out_score_", "held_out_error_", "held_out_prediction_", "held_out_fold_",
    )
)  # fmt: skip


def why_it_stays(predictor: ExactPredictor | LandmarkPredictor) -> str:
    """Return, as a sentence without its end, why a model without its rows takes and loses none."""
    if predictor.rows.further:
        return "no rows join or leave a model with slopes or several groups: their names may change"
    if isinstance(predictor, CensoredLandmarks):
        return "no rows join or leave a model of more than 2,000 targets known by half"
    if isinstance(predictor, ExactPredictor):
        return "this model kept nothing of how its rows were read, so that none can join or leave"
    if predictor.kept is None:
        why = (
            "its table was read in parts"
            if predictor.levels is None
            else ("its groups have levels and more than 50,000 rows")
        )
        return (
            f"this model did not keep sums of all its rows, so that none can join or leave: {why}, "
            "or the fit was cut short"
        )
    return (
        "this model kept only sums of its rows, so that none can join or leave: its table was read "
        "in parts, or rows that are alike were held out together"
    )


class Living:
    """Estimators whose kernel stays while rows come and go."""

    if TYPE_CHECKING:
        memory_limit: int | None
        encoder_: ColumnEncoder
        fit: Any
        _predictor: ExactPredictor | LandmarkPredictor
        _owner: Index

    def update(
        self,
        X: Table,
        y: object,
        sample_weight: object = None,
        *,
        groups: object = None,
        order: object = None,
    ) -> Self:
        """Learn new rows with the kernel that the model has; those it knows stay.

        Predictions are those of a fit to all rows with this kernel. Scores, intervals and kinds of
        new rows follow when they are first asked for. Categories that are new get a place of their
        own. Where a row equals one that the model has, it counts once more. The first time after a
        model was loaded takes longer, for no file has the factor that new rows are added to. A
        `RelearnWarning` says once when the kernel suits the newest rows so much less that another
        fit is worth it.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            With the columns of training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets in a form that `fit` takes. Labels must be classes that the fit had.
        sample_weight : array-like of shape (n_samples,), optional
            In the unit of those that `fit` got.
        groups, order : str or array-like of shape (n_samples,), optional
            Where `fit` got them; by default the column that it named.

        Returns
        -------
        self : object
            The estimator; where something is refused, it is as it was.

        Raises
        ------
        ValueError
            If columns, targets or weights are not as in training, or the file of the model is of a
            version that kept too little.
        """
        model, before = self._living_model(), vars(self).get("_unsettled_")
        new = read_new(model, self.encoder_, X, y, sample_weight, groups, order)
        with self._limits():
            changed = ways_of(model.predictor).updated(model, new, before)
            told = told_by_update(before or model, changed)
            said = was_said(before or model) or told is not None
            self._assign(replace(changed, said=said))
        if told is not None:
            warn(told)
        return self

    def partial_fit(
        self,
        X: Table,
        y: object,
        sample_weight: object = None,
        *,
        groups: object = None,
        order: object = None,
    ) -> Self:
        """Fit at first, and then `update`: what scikit-learn calls learning in parts.

        The kernel is that of the first rows: give as many as tell how the columns matter. The
        parameters are those of `fit`.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "kernel_"):
            self.fit(X, y, sample_weight, groups=groups, order=order)
            return self
        return self.update(X, y, sample_weight, groups=groups, order=order)

    def refit(
        self,
        X: Table,
        y: object,
        sample_weight: object = None,
        *,
        groups: object = None,
        order: object = None,
    ) -> Self:
        """Learn these rows instead of those that the model has, with the kernel that it has.

        What `update` and `forget` lead to, worked out from the rows alone. The parameters are those
        of `update`.

        Returns
        -------
        self : object
            The estimator.
        """
        model, encoder = self._living_model(), self.encoder_
        new = read_new(model, encoder, X, y, sample_weight, groups, order)
        with self._limits():
            self._assign(with_relearn(ways_of(model.predictor).refitted(model, new)))
        return self

    def forget(
        self,
        rows: Any = None,
        *,
        where: Any = None,
        X: Table | None = None,
        y: object = None,
        sample_weight: object = None,
        **columns: Any,
    ) -> Self:
        """Forget rows: the model becomes that of the others with the kernel that it has.

        No byte of the saved model depends on them, but for what the kernel was learned from: a
        model of the others with this kernel has the same file. What the kernel still has of them
        is in ``certificate_.forgotten``.

        Parameters
        ----------
        rows : int or array-like of int, optional
            Places of rows among those that the model has, in the order in which they were given:
            that of ``held_out_prediction_``. Later rows move up.
        where : dict, optional
            Values of columns, or a list of values, as ``{"patient": "17"}``; ``None`` is a missing
            one. "groups" stands for the groups that were given row by row. All must hold.
        X, y, sample_weight : table, array-like, array-like, optional
            The rows themselves; with ``groups`` and ``order`` as the fit got them, where it did. A
            model of more than 50,000 rows keeps their sums and takes these alone; what it forgets
            is subtracted, so that last digits of the sums still depend on it until a `refit`.
        **columns
            As `where`: ``patient="17"``.

        Returns
        -------
        self : object
            The estimator.
        """
        _refuse_half(X, y, where)
        model = self._living_model(settled=True)
        given = None
        if X is not None:
            groups, order = (columns.pop(name, None) for name in ("groups", "order"))
            given = read_new(model, model.encoder, X, y, sample_weight, groups, order, alone=True)
        conditions = {**(where or {}), **columns}
        if not model.keeps_rows:
            if given is None or rows is not None or conditions:
                raise ValueError(
                    "this model keeps sums of its rows and not all rows: give those to forget "
                    "themselves, forget(X=..., y=...)"
                )
            with self._limits():
                self._assign(ways_of(model.predictor).taken_away(model, given.given))
            return self
        places = places_to_forget(model, rows, conditions, given)
        with self._limits():
            attributes = with_relearn(ways_of(model.predictor).without(model, places))
            certificate, after = attributes["certificate_"], attributes["_predictor"]
            kept = Forgotten.of(model.predictor, after, model.owner[places], model.state.seconds)
            self._assign(attributes | {"certificate_": replace(certificate, forgotten=kept)})
        return self

    def _living_model(self, *, settled: bool = False) -> LivingModel:
        """Return the parts of the model before rows that are not settled, or with them."""
        check_is_fitted(self, "kernel_")
        unsettled = vars(self).get("_unsettled_")
        if unsettled is not None and not settled:
            before: LivingModel = unsettled.model
            return before
        if vars(self).get("_from_sums_"):
            raise ValueError(
                "this model was merged from sums and has no rows that others could join or leave: "
                "update the models of the places, and merge their sums again"
            )
        if not hasattr(self, "_living"):
            raise ValueError(
                "this model was saved by a version that kept too little to learn new rows: fit it "
                "again"
            )
        if self._living is None:
            raise ValueError(f"{why_it_stays(self._predictor)}: fit all rows instead")
        return LivingModel.of(self)

    @contextmanager
    def _limits(self) -> Iterator[None]:
        """Limit the memory, and take one thread: the same bits whatever the number of cores."""
        with config_context(memory_limit=self.memory_limit), one_blas_thread():
            yield

    def _assign(self, changed: dict[str, Any] | Unsettled) -> None:
        """Take what was found, in one assignment."""
        before = vars(self)
        if isinstance(changed, Unsettled):
            kept = {name: value for name, value in before.items() if name not in _SETTLED}
            encoder = changed.encoder
            dimensions = list(encoder.dimensions_)
            after = kept | {"_unsettled_": changed, "encoder_": encoder, "dimensions_": dimensions}
        else:
            after = {name: each for name, each in before.items() if name != "_unsettled_"} | changed
        # in one order, whatever came first: files of equal models are equal
        self.__dict__ = {name: after[name] for name in sorted(after)}

    def _settle(self) -> None:
        """Work out all that follows from rows that were learned."""
        unsettled = vars(self).get("_unsettled_")
        if unsettled is None:
            return
        with self._limits():
            attributes = with_relearn(ways_of(unsettled.model.predictor).settled(unsettled))
            self._assign(attributes)
        found = attributes["certificate_"].relearn
        if found.is_worth_it and not unsettled.said:
            warn(found.warning(unsettled.model.state.seconds))

    @property
    def _mean_predictor(self) -> Any:
        """What predicts means: what was worked out at once, if that is all there is."""
        unsettled = vars(self).get("_unsettled_")
        quick = None if unsettled is None else unsettled.quick
        return self._predictor if quick is None else quick

    def __getattr__(self, name: str) -> Any:
        if name in _SETTLED and vars(self).get("_unsettled_") is not None:
            self._settle()
            if name in vars(self):
                return vars(self)[name]
        # once more, as a property that raised has told why
        return object.__getattribute__(self, name)

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        state: Any = super().__getstate__()
        return dict(state)


def _refuse_half(X: object, y: object, where: object) -> None:
    """Raise where rows to be forgotten are told by half, or their columns not by name."""
    if (X is None) != (y is None):
        given, absent = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"{absent} is missing: with {given}, give the rows to forget as forget(X=..., y=...)"
        )
    if where is not None and not isinstance(where, Mapping):
        raise TypeError(
            f"where must be a dict of values by column, such as {{'patient': '17'}}, got {where!r}"
        )


def ways_of(predictor: ExactPredictor | LandmarkPredictor) -> Any:
    """Return the module whose `updated`, `refitted`, `without`, `settled` are for a predictor.

    - ``updated(model, new, unsettled)`` returns `Unsettled` or attributes
    - ``refitted(model, new)`` and ``without(model, places)`` return attributes
    - ``settled(unsettled)`` returns attributes
    """
    if isinstance(predictor, ExactPredictor):
        return pairs
    from . import landmark_sums, landmarks

    return landmarks if kept_of(predictor).is_whole else landmark_sums
