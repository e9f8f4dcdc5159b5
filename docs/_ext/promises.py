"""``{fault-matrix} estimators``: the faults of ``tests/faults`` and what each must lead to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "faults"))

TITLES = {
    "values": "Values in X and y",
    "shapes": "Shapes",
    "kinds": "Kinds of data",
    "content": "Degenerate data",
    "layouts": "Containers: the same numbers, stored in another way",
    "weights": "Sample weights",
    "parameters": "Parameters",
    "prediction": "Points to predict",
    "grams": "Gram matrices",
    "targets": "Targets",
    "hard problems": "Hard problems: messages name only parameters that the estimator has",
}


def table_of(name: str) -> list[Any]:
    """Return the faults of the estimators or of the solvers."""
    if name == "estimators":
        from estimator_faults import FAULTS

        return FAULTS
    from solver_faults import SOLVERS

    return SOLVERS


def matrix(name: str) -> str:
    """Return a table in Markdown per group of faults."""
    faults = table_of(name)
    parts = []
    for group in dict.fromkeys(fault.group for fault in faults):
        rows = "\n".join(
            f"| {fault.name} | {_escaped(str(fault.expected))} |"
            for fault in faults
            if fault.group == group
        )
        parts.append(f"**{TITLES[group]}**\n\n| fault | what happens |\n| --- | --- |\n{rows}\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")


class FaultMatrix(Directive):
    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        text = matrix(self.arguments[0])
        node = nodes.container()
        lines = StringList(text.splitlines(), source=self.state.document.current_source)
        self.state.nested_parse(lines, self.content_offset, node)
        return list(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("fault-matrix", FaultMatrix)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
