"""Granger graphs: how well edges are ranked, and steps of all fits."""

from __future__ import annotations

from typing import Any


class Lorenz96:
    """Cross-validated graphs of a known system; what a worse method would raise is tracked."""

    timeout = 300

    def setup_cache(self) -> Any:
        from kernelweave.granger import GrangerGraph, lasso_var, lorenz96, score_graph

        X, truth = lorenz96(8, 150, noise=0.5, random_state=0)
        model = GrangerGraph(tol=1e-2).fit(X)
        ours = score_graph(model.graph_, truth).auroc
        linear = score_graph(lasso_var(X).chosen(), truth).auroc
        return ours, linear, sum(result.n_iter for result in model.results_)

    def track_missed_area(self, found: Any) -> float:
        return float(1.0 - found[0])

    def track_missed_area_over_that_of_the_lasso(self, found: Any) -> float:
        return float((1.0 - found[0]) / (1.0 - found[1]))

    def track_steps(self, found: Any) -> int:
        return int(found[2])
