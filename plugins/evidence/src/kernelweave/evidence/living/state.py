"""What a fitted estimator keeps, beside its predictor, to learn new rows and to forget some.

The kernel stays as the fit chose it: views of the columns, scales, units of the targets and of the
weights, strengths of a likelihood. All else is a function of the rows, in the order in which they
were given, of that kernel and of a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, RandomState
from numpy.typing import NDArray

from ..new_rows import Kind
from ..panels import RowKinds, names_of_kinds

if TYPE_CHECKING:
    from ..columns import ColumnEncoder
    from ..exact import ExactPredictor
    from ..findings import EvidenceCertificate
    from ..large.landmarks import LandmarkPredictor
    from ..monotone.predictor import Monotone
    from ..rows import Rows
    from ..tasks import Task

# of a group; None where a row has none, and is a group of its own
Label: TypeAlias = str | int | float | None


class HeldOutBy(NamedTuple):
    """How rows are held out, as the user said when the kernel was learned.

    - `kind`: the rows that are held out then
    - `groups`, `order`: the column that has them; empty where they were given row by row
    - `by_groups`, `by_order`, `by_splitter`: which of these it was; none of them is at random
    - `in_order`: whether rows held out come after those learned from
    - `alike`: whether groups are those of near copies, which no column names
    - `by_place`: whether the order is that of the rows as they were given, from 0 on
    """

    kind: Kind
    groups: str = ""
    order: str = ""
    by_groups: bool = False
    by_order: bool = False
    by_splitter: bool = False
    in_order: bool = False
    alike: bool = False
    by_place: bool = False

    @property
    def random(self) -> bool:
        """Whether nothing but a splitter says how rows are held out."""
        return not (self.by_groups or self.by_order)

    @property
    def is_panel(self) -> bool:
        """Whether rows have groups and an order both."""
        return self.by_groups and self.by_order

    @property
    def row_kinds(self) -> RowKinds:
        """What rows of known and new groups, now and later, are called."""
        groups, order = (
            name if given else None
            for given, name in ((self.by_groups, self.groups), (self.by_order, self.order))
        )
        return names_of_kinds(groups, order, self.kind.name)


@dataclass(frozen=True, eq=False)
class RowsAsGiven:
    """Rows as the user gave them, encoded, in his order: what may differ in one that is merged.

    - `numeric` of shape (n, n_numeric), with the components of texts as folds know them; `codes` of
      shape (n, n_categories)
    - `targets` of shape (n_outputs, n); `ends` of shape (2, n) where they are known by half
    - `mass` of shape (n,): weights in the user's unit, those of the classes among them; a row of
      weight 0 keeps its place, and nothing else of it is kept
    - `groups`: label of each row's group, `times` of shape (n,): its moment; where there are any
    """

    numeric: FloatArray
    codes: NDArray[np.int64]
    targets: FloatArray
    mass: FloatArray
    groups: tuple[Label, ...] | None = None
    times: FloatArray | None = None
    ends: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.numeric)

    def take(self, places: Index) -> RowsAsGiven:
        """Return some of the rows."""
        groups = None if self.groups is None else tuple(self.groups[i] for i in places.tolist())
        times = None if self.times is None else self.times[places]
        ends = None if self.ends is None else np.ascontiguousarray(self.ends[:, places])
        return RowsAsGiven(
            self.numeric[places], self.codes[places],
            np.ascontiguousarray(self.targets[:, places]), self.mass[places], groups, times, ends,
        )  # fmt: skip

    def and_others(self, other: RowsAsGiven) -> RowsAsGiven:
        """Return these rows and, behind them, others that are read alike."""
        groups = None if self.groups is None else self.groups + (other.groups or ())
        times, ends = (
            None if one is None or two is None else np.concatenate([one, two], axis=-1)
            for one, two in ((self.times, other.times), (self.ends, other.ends))
        )
        return RowsAsGiven(
            np.concatenate([self.numeric, other.numeric]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.targets, other.targets], axis=1),
            np.concatenate([self.mass, other.mass]),
            groups,
            times,
            ends,
        )

    def recoded(self, codes: Sequence[Index]) -> RowsAsGiven:
        """Return the rows with other codes of categories; `codes`: what each becomes, by column."""
        columns = [new[old] for new, old in zip(codes, self.codes.T, strict=True)]
        if not columns:
            return self
        return replace(self, codes=np.ascontiguousarray(np.column_stack(columns), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class LivingState:
    """What is kept of a fit, beside what predicts.

    - `held_out_by`: how rows are held out
    - `labels`: of each group by its number in the rows, where there are groups
    - `starts`: moments at which blocks begin that are held out one after the other
    - `unit`: by what two numbers weights in the user's unit are divided, one after the other
    - `mass` of shape (n_given,): these weights; ``None`` where all are 1
    - `apart`: given rows that differ by rounding from those that they were merged to, and
      `apart_numeric`, `apart_targets`: what they were
    - `shared`: whether one metric serves all folds
    - `n_seen`: rows that the kernel was learned from; `seconds`: processor time of that
      fit, 0 in a file
    - `draws` of shape (625,): of the random numbers that the last step begins with
    - `joined` of shape (n_rows,): rows of a predictor of all pairs that came after the kernel was
      learned, whose folds and trust follow from the others; ``None`` where there are none
    """

    held_out_by: HeldOutBy
    labels: tuple[Label, ...] | None
    starts: tuple[float, ...]
    unit: tuple[float, float]
    mass: FloatArray | None
    apart: Index
    apart_numeric: FloatArray
    apart_targets: FloatArray
    shared: bool
    n_seen: int
    seconds: float
    draws: NDArray[np.uint32]
    joined: NDArray[np.bool_] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # fits of the same rows write the same file, however long they took
        return {**vars(self), "seconds": 0.0}

    @property
    def naming(self) -> tuple[Label, ...] | None:
        """The labels of groups, where these are a part of what a row holds."""
        return None if self.held_out_by.alike else self.labels

    def random_state(self) -> np.random.RandomState:
        """Return the random numbers that the last step of the fit began with."""
        out = np.random.RandomState(0)
        out.set_state(("MT19937", self.draws[:-1], int(self.draws[-1]), 0, 0.0))
        return out


@dataclass(frozen=True, eq=False)
class LivingModel:
    """A fitted estimator's parts, as the functions of this folder take them.

    `owner` of shape (n_given,): the place of each row given so far among `rows`, −1 of none;
    `estimator`: in whose name messages speak.
    """

    predictor: ExactPredictor | LandmarkPredictor
    task: Task
    encoder: ColumnEncoder
    owner: Index
    state: LivingState
    certificate: EvidenceCertificate
    random_state: RandomState
    estimator: Any = field(repr=False)

    @property
    def monotone(self) -> Monotone | None:
        """The columns that predictions rise or fall with."""
        found: Monotone | None = getattr(self.estimator, "_monotone", None)
        return found

    @classmethod
    def of(cls, estimator: Any) -> LivingModel:
        """Return the parts of a settled estimator; `_living`: of one that can live."""
        predictor, owner = estimator._predictor, estimator._owner
        kept = getattr(predictor, "kept", None)
        return cls(
            predictor, estimator._task, estimator.encoder_, owner if kept is None else kept.owner,
            estimator._living, estimator.certificate_, estimator.random_state, estimator,
        )  # fmt: skip

    @property
    def keeps_rows(self) -> bool:
        """Whether all rows are there, not their sums alone."""
        kept = getattr(self.predictor, "kept", None)
        return kept is None or bool(kept.is_whole)

    @property
    def rows(self) -> Rows:
        """The rows that `owner` tells the places among."""
        kept = getattr(self.predictor, "kept", None)
        rows: Rows = self.predictor.rows if kept is None else kept.rows
        return rows


class RowsToJoin(NamedTuple):
    """Rows that are read by the encoder and the task of a model.

    `encoder`: with the categories that are new; `given`: the rows, in its codes.
    """

    encoder: ColumnEncoder
    given: RowsAsGiven


@dataclass(frozen=True, eq=False)
class Unsettled:
    """A model that learned rows, of which only what point predictions need is worked out.

    - `model`: before that, settled
    - `encoder`: with all categories; `given`: all rows, in the codes of that encoder
    - `quick`: predicts, where that is known already: has `mean`, as predictors have
    - `said`: whether `update` said that learning again is worth it
    """

    model: LivingModel
    encoder: ColumnEncoder
    given: Any
    quick: Any = None
    said: bool = False
