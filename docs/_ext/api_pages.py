"""Write the pages of the API reference from what each package exports."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

from kernelweave.kernels_core import algorithms
from kernelweave.kernels_core.checks import Rule
from kernelweave.kernels_core.settings import known_settings

PACKAGES = {
    "kernelweave.kernels_core": "Kernels, problems, results, the registry and the driver.",
    "kernelweave.kernels_core.checks": "What a value must be: rules, and checks of arrays.",
    "kernelweave.kernels_core.families": "What a family of kernels must offer, and three.",
    "kernelweave.kernels_core.formula": "Solutions of several tasks, and bounds over a set.",
    "kernelweave.kernels_core.grams": "Gram matrices: one or a stack, stored, of low rank or not.",
    "kernelweave.kernels_core.parameters": "Sets, learners and settings as values.",
    "kernelweave.kernels_core.psd_cone": "Projections onto simplices and spectahedra, on arrays.",
    "kernelweave.kernels_core.rounding": "Sums whose rounding error is bounded.",
    "kernelweave.kernels_core.testing": "The conformance kit: algorithms, kernels, estimators.",
    "kernelweave.qp_smo": "Support vector machine duals on a Gram matrix.",
    "kernelweave.qp_smo.saddle": "The saddle over kernel weights on the simplex.",
    "kernelweave.spectahedron": "Kernels learned over positive semidefinite matrices.",
    "kernelweave.mkl_sparse": "Sparse weights of a dictionary: Algorithm 1, estimators, paths.",
    "kernelweave.relaxations": "Lower bounds, certificates and global optima of sparse weights.",
    "kernelweave.baselines": "Classic multiple kernel learning to compare with.",
    "kernelweave.ridge_mkl": "Kernel learning for ridge regression and the squared hinge.",
    "kernelweave.vv_rkhs": "Vector-valued least squares with learned input and output kernels.",
    "kernelweave.tables": "Tables as they are: files, frames, columns, targets.",
    "kernelweave.evidence": "Kernels chosen by the evidence, for tables as they are.",
    "kernelweave.granger": "Nonlinear Granger-causality graphs of time series.",
    "kernelweave.workbench": "Saved models and pictures behind the command line.",
    "kernelweave.papers": "The papers' tables and figures.",
}
# values, which have no docstring of their own at the place where they are exported
VALUES = {
    "Gram": "A Gram matrix as an array, or a kernel between samples that is not stored.",
    "KernelArray": "A stored Gram matrix: an array of float64 or float32.",
    "PAPER_TEN": "The ten kernels of the sparse multiple kernel learning paper, in a "
    "`KernelDictionary`. Two are sigmoids: fitting raises unless ``psd`` says what to do.",
    "PAPER_FIFTY": "Fifty kernels: 1 linear, 18 polynomial, 12 Gaussian, 12 sigmoid (clipped), "
    "7 Laplacian, in a `KernelDictionary`.",
    "READERS": "The functions that are asked in turn how a column of words is read, a list that "
    "you may insert one of your own into. Each takes the cells and what a comma in 1,234 is, and "
    "returns how they are read, or ``None``.",
    "STRENGTH": "For what multiplies or divides an objective, such as C or λ.",
    "UNIT": "2⁻⁵³, the largest relative error of one rounding in float64.",
    "hookimpl": "Marks a function of a plugin as the implementation of a hook.",
    "hookspec": "Marks the declaration of a hook; plugins need `hookimpl` only.",
}


def write(folder: Path) -> None:
    """Write one page per package and an index below ``folder``; unchanged pages are left alone."""
    folder.mkdir(exist_ok=True)
    pages = {name.removeprefix("kernelweave."): name for name in PACKAGES}
    for page, name in pages.items():
        save(folder / f"{page}.rst", package_page(name, PACKAGES[name], existing=listed(name)))
    forget(folder / "generated")
    entries = "\n".join(f"   {page}" for page in pages)
    rows = "\n".join(f"- :doc:`{name} <{page}>`: {PACKAGES[name]}" for page, name in pages.items())
    save(folder / "algorithms.rst", algorithms_page())
    rows += "\n- :doc:`algorithms <algorithms>`: every registered algorithm and its settings."
    entries += "\n   algorithms"
    save(
        folder / "index.rst",
        f"{titled('API reference')}\n{rows}\n\n.. toctree::\n   :hidden:\n\n{entries}\n",
    )


def algorithms_page() -> str:
    """Return the page of algorithms: what each does, and its settings as it declares them."""
    parts = [
        titled("Algorithms and their settings"),
        'Give an algorithm by its name, ``algorithm="tkl-low-rank"``, or by its settings where '
        "they are a value, ``algorithm=LowRank(rank=8)``. `solve` takes settings by name too.\n",
    ]
    for name, spec in sorted(algorithms().items()):
        own = getattr(spec.load(), "settings", None)
        names = ", ".join(f"``{each}``" for each in sorted(known_settings(spec) or ()))
        parts.append(f"{name}\n{'-' * len(name)}\n\n{spec.summary or spec.paper}\n")
        if own is None:
            parts.append(f"Settings: {names or 'none'}.\n")
        else:
            kind = type(own)
            entries = inspect.cleandoc(kind.__doc__ or "").partition("Parameters\n----------\n")[2]
            listed_ones = entries.partition("\n\n")[0]
            parts.append(f"Settings: `~{kind.__module__}.{kind.__name__}`.\n\n{listed_ones}\n")
    return "\n".join(parts)


def forget(folder: Path) -> None:
    """Remove the generated pages of names that are exported no more."""
    known = {f"{name}.{each}" for name in PACKAGES for each in listed(name)}
    for path in folder.glob("*.rst"):
        if path.stem not in known:
            path.unlink()


def save(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def titled(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"


def listed(name: str) -> dict[str, object]:
    """Return the public names that are shown on the package's page, with what they are."""
    package = importlib.import_module(name)
    return {each: getattr(package, each) for each in package.__all__ if not each.startswith("__")}


def package_page(name: str, summary: str, existing: dict[str, object]) -> str:
    """Return the page: a table of classes, one of functions, the values, what is elsewhere."""
    # what the parent package exports too has its page there
    above = name.rpartition(".")[0]
    parent = {} if name.count(".") < 2 else listed(above)
    own = {each: it for each, it in existing.items() if each not in parent}
    classes = [each for each, it in own.items() if inspect.isclass(it)]
    functions = [each for each, it in own.items() if inspect.isroutine(it)]
    values = [each for each in own if each not in {*classes, *functions}]
    parts = [titled(name), f"{summary}\n", f".. currentmodule:: {name}\n"]
    for title, names in (("Classes", classes), ("Functions", functions)):
        if names:
            rows = "\n".join(f"   {each}" for each in sorted(names, key=str.lower))
            head = f".. rubric:: {title}\n\n.. autosummary::\n   :toctree: generated\n\n"
            parts.append(f"{head}{rows}\n")
    for each in values:
        parts.append(f".. py:data:: {each}\n\n   {said_of(each, own[each])}\n")
    if len(own) < len(existing):
        others = ", ".join(f"`~{above}.{each}`" for each in existing if each in parent)
        page = above.removeprefix("kernelweave.")
        parts.append(f"On the page of :doc:`{above} <{page}>`: {others}.\n")
    return "\n".join(parts)


def said_of(name: str, value: object) -> str:
    """Return what is said of a value; a rule says itself what is right."""
    if not isinstance(value, Rule):
        return VALUES[name]
    then = f", {value.then.words}" if value.then else ""
    return f"The `Rule` for {value.words}{then}. {VALUES.get(name, '')}".rstrip()
