"""Granger graphs: how well edges are ranked, and steps of all fits."""

from __future__ import annotations

import time
import warnings

from ._measure import exponent


class Lorenz96:
    """Cross-validated graphs of a known system; what a worse method would raise is tracked."""

    def setup_cache(self) -> tuple[float, float, int]:
        from kernelweave.granger import GrangerGraph, lasso_var, lorenz96, score_graph

        X, truth = lorenz96(8, 150, noise=0.5, random_state=0)
        model = GrangerGraph(tol=1e-2).fit(X)
        ours = score_graph(model.graph_, truth).auroc
        linear = score_graph(lasso_var(X).chosen(), truth).auroc
        return ours, linear, sum(result.n_iter for result in model.results_)

    def track_missed_area(self, found: tuple[float, float, int]) -> float:
        return float(1.0 - found[0])

    def track_missed_area_over_that_of_the_lasso(self, found: tuple[float, float, int]) -> float:
        return float((1.0 - found[0]) / (1.0 - found[1]))

    def track_steps(self, found: tuple[float, float, int]) -> int:
        return int(found[2])


class Growth:
    """Exponents of the processor time of a graph in rows and in nodes."""

    def _exponent(self, sizes: tuple[int, ...], of_rows: bool) -> float:
        from kernelweave.granger import GrangerGraph, lorenz96

        costs = []
        for size in sizes:
            X, _ = lorenz96(6 if of_rows else size, size if of_rows else 100, random_state=0)
            model = GrangerGraph(lam=0.1, cv=None, tol=1e-2, max_iter=5)
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X)
            costs.append(time.process_time() - started)
        return exponent(sizes, costs)

    def track_rows(self) -> float:
        return self._exponent((150, 300, 600), True)

    def track_nodes(self) -> float:
        return self._exponent((5, 10, 20), False)
