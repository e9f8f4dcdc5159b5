"""What a model file says of itself, again from the rows that the model has now.

Nothing of it is carried over from rows that may have gone: what belongs to the kernel (columns,
encoding, the search) stays as the fit wrote it, what follows from rows is worked out anew, and what
only the table of the fit could tell (notes, ranges of columns, other models) is left out. So the
header is the same whether rows were forgotten or were never there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.evidence.findings import new_rows_warnings
from kernelweave.kernels_core.arrays import Index

from ..console import naming_options_of
from ..errors import CommandError
from ..fitting import expected_on_new_rows, text_of_warning
from ..machines import encoder_of
from ..models import Model
from ..models.header import Comparison, versions
from ..models.model import certificate_of, described
from ..scoring.held_out import HeldOut, held_out_by, scoring_weights
from .known import KnownTargets

# in place of counts and examples of rows that may have gone
_HALF_KNOWN = "some targets are limits or ranges"


def followed(model: Model, known: KnownTargets) -> Model:
    """Return the model with the header that belongs to the rows it has now.

    `known`: their targets, in the order in which the model was given them. Raises CommandError
    where a row that is held out has no target there.
    """
    n_samples = len(model.machine.held_out_fold_)
    if n_samples != len(known):
        raise CommandError(
            f"the file says {len(known)} rows and the model has {n_samples}: fit it again"
        )
    return _with_header(model, n_samples, kernel_rows(model), _held_out(model, known))


def of_sums(model: Model, n_samples: int, n_kernel: int) -> Model:
    """Return the model with the header of a model of sums, which tell no row.

    `n_samples`: rows that were summed; `n_kernel`: rows that the kernel was learned from.
    """
    return _with_header(model, n_samples, n_kernel, None)


def _with_header(model: Model, n_samples: int, n_kernel: int, held_out: HeldOut | None) -> Model:
    machine, header = model.machine, model.header
    with naming_options_of("fit"):
        warned = new_rows_warnings(machine._task, machine._new_rows)
        columns = encoder_of(model.estimator).report_
        return replace(
            model,
            header=replace(
                header,
                n_samples=n_samples,
                kernel_rows=n_kernel,
                certificate=certificate_of(machine.result_),
                # without what its cells were
                prepared=tuple(described(each, {"range": "", "missing": 0}) for each in columns),
                held_out=None if held_out is None else held_out.as_json(),
                comparison=Comparison(ours=header.comparison["ours"], rows=[]),
                importance=(),
                # sums of classes tell no score
                new_rows=tuple(
                    row for row in expected_on_new_rows(machine) if np.isfinite(row["score"])
                ),
                warning=text_of_warning(warned[0]) if warned else "",
                notes=(),
                half_known=_half_known(model),
                versions=versions(type(machine).__module__),
            ),
        )


def kernel_rows(model: Model) -> int:
    """Return how many rows the kernel of a model that lives was learned from."""
    return int(model.machine._living.n_seen)


def _held_out(model: Model, known: KnownTargets) -> HeldOut | None:
    """Return the rows that folds hold out, with their targets."""
    machine = model.machine
    fold = machine.held_out_fold_
    if not known.told[fold >= 0].all():
        raise CommandError("the file does not say the targets of all rows held out: fit it again")
    told = known.told
    class_weight = getattr(machine, "class_weight", None)
    weight = np.zeros(len(known))
    weight[told] = scoring_weights(known.weight[told], class_weight, known.truth[told])
    return held_out_by(
        model.estimator,
        known.truth,
        model.header.task,
        weight,
        _parts(model, fold),
        None if known.ends is None else known.ends.T,
    )


def _parts(model: Model, fold: Index) -> Index | None:
    """Return groups or blocks of time that standard errors are over, as `Folds.parts`."""
    asked = model.header.asked
    if asked.get("order") is not None or asked.get("cv") == "time":
        return np.asarray(fold)
    if asked.get("groups") is None:
        return None
    owner = model.machine._owner
    groups = np.where(owner < 0, -1, model.machine._predictor.rows.groups[owner])
    # numbers by the first row of each, whatever the groups are called
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes.ravel()]


def _half_known(model: Model) -> str:
    """Return what is known of targets that are known by half, without what rows said."""
    if not model.header.half_known:
        return ""
    event = model.event
    return (
        _HALF_KNOWN if event is None else f"the target is the time up to the event {str(event)!r}"
    )
