"""Cross-validate all models on the same folds of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from kernelweave.tables import Table, Target
from kernelweave.tables.data_checks import check_data
from kernelweave.tables.errors import did_you_mean

from .errors import CommandError, locate_cell_errors
from .fitting import FOLDS, WeightedModel
from .model_catalog import make_model, model_kind, model_title, models_for_task
from .roles import feature_columns, groups_held_out, read_division, read_weights
from .scoring.comparison import (
    CrossValidatedModel,
    Row,
    cross_validate_models,
    skipped_models,
    verdict,
)
from .scoring.held_out import folds_by
from .scoring.metrics import Metric, check_metric, has_rare_class, ranking_of
from .scoring.other_models import ComparedModel, other_models
from .scoring.scores import measure_name


def compare_table(
    table: Table,
    target: Target,
    *,
    names: Sequence[str] | None,
    cv: int | str | None = None,
    groups: str | None = None,
    order: str | None = None,
    metric: str | None = None,
    drop: Sequence[str],
    weights: str | None,
    max_time: float | None,
    seed: int,
    on_note: Callable[[str], None],
) -> dict[str, object]:
    """Cross-validate models on the same folds, best first.

    - `names`: names of models; by default all installed ones for the task
    - `cv`, `groups`, `order`: how rows are held out, see `read_division`; of several groups the
      first are held out, and the evidence kernel has effects of all
    - `metric`, `drop`, `weights`: as of `fit_table`
    - `max_time`: time limit of a fit in seconds; a model of another library that takes longer over
      all folds is skipped
    - `on_note`: called with each note on the table, and for each model that cannot be fitted

    Returns: ``models``, the best first, each with its score, its error, how far it is behind the
    best on the same rows, and its seconds; and the verdict on the evidence kernel. Raises
    CommandError if a name is not known, or no model can be fitted.
    """
    if target.ends is not None:
        raise CommandError(
            f"{table.source}: {target.reason}, and of the models that are compared only the "
            "evidence kernel learns from such targets: use kernelweave fit"
        )
    columns = feature_columns(table, target.column, drop, weights)
    held, beside = groups_held_out(table, columns, "evidence", groups, None, None)
    division = read_division(table, columns, cv, held, order)
    n_folds = cv if isinstance(cv, int) else FOLDS
    named = {key: value for key, value in division.items() if isinstance(value, str)}
    if beside:
        named["groups"] = beside["groups"]
    models = _chosen(names, target, max_time, n_folds, weights is not None, named)
    X, y = table.inputs(columns), target.values
    weight = None if weights is None else read_weights(table, weights)
    counts = np.ones(len(y)) if weight is None else weight
    for sentence in check_data(table, columns, target, later="order" in division):
        on_note(sentence)
    judge = check_metric(metric, y, target.task)
    with locate_cell_errors(table):
        folds = folds_by(X, y, target.task, n_folds, seed, weight=counts, **division)
    refused: list[tuple[ComparedModel, Exception]] = []
    done = list(
        cross_validate_models(
            models, X, y, target.task, weight=counts, folds=folds, seed=seed,
            on_failure=lambda *pair: refused.append(pair),
        )
    )  # fmt: skip
    rows = _ranked(done, judge, refused)
    for sentence in skipped_models(refused):
        on_note(sentence)
    if not rows:
        what = f"be fitted to {table.source}" if not done else f"be judged by --metric {metric}"
        raise CommandError(f"none of the models can {what}")
    best = rows[0]
    return {
        "data": table.source,
        "target": target.column,
        "task": target.task,
        "measure": metric or measure_name(target.task),
        "unit": table.units.get(target.column, ""),
        "rare": target.task == "classification" and has_rare_class(Counter(y.tolist())),
        "rows": ": ".join(filter(None, [str(best.held_out), folds.kind])),
        "models": [_described(each, best, judge) for each in rows],
        "verdict": _verdict(rows, target.task, judge),
    }


def _chosen(
    names: Sequence[str] | None,
    target: Target,
    max_time: float | None,
    n_folds: int,
    weighted: bool,
    named: Mapping[str, object],
) -> list[ComparedModel]:
    """Return the models of these names, ours and others'.

    `named`: columns of groups and order, for models that read tables.
    """

    def make(name: str, task: str, seed: int) -> WeightedModel:
        levels = target.levels if model_kind(name).orders_classes else None
        given = {"max_time": max_time, "levels": levels}
        settings = {key: value for key, value in given.items() if value is not None}
        unfitted = partial(make_model, name, task, settings, seed=seed)
        return WeightedModel(unfitted, weighted, columns=named)

    ours = [
        ComparedModel(name, model_title(name), partial(make, name))
        for name in models_for_task(target.task)
    ]
    seconds = None if max_time is None else n_folds * max_time
    models = {each.name: each for each in [*ours, *other_models(every=True, seconds=seconds)]}
    for name in names or ():
        if name not in models:
            raise CommandError(f"--models {name}: {did_you_mean(name, models, what='models')}")
    return [models[name] for name in names or models]


def _ranked(
    done: Sequence[CrossValidatedModel],
    judge: Metric,
    refused: list[tuple[ComparedModel, Exception]],
) -> list[CrossValidatedModel]:
    """Return the models that the metric can judge, the best first; the others are ``refused``."""
    scored = []
    for each in done:
        try:
            scored.append((judge.value(each.held_out), each))
        except ValueError as error:
            refused.append((each.model, error))
    return [each for _, each in sorted(scored, key=lambda pair: -pair[0])]


def _described(
    each: CrossValidatedModel, best: CrossValidatedModel, judge: Metric
) -> dict[str, object]:
    row = Row.of(each, best.held_out, judge)
    ours = each.model.name in models_for_task(each.held_out.task)
    return {**row.as_json(), "seconds": each.seconds, "cut": each.cut, "ours": ours}


def _verdict(done: Sequence[CrossValidatedModel], task: str, judge: Metric) -> str:
    """Compare the evidence kernel, or the best of ours, with all others."""
    ours = [each for each in done if each.model.name in models_for_task(task)]
    mine = next((each for each in ours if each.model.name == "evidence"), next(iter(ours), None))
    if mine is None:
        return ""
    others = [Row.of(each, mine.held_out, judge) for each in done if each is not mine]
    return verdict(
        mine.model.title, others, judge.name or measure_name(task), ranking_of(mine.held_out)
    )
