"""What a model file says about itself, readable without loading the model."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, TypedDict, get_args, get_origin, get_type_hints

from ..errors import CommandError
from ..scoring.comparison import Row
from ..scoring.held_out import HeldOut

# the algorithm of kernels that the evidence chose
EVIDENCE = "evidence"
# Of the model file; larger where an older program could not read it.
FORMAT = 5
# of what older programs read as well: all models but those of targets known by half
_FORMAT_OF_KNOWN = 4
_PACKAGES = (
    *("kernelweave-kernels-core", "kernelweave-evidence", "kernelweave-workbench"),
    *("scikit-learn", "numpy", "skops"),
)


def versions(module: str = "") -> dict[str, str]:
    """Return the versions of what a model depends on, the package of its module among them."""
    package = ["-".join(module.split(".")[:2]).replace("_", "-")] if module else []
    by_name = {}
    for name in dict.fromkeys([*package, *_PACKAGES]):
        try:
            by_name[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            by_name[name] = "unknown"
    return by_name


class Column(TypedDict):
    """A column: what was ``seen`` in it, whether it is used (``done``), what is worth knowing."""

    name: str
    seen: str
    range: str
    missing: int
    done: str
    sentence: str


class Importance(TypedDict):
    """What a column is worth."""

    name: str
    value: float
    error: float


class _Expected(TypedDict):
    name: str
    score: float
    error: float
    n_rows: int
    n_groups: int


class NewRows(_Expected, total=False):
    """What to expect of a kind of new rows; ``worse``: surely less than of those held out.

    Of targets known by half also measures of predicted distributions, see ``held_out_``.
    """

    worse: bool
    brier: float
    brier_one_curve: float
    calibration_p: float


class Comparison(TypedDict):
    """The model's title, empty without others, and other models on the same rows."""

    ours: str
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Header:
    """What a model file stores in addition to the estimator.

    Attributes
    ----------
    columns : tuple of str
        Features in the order of the estimator.
    target : str
        Name of what is predicted.
    task : str
        ``"classification"`` or ``"regression"``.
    algorithm : str
        Algorithm that learned the kernel.
    estimator : str
        Class name.
    source : str
        The data that the kernel was learned from.
    n_samples : int
        Number of rows it was fitted on.
    kernel_rows : int
        Number of rows that its kernel was learned from, where these are not the rows of the model:
        it was updated, forgot rows, or was given the kernel of another. 0 after a fit.
    classes : tuple or None
        Labels, for classification.
    model : str
        Its name on the command line.
    certificate : dict
        ``lower_bound, upper_bound, gap, status, n_iter`` of the fit.
    prepared : tuple of Column
        Each column.
    held_out : dict or None
        Cross-validated predictions, see `scoring.HeldOut`.
    comparison : Comparison
        Other models on the same rows.
    metric : str or None
        Scorer of scikit-learn used for the scores; ``None`` for R², accuracy or concordance.
    importance : tuple of Importance
        Permutation importance of the columns, largest first.
    new_rows : tuple of NewRows
        Expected score for each kind of new rows; rows like the validation rows first.
    warning : str
        A warning if another kind of rows is predicted significantly worse; otherwise empty.
    notes : tuple of str
        Findings about the table, one sentence each.
    asked : dict
        Options of the fit that concern the table: ``kinds`` of columns, and names of the
        columns of ``weights``, ``groups`` and ``order``; ``cv``, where folds are by one of these;
        ``event``, ``column`` and ``value`` of what says which times have ended.
    half_known : str
        What is known of targets that are limits, ranges, or times up to an event, in words; empty
        where all are known. Otherwise the score is the concordance, and predictions are medians.
    units : dict of str to str
        Units of columns, including the target.
    versions : dict of str to str
        Versions of the packages that wrote the file.
    """

    columns: tuple[str, ...]
    target: str
    task: str
    algorithm: str
    estimator: str
    source: str
    n_samples: int
    kernel_rows: int = 0
    classes: tuple[object, ...] | None = None
    model: str = ""
    certificate: dict[str, object] = field(default_factory=dict)
    prepared: tuple[dict[str, Any], ...] = ()
    held_out: dict[str, object] | None = None
    comparison: Comparison = field(default_factory=lambda: Comparison(ours="", rows=[]))
    metric: str | None = None
    importance: tuple[dict[str, Any], ...] = ()
    new_rows: tuple[dict[str, Any], ...] = ()
    warning: str = ""
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)
    half_known: str = ""
    units: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def is_estimate(self) -> bool:
        """Whether the kernel was chosen by the evidence, of which nothing is proved."""
        return self.algorithm == EVIDENCE

    def to_json(self) -> str:
        """Return the header as a JSON object."""
        values = {**asdict(self), "format": FORMAT if self.half_known else _FORMAT_OF_KNOWN}
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Return the header that a JSON object describes; unknown keys are passed over.

        Raises CommandError if the layout is newer than this program; ValueError, TypeError or
        KeyError if it is no header.
        """
        raw = json.loads(text)
        if not isinstance(raw, dict) or not isinstance(raw.get("format"), int):
            raise ValueError("the header has no format")
        if raw["format"] > FORMAT:
            raise CommandError(
                f"the model has format {raw['format']}, this program reads up to {FORMAT}: upgrade "
                f"kernelweave-workbench"
            )
        field_names = {item.name for item in fields(cls)}
        values = {key: value for key, value in raw.items() if key in field_names}
        parts = {"prepared": Column, "importance": Importance, "new_rows": NewRows}
        rows = [(kind, row) for name, kind in parts.items() for row in values.get(name, ())]
        rows += [(Row, row) for row in values.get("comparison", {"rows": ()})["rows"]]
        if not (_is_of(cls, values) and all(_is_of(kind, row) for kind, row in rows)):
            raise ValueError("the header has values of other types than it should have")
        if values.get("held_out") is not None:
            HeldOut.from_json(values["held_out"])
        for name in ("columns", "classes", "prepared", "new_rows", "importance", "notes"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        return cls(**values)


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value of JSON is of a type; of a class with named values, by its annotations."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return True
    if origin is UnionType:
        return any(_is_of(each, value) for each in inner)
    if origin in (tuple, list):
        return isinstance(value, tuple | list) and all(_is_of(inner[0], each) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(inner[1], each) for each in value.values())
    if is_dataclass(kind) or hasattr(kind, "__required_keys__"):
        hints = get_type_hints(kind)
        may_lack = {
            each.name
            for each in (fields(kind) if is_dataclass(kind) else ())
            if (each.default, each.default_factory) != (MISSING, MISSING)
        } | getattr(kind, "__optional_keys__", frozenset())
        return (
            isinstance(value, dict)
            and hints.keys() - may_lack <= value.keys() <= hints.keys()
            and all(_is_of(hints[name], each) for name, each in value.items())
        )
    numbers = (int, float) if kind is float else kind
    return isinstance(value, numbers) and (kind is bool or not isinstance(value, bool))
