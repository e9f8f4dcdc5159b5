"""
Effects of columns and pairs
============================

Friedman's function of five columns, 10 sin(π·a·b) + 20(c − ½)² + 10d + 5e, three columns of noise
and one of text. The curves are averages of the predictions of an evidence model, with bands of
two posterior standard deviations. The maps are interactions: effects of two columns beyond those
of each.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from kernelweave.evidence import EffectDisplay, EvidenceKernelRegressor
from sklearn.datasets import make_friedman1

X, y = make_friedman1(200, n_features=8, noise=1.0, random_state=0)
table = pd.DataFrame(X, columns=list("abcdefgh"))
table["town"] = np.random.RandomState(0).choice(["north", "south", "west"], 200)
y = y + 4.0 * (table["town"] == "north")
model = EvidenceKernelRegressor().fit(table, y)

EffectDisplay.from_estimator(model, n_columns=7, n_pairs=2)
plt.suptitle(
    f"R² {model.held_out_score_:.3f} ± {model.held_out_error_:.3f} on rows that the fit did not see"
)
plt.show()

# %%
# The importance of each column is the drop of the cross-validated R² when its values are
# shuffled. It is 0 within its standard error for the columns of noise.

pd.DataFrame(model.importance_).set_index("column").round(3)
