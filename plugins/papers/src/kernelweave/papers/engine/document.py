"""The pages of a run: Markdown with its pictures beside it, and one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kernelweave.workbench.files import replacing
from kernelweave.workbench.pages import as_data_uri, render

from .. import __version__
from .sections import Grid, Picture, Section

TITLE = "KernelWeave: the papers' tables and figures"


def markdown(sections: Sequence[Section], subtitle: str) -> str:
    """Return the Markdown page; the subtitle says when and how it was made."""
    parts = [f"# {TITLE}", subtitle]
    for section in sections:
        parts += [f"## {section.name}: {section.summary}", section.paper]
        parts += [f"**{problem}**" for problem in section.problems]
        for item in section.parts:
            notes = "\n".join(f"- {note}" for note in item.notes)
            parts += [f"### {item.title}", _shown(item), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(item: Grid | Picture) -> str:
    from tabulate import tabulate

    if isinstance(item, Picture):
        return f"![{item.description}]({item.file})"
    rows = [[value.text for value in row] for row in item.rows]
    aligned = ["right" if head.is_number else "left" for head in item.heads]
    heads = [head.text for head in item.heads]
    return tabulate(rows, headers=heads, tablefmt="pipe", colalign=aligned, disable_numparse=True)


def html(sections: Sequence[Section], subtitle: str) -> str:
    """Return the HTML page, its pictures inside."""
    shown = []
    for section in sections:
        parts = [
            {**asdict(item), "address": as_data_uri(item.svg)}
            if isinstance(item, Picture)
            else asdict(item)
            for item in section.parts
        ]
        shown.append({**asdict(section), "parts": parts})
    return render(
        "tables.html",
        package="kernelweave.papers.engine",
        title=TITLE,
        subtitle=subtitle,
        sections=shown,
        version=__version__,
    )


def write(folder: Path, sections: Sequence[Section], subtitle: str) -> list[Path]:
    """Write both pages and the pictures into a folder, and return the pages' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "tables.md": markdown(sections, subtitle).encode(),
        "tables.html": html(sections, subtitle).encode(),
    }
    pictures = {
        item.file: item.svg
        for section in sections
        for item in section.parts
        if isinstance(item, Picture)
    }
    for name, content in {**pictures, **texts}.items():
        with replacing(folder / name) as stream:
            stream.write(content)
    return [folder / name for name in texts]
