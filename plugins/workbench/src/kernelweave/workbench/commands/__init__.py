"""The commands, a file each; here only their names, so that listing them costs nothing."""

from __future__ import annotations

from kernelweave.kernels_core import CommandSpec

_SUMMARIES = {
    "demo": "Learn a kernel on a real data set, beside a tuned RBF machine and boosted trees.",
    "fit": "Learn a model from a table as it is, and say how well it predicts.",
    "compare": "Score every model on the same held-out rows of a table, the best first.",
    "predict": "Predict a table with a saved model.",
    "certify": "Prove anew how far a saved model is from the best kernel for its data.",
    "report": "Write one HTML page about a saved model: scores, pictures, columns, proof.",
    "list": "List algorithms, kernels, data sets and everything else registered.",
    "plugins": "Show which plugins are loaded, and why the others are not.",
    "doctor": "Show versions, threads, memory, caches, licences and what is broken.",
    "completion": "Print a script that completes commands and options in a shell.",
}

BUILTIN = tuple(
    CommandSpec(
        name=name,
        target=f"kernelweave.workbench.commands.{name}:{name}_command",
        summary=summary,
    )
    for name, summary in _SUMMARIES.items()
)
