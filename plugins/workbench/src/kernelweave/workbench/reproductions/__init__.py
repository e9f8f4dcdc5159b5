"""What the tessellated-kernel papers print, as plans that the engine in ``workbench.tables`` runs.

Sources: Talitckii, Colbert and Peet, *Efficient Convex Algorithms for Universal Kernel Learning*,
JMLR 2024 ("T" below), and Colbert and Peet, ICML 2021 ("T'"). The other papers' plans are in
the packages that hold their methods.
"""

from __future__ import annotations
