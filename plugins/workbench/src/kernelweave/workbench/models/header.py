"""What a model file says about itself, readable without loading the model."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import CommandError

# Of the model file; larger where an older program could not read it.
FORMAT = 4
COLUMN = ("name", "seen", "range", "gaps", "done", "sentence")
_PACKAGES = (
    *("kernelweave-kernels-core", "kernelweave-evidence", "kernelweave-workbench"),
    *("scikit-learn", "numpy", "skops"),
)


def versions(module: str = "") -> dict[str, str]:
    """Return the versions of what a model depends on, the package of its module among them."""
    own = ["-".join(module.split(".")[:2]).replace("_", "-")] if module else []
    found = {}
    for name in dict.fromkeys([*own, *_PACKAGES]):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


@dataclass(frozen=True)
class Header:
    """What prediction and people need to know beside the estimator.

    Attributes
    ----------
    columns : tuple of str
        Features in the order of the estimator.
    target : str
        Name of what is predicted.
    task : str
        ``"classification"`` or ``"regression"``.
    algorithm : str
        What learned the kernel.
    estimator : str
        Class name.
    source : str
        The data it was fitted on.
    n_samples : int
        Rows of them.
    classes : tuple or None
        Labels, for classification.
    model : str
        What it is called on the command line.
    certificate : dict
        ``lower_bound, upper_bound, gap, status, n_iter`` of the fit.
    prepared : tuple of dict
        Each column: its ``name``, what was ``seen`` in it, its ``range`` and ``gaps``, whether it
        is used (``done``), and what is worth knowing (``sentence``).
    held_out : dict or None
        Predictions of rows that the fit did not see, see `scoring.HeldOut`.
    comparison : dict
        ``ours``, the model's title, and ``rows`` of other models on the same rows.
    metric : str or None
        The scorer of scikit-learn that judged; ``None`` for R² or accuracy.
    importance : tuple of dict
        What each column is worth: ``name``, ``value`` and ``error``, the strongest first.
    new_rows : tuple of dict
        What to expect of each kind of new rows: ``name``, ``score``, ``error``, ``n_rows``,
        ``n_groups``, the rows like those held out first.
    doubt : str
        What follows the expected score where another kind is surely predicted worse; else empty.
    notes : tuple of str
        What a person would ask about the table, a sentence each.
    asked : dict
        What the fit was told of the table beside its target: ``kinds`` of columns, and names of the
        columns of ``weights``, ``groups`` and ``order``; ``cv``, where folds are by one of these.
    units : dict of str to str
        The unit that every cell of a column had, the target among them.
    versions : dict of str to str
        Packages that wrote the file.
    """

    columns: tuple[str, ...]
    target: str
    task: str
    algorithm: str
    estimator: str
    source: str
    n_samples: int
    classes: tuple[object, ...] | None = None
    model: str = ""
    certificate: dict[str, object] = field(default_factory=dict)
    prepared: tuple[dict[str, Any], ...] = ()
    held_out: dict[str, object] | None = None
    comparison: dict[str, Any] = field(default_factory=dict)
    metric: str | None = None
    importance: tuple[dict[str, Any], ...] = ()
    new_rows: tuple[dict[str, Any], ...] = ()
    doubt: str = ""
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)

    def to_json(self) -> str:
        """Return the header as a JSON object."""
        values = {**asdict(self), "format": FORMAT}
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Return the header that a JSON object describes; unknown keys are passed over.

        Raises CommandError if the layout is newer than this program; ValueError or TypeError if it
        is no header.
        """
        raw = json.loads(text)
        if not isinstance(raw, dict) or not isinstance(raw.get("format"), int):
            raise ValueError("the header has no format")
        if raw["format"] > FORMAT:
            raise CommandError(
                f"the model has format {raw['format']}, this program reads up to {FORMAT}: upgrade "
                f"kernelweave-workbench"
            )
        known = {item.name for item in fields(cls)}
        values = {key: value for key, value in raw.items() if key in known}
        values["columns"] = tuple(map(str, values["columns"]))
        for name in ("classes", "prepared", "new_rows", "importance", "notes"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        rows = values.get("prepared", ())
        if not all(isinstance(row, dict) and set(row) == set(COLUMN) for row in rows):
            raise ValueError(f"the header has columns that are not described by {COLUMN}")
        return cls(**values)
