"""The page of a reproduction: Markdown with its tables, verdicts and drawings."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelweave.tables.errors import one_line
from kernelweave.workbench.files import replacing
from kernelweave.workbench.pages import figure_svg

from ..plan import PAPER, Drawing, Sheet
from .chosen import Chosen
from .running import CellOutcome
from .verdicts import Claim, claims_on, compared_in, pairs_of, verdict, with_verdicts

NOTHING = "–"
_ON_CLAIMS = (
    "A difference is that of the first thing that is named to the second, in points, or in per "
    "cent of the larger where less is better, with the 95 % interval of its mean (Student's t); "
    "fewer than three pairs count where they differ by more than their deviations, and one refutes."
)

TITLE = "KernelWeave: the papers' tables and figures"


@dataclass(frozen=True)
class Section:
    """A reproduction as it is shown.

    ``parts`` are its tables and drawings in Markdown, ``pictures`` the drawings by the names of
    their files. ``empty`` names the figures of ours that are missing, ``verdicts`` says what the
    others say.
    """

    name: str
    summary: str
    paper: str
    parts: list[str] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)


def shown(value: object) -> str:
    """Return a value as text: four digits of a number, a dash for None.

    Examples
    --------
    >>> shown(0.123456), shown(12), shown(None), shown("yes")
    ('0.1235', '12', '–', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{value:.4g}" if math.isfinite(value) else "none"
    return NOTHING if value is None else str(value)


def table_text(sheet: Sheet) -> str:
    """Return the rows of a sheet in Markdown, columns of numbers aligned to the right."""
    from tabulate import tabulate

    sheet = sheet.without_empty_columns()
    rows = [[shown(value) for value in row] for row in sheet.rows]
    numeric = [_align_decimals(i, sheet.rows, rows) for i in range(len(sheet.columns))]
    aligned = ["right" if each else "left" for each in numeric]
    return tabulate(rows, sheet.columns, tablefmt="pipe", colalign=aligned, disable_numparse=True)


def _part(item: Sheet | Drawing, content: str) -> str:
    """Return a table or a drawing under its title, with its notes below."""
    lines = "\n".join(f"- {note}" for note in item.notes)
    return "\n\n".join(filter(None, (f"### {item.title}", content, lines)))


def _align_decimals(i: int, values: Sequence[Sequence[Any]], rows: list[list[str]]) -> bool:
    """Give similar numbers of a column as many decimals, and return whether it has numbers.

    `rows`: the texts, changed in place.
    """
    figures = {
        j: float(row[i])
        for j, row in enumerate(values)
        if i < len(row) and isinstance(row[i], numbers.Real) and not isinstance(row[i], bool)
    }
    finite = {j: value for j, value in figures.items() if math.isfinite(value)}
    sizes = sorted(abs(value) for value in finite.values() if value)
    texts = [rows[j][i] for j in finite]
    if sizes and sizes[-1] <= 1000 * sizes[0] and not any("e" in text for text in texts):
        printed = max(len(text.partition(".")[2]) for text in texts)
        decimals = min(printed, max(3 - math.floor(math.log10(sizes[len(sizes) // 2])), 0))
        for j, value in finite.items():
            rows[j][i] = f"{value:.{decimals}f}"
    return bool(figures)


def section(chosen: Chosen, outcomes: Mapping[str, CellOutcome]) -> Section:
    """Return a table as it is shown, of the outcomes by key; what failed is named first."""
    spec = chosen.spec
    made = Section(spec.name, spec.summary, spec.paper)
    if chosen.missing and not chosen.plan.cells:
        made.problems.append(f"Not run: {chosen.missing}")
        return made
    if chosen.missing:
        made.problems.append(f"{chosen.n_missing} cells have no data: {chosen.missing}")
    made.problems.extend(
        f"{key} failed: {outcome.error}" for key, outcome in outcomes.items() if outcome.error
    )
    values = {key: outcome.value for key, outcome in outcomes.items() if not outcome.error}
    left = len(chosen.plan.cells) - len(outcomes)
    partial = "only a part was asked for" if chosen.is_part else ""
    if chosen.missing:
        partial = f"{chosen.n_missing} cells have no data"
    if len(values) < len(chosen.plan.cells):
        partial = f"{len(chosen.plan.cells) - len(values)} cells have no result"
    _add_parts(made, chosen, values, partial)
    if left:
        made.problems.append(f"{left} of {len(chosen.plan.cells)} cells are not computed yet.")
    if made.empty:
        made.problems.append(f"{len(made.empty)} figures are missing: {'; '.join(made.empty[:3])}.")
    reduced = sum(cell.is_reduced for cell in chosen.plan.cells)
    if reduced:
        made.problems.append(
            f"A reduced run: {reduced} of {len(chosen.plan.cells)} cells use fewer samples or "
            "splits than the paper, so no figure of theirs is a comparison with it."
        )
    return made


def _add_parts(made: Section, chosen: Chosen, values: Mapping[str, object], partial: str) -> None:
    """Add the tables and drawings of the plan, what is missing in them, and their verdicts."""
    reduced = {cell.key for cell in chosen.plan.cells if cell.is_reduced}
    kept = {key: value for key, value in values.items() if key not in reduced}
    try:
        items = chosen.plan.present(values)
        # what no reduced cell has changed stands in these too
        unreduced = _sheets(chosen.plan.present(kept)) if reduced else _sheets(items)
    except Exception as error:  # noqa: BLE001
        made.problems.append(f"cannot be shown: {type(error).__name__}: {one_line(error)}")
        made.empty.append("a part that cannot be shown")
        return
    sheets: list[Sheet] = []
    for number, item in enumerate(items, 1):
        if isinstance(item, Drawing):
            file = f"{made.name}-{number}.svg"
            made.pictures[file] = figure_svg(item.draw)
            made.parts.append(_part(item, f"![{item.description}]({file})"))
        elif partial and item.is_aggregate:
            made.problems.append(f"{item.title}: not shown, {partial}.")
        else:
            judged = _judged(made, item, unreduced)
            if partial and "verdict" in item.columns:
                # a difference over some of the cells is not the one that the paper prints
                judged = replace(judged, title=f"{item.title} (partial: {partial})")
            sheets.append(item)
            made.empty.extend(item.without_empty_columns().empty())
            made.parts.append(_part(judged, table_text(judged)))
    _add_claims(made, sheets, unreduced, partial)


def _sheets(items: Sequence[Sheet | Drawing]) -> list[Sheet]:
    return [item for item in items if isinstance(item, Sheet)]


def _judged(made: Section, sheet: Sheet, unreduced: Sequence[Sheet]) -> Sheet:
    """Return the sheet with its verdicts, and count them; none for figures of reduced cells."""
    alike = [row for each in unreduced if each.title == sheet.title for row in each.rows]
    judged = with_verdicts(sheet, compared_in(made.name), alike)
    words = Counter(
        row[i]
        for i in range(len(sheet.columns), len(judged.columns))
        for row in judged.rows
        if row[i] is not None
    )
    if words:
        counts = ", ".join(f"{n} {word}" for word, n in words.items())
        made.verdicts.append(f"{sheet.title}, compared with the paper: {counts}")
    return judged


def _add_claims(
    made: Section, sheets: Sequence[Sheet], unreduced: Sequence[Sheet], partial: str
) -> None:
    """Add a row for each sentence of the paper on the table: ours, theirs and the verdict."""
    rows = []
    for claim in claims_on(made.name):
        why = partial or ("a reduced run" if _is_reduced(claim, sheets, unreduced) else "")
        rows.append(verdict(sheets, claim, why))
        made.verdicts.append(f"{rows[-1][0]}: {rows[-1][-1]} ({rows[-1][1]})")
    if rows:
        heads = ("the paper says", "ours: difference", f"difference {PAPER}", "verdict")
        sheet = Sheet("What the paper says", heads, rows, (_ON_CLAIMS,))
        made.parts.append(_part(sheet, table_text(sheet)))


def _is_reduced(claim: Claim, sheets: Sequence[Sheet], unreduced: Sequence[Sheet]) -> bool:
    """Return whether any of the figures that a claim compares is one of a reduced cell."""
    for other in claim.second:
        labels, alone = (claim.first, other), claim._replace(second=(other,))
        if pairs_of(sheets, alone, labels) != pairs_of(unreduced, alone, labels):
            return True
    return False


def markdown(sections: Sequence[Section], subtitle: str) -> str:
    """Return the Markdown page; the subtitle says when and how it was made."""
    parts = [f"# {TITLE}", subtitle]
    for section in sections:
        parts += [f"## {section.name}: {section.summary}", section.paper]
        parts += [f"**{problem}**" for problem in section.problems]
        parts += section.parts
    return "\n\n".join(part for part in parts if part) + "\n"


def write(folder: Path, sections: Sequence[Section], subtitle: str) -> Path:
    """Write the page and the pictures into a folder, and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: svg for section in sections for name, svg in section.pictures.items()}
    files["tables.md"] = markdown(sections, subtitle).encode()
    for name, content in files.items():
        with replacing(folder / name) as stream:
            stream.write(content)
    return folder / "tables.md"
