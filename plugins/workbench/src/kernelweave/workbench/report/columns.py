"""Pictures of columns: what each is worth, and what predictions do along the strongest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..displays.axes import open_frame, write_thousands
from ..displays.colours import FAINT, LOWER
from ..models import Model
from ..pages import Picture, picture

if TYPE_CHECKING:
    from kernelweave.evidence.explaining.effects import ColumnEffect, PairEffect
    from matplotlib.figure import Figure

# What a reader takes in: the rest is weaker, and the page says how many there are.
_MOST_BARS = 15
_CURVES, _PAIRS = 4, 2


def column_pictures(model: Model, measure: str) -> list[Picture]:
    """Return the importance of columns and the effects of the strongest, where the fit has them.

    `model`: fitted; `measure`: what its score is. Returns: pictures.
    """
    left_out = {row["name"] for row in model.header.prepared if row["done"] != "used"}
    rows = [row for row in model.header.importance if row["name"] not in left_out]
    made = [_importance(rows, measure)] if rows else []
    return made + (_effects(model) if model.header.algorithm == "evidence" else [])


def new_rows_picture(about: Mapping[str, Any]) -> list[Picture]:
    """Return the score to expect of each kind of new rows; nothing where one is known.

    `about`: a `summary`.
    """
    rows = about["new_rows"][::-1]
    if len(rows) < 2 or about["held_out"] is None:
        return []
    scores = [row["score"] for row in rows]
    errors = [2.0 * row["error"] for row in rows]
    # what is printed of the rows held out
    scores[-1], errors[-1] = about["held_out"]["score"], 2.0 * about["held_out"]["error"]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for place, each in enumerate(zip(scores, errors, strict=True)):
            colour = LOWER if place == len(rows) - 1 else FAINT
            ax.errorbar(each[0], place, xerr=each[1], fmt="o", color=colour, capsize=3)
        ax.set_yticks(range(len(rows)), [_short(row["name"], 26) for row in rows])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.set_xlabel(f"{about['measure']}, with two standard errors")
        open_frame(ax, "x")

    text = (
        f"Expected {about['measure']} on new rows of each kind: rows like those of the "
        f"cross-validation (blue), rows of new groups, and later rows."
    )
    return [picture("Kinds of new rows", text, draw, height=1.3 + 0.34 * len(rows))]


def _importance(rows: list[dict[str, Any]], measure: str) -> Picture:
    shown = rows[:_MOST_BARS][::-1]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        values = [row["value"] for row in shown]
        errors = [row["error"] for row in shown]
        ax.barh(range(len(shown)), values, xerr=errors, color=LOWER, height=0.6,
                error_kw={"linewidth": 1, "capsize": 2})  # fmt: skip
        ax.set_yticks(range(len(shown)), [_short(row["name"]) for row in shown])
        ax.set_xlabel(f"drop in {measure} when the column is shuffled")
        open_frame(ax, "x")

    more = f" The {len(rows) - _MOST_BARS} weakest are not shown." if len(rows) > _MOST_BARS else ""
    text = (
        f"Drop in the cross-validated score when a column is shuffled, with standard errors. "
        f"Correlated columns share their importance.{more}"
    )
    return picture("Importance", text, draw, height=1.2 + 0.26 * len(shown))


def _effects(model: Model) -> list[Picture]:
    """Return a picture for each of the strongest columns, and for the strongest pairs."""
    from kernelweave.evidence import EffectDisplay
    from matplotlib.figure import Figure

    hidden = Figure().subplots(1, _CURVES + _PAIRS)
    found = EffectDisplay.from_estimator(
        model.machine, n_columns=_CURVES, n_pairs=_PAIRS, ax=hidden
    )
    what = found.response

    def one(effect: ColumnEffect) -> Picture:
        def draw(figure: Figure) -> None:
            ax = figure.subplots()
            EffectDisplay([effect], response=what).plot(ax=[ax])
            write_thousands(ax.yaxis)

        text = (
            f"Change of the mean {what} when every row has this value of {effect.column} (partial "
            f"dependence); the band is two standard deviations. Computed on training rows."
        )
        return picture(f"Effect of {effect.column}", text, draw, height=2.9)

    def two(pair: PairEffect) -> Picture:
        def draw(figure: Figure) -> None:
            EffectDisplay([], [pair], response=what).plot(ax=[figure.subplots()])

        names = " and ".join(pair.columns)
        text = (
            f"Change of the mean {what} with both columns, beyond the sum of their single effects. "
            f"Computed on training rows."
        )
        return picture(f"Interaction of {names}", text, draw, height=3.2)

    return [*map(one, found.effects), *map(two, found.pairs)]


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
