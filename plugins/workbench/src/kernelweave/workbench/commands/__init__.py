"""The commands, a file each; here only their names, so that listing them costs nothing."""

from __future__ import annotations

from kernelweave.kernels_core import CommandSpec

_SUMMARIES = {
    "demo": "Fit a model to a real data set and compare it with an RBF SVM and boosted trees.",
    "fit": "Fit a model to a table and estimate how well it predicts new rows.",
    "compare": "Cross-validate all models on the same folds of a table, best first.",
    "predict": "Predict the rows of a table with a saved model.",
    "update": "Let a saved model learn new rows, with the kernel that it has.",
    "forget": "Let a saved model forget rows.",
    "merge": "Merge models of one kernel, and files of sums, into one of all their rows.",
    "certify": "Check how far a saved model is from the optimum for its data.",
    "report": "Write an HTML report on a saved model: scores, plots, columns, proof.",
    "list": "List algorithms, kernels, data sets and everything else that is registered.",
    "plugins": "Show which plugins are loaded, and why others are not.",
    "doctor": "Show versions, threads, memory, caches and problems.",
    "completion": "Print a completion script for a shell.",
}

BUILTIN = tuple(
    CommandSpec(
        name=name, target=f"kernelweave.workbench.commands.{name}:{name}_command", summary=summary
    )
    for name, summary in _SUMMARIES.items()
)
