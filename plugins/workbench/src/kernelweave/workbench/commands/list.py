"""``kernelweave list``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, DatasetSpec, accepted_triples
from kernelweave.kernels_core.registry import registry
from kernelweave.tables.data_folder import data_folder, folder_files, folder_remark

from .. import console
from . import BUILTIN

if TYPE_CHECKING:
    from rich.text import Text

_Kind = Literal[
    "algorithms", "families", "learners", "constraints", "kernels", "datasets", "commands"
]
KINDS: tuple[str, ...] = get_args(_Kind)


def list_command(*, kind: _Kind | None = None, matrix: bool = False, json: bool = False) -> None:
    """List algorithms, kernels, data sets and everything else that is registered.

    Parameters
    ----------
    kind : str
        List only this kind.
    matrix : bool
        Show which algorithm solves which problem (family, constraint and learner).
    json : bool
        Print JSON.
    """
    if matrix:
        cells = problem_matrix()
        parts = ("family", "constraint", "learner", "algorithms")
        rows = [dict(zip(parts, (*triple, names), strict=True)) for triple, names in cells.items()]
        console.emit_json(rows) if json else _print_matrix(cells)
        return
    kinds = KINDS if kind is None else (kind,)
    specs = {each: _specs(each) for each in kinds}
    _print_json(specs) if json else _print(specs)
    if kind == "datasets" and folder_remark():
        console.print_message("note", folder_remark())
    if kind is not None and not specs[kind]:
        console.print_message("note", f"no {kind} are registered")


def _print_json(by_kind: dict[str, list[ComponentSpec]]) -> None:
    rows = {kind: [_describe(kind, spec) for spec in specs] for kind, specs in by_kind.items()}
    if "datasets" in rows:
        rows["datasets"] += [
            {"name": name, "summary": about, "file": str(path)}
            for name, (path, about) in _folder_rows(by_kind["datasets"]).items()
        ]
    console.emit_json(rows)


def _print(by_kind: dict[str, list[ComponentSpec]]) -> None:
    screen = console.out()
    for kind, specs in by_kind.items():
        if specs:
            console.print_section(screen, kind, map(_row, specs))
        files = _folder_rows(specs) if kind == "datasets" else {}
        if files:
            rows = [(name, about) for name, (_, about) in files.items()]
            console.print_section(screen, f"datasets in {data_folder()}", rows)


def _folder_rows(specs: list[ComponentSpec]) -> dict[str, tuple[Path, str]]:
    """Return path and remark of each table of the user's folder, by the name it goes by."""
    taken = {spec.name for spec in specs}
    return {
        name: (path, f"{path.name}{' (by its path: the name is taken)' if name in taken else ''}")
        for name, path in sorted(folder_files().items())
    }


def _specs(kind: str) -> list[ComponentSpec]:
    """Return the registered items, and our own commands even where the plugin is blocked."""
    specs = registry().specs(kind)
    if kind == "commands":
        specs = {spec.name: spec for spec in BUILTIN} | specs
    return list(specs.values())


def _source(kind: str, name: str) -> str:
    try:
        return registry().source(kind, name)
    except LookupError:
        return "kernelweave-workbench"


def _describe(kind: str, spec: ComponentSpec) -> dict[str, object]:
    described: dict[str, object] = {
        "name": spec.name,
        "summary": spec.summary,
        "target": spec.target,
        "distribution": _source(kind, spec.name),
    }
    if isinstance(spec, AlgorithmSpec):
        described["tasks"] = list(spec.tasks)
        described["needs"] = asdict(spec.needs)
        described["scaling"] = dict(spec.scaling)
        described["paper"] = spec.paper
    if isinstance(spec, DatasetSpec):
        described["task"] = spec.task
    return described


def _row(spec: ComponentSpec) -> tuple[str, Text]:
    """Return the name and the description of an item."""
    from rich.text import Text

    details = Text(spec.summary)
    if isinstance(spec, DatasetSpec):
        details.append(f"\n{spec.task}", style="dim")
    if isinstance(spec, AlgorithmSpec):
        details.append(f"\n{', '.join(spec.tasks)}; {spec.paper or 'no paper'}", style="dim")
    return spec.name, details


Cells = dict[tuple[str, str, str], list[str]]


def problem_matrix() -> Cells:
    """Return the algorithms that solve each (family, constraint, learner), sorted."""
    cells: Cells = {}
    for spec in registry().specs("algorithms").values():
        for family, learner, constraint in accepted_triples(spec):
            cells.setdefault((family, constraint, learner), []).append(spec.name)
    return dict(sorted(cells.items()))


def _print_matrix(cells: Cells) -> None:
    """Print a block for each family and constraint, learners of equal algorithms together."""
    blocks: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (family, constraint, learner), names in cells.items():
        rows = blocks.setdefault((family, constraint), {})
        rows.setdefault(", ".join(names), []).append(learner)
    screen = console.out()
    for (family, constraint), rows in blocks.items():
        lines = [(", ".join(learners), names) for names, learners in rows.items()]
        console.print_section(screen, f"{family} over {constraint}", lines)
