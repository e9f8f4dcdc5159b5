"""Columns of many words: names are random effects, shrunk by what is learned of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from sklearn.metrics import r2_score


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_every_name_that_recurs_has_an_effect_of_its_own() -> None:
    """Nearly as good as the best linear prediction by the variances that nature has."""
    state = np.random.default_rng(0)
    name, effect = np.tile(np.arange(300), 4), state.normal(size=300)
    X = pd.DataFrame({"name": [f"name {k}" for k in name], "x": state.normal(size=1200)})
    y = (effect[name] + X["x"] + 0.5 * state.normal(size=1200)).to_numpy()
    new = np.arange(1200) >= 900
    known = X[~new], y[~new]
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=15, n_folds=2).fit(*known)
    assert len(model.dimensions_[1].levels) == 300
    rest = (y - X["x"])[~new]
    Z = np.eye(300)[name]
    V = Z[~new] @ Z[~new].T + 0.25 * np.eye(900)
    best = X["x"][new] + Z[new] @ Z[~new].T @ np.linalg.solve(V, rest)
    assert model.score(X[new], y[new]) > r2_score(y[new], best) - 0.03
    # of a name that nobody has, less is known
    unseen = model.predict(X[new][:1].assign(name="another"), return_std=True)[1]
    assert unseen > 1.3 * model.predict(X[new][:1], return_std=True)[1]
