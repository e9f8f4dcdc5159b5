"""
Who drives whom: a Granger graph
================================

Each of the eight variables of the Lorenz-96 system is driven by itself and three neighbours. The
kernel learned for each variable puts weight on the histories that help to predict it. A lasso is
fitted to the same data for comparison.
"""

import matplotlib.pyplot as plt
from kernelweave.granger import (
    CausalGraphDisplay,
    GrangerGraph,
    lasso_var,
    lorenz96,
    plot_effect,
    plot_weights,
    random_network,
    score_graph,
)

X, truth = lorenz96(8, 150, noise=0.5, random_state=0)
model = GrangerGraph(lags=1, tol=1e-2).fit(X)
linear = lasso_var(X, lags=1).chosen(shared=True)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
ours, theirs = (score_graph(graph, truth).auroc for graph in (model.graph_, linear))
axes[0].imshow(truth, cmap="Greys", vmax=1.6)
axes[0].set(title="the truth", xlabel="source", ylabel="target")
plot_weights(model, axes[1])
axes[1].set_title(f"learned kernel weights: AUROC {ours:.3f}")
axes[2].imshow(linear, cmap="cividis")
axes[2].set(title=f"lasso, cross-validated: AUROC {theirs:.3f}", xlabel="source")
plt.show()

# %%
# AUROC, the area under the ROC curve over pairs of different nodes, is 1 where every true edge is
# ranked before every other pair.
#
# Every target is a convex problem of its own, with its own proof.

[f"{result.gap:.1e}" for result in model.results_]

# %%
# Weights rank edges, but a decision needs a test. Refits with histories shifted in time show
# which weights arise by chance. The picture shows the edges that pass: the colour is the sign of
# the effect, the width is the weight, and the fill of a node shows how much it drives itself. On
# the right is the strongest effect.

X, truth = random_network(5, 150, random_state=8)
tested = GrangerGraph(
    lam=0.3, cv=None, tol=1e-2, significance="permutation", n_draws=100, random_state=0
).fit(X)
figure, axes = plt.subplots(
    1, 2, figsize=(10, 5.2), layout="constrained", gridspec_kw={"width_ratios": [3, 2]}
)
table = tested.edges_
table["true"] = [
    truth[int(i), int(j)] for i, j in zip(table["target"], table["source"], strict=True)
]
CausalGraphDisplay.from_estimator(tested, ax=axes[0])
passing = table[table["passes"]]
axes[0].set_title(
    f"{len(passing)} edges pass at level 0.05, {passing['true'].sum():g} of them true", pad=14
)
plot_effect(tested, table.iloc[0], axes[1])
axes[1].set_title(f"what {table['source'][0]} does to {table['target'][0]}")
plt.show()

# %%
# The table behind it.

table.round(3)
