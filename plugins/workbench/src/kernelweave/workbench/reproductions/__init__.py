"""The tables and figures of the tessellated-kernel papers: plans for ``kernelweave tables``.

Sources: Colbert, Talitckii and Peet, *Efficient Convex Algorithms for Universal Kernel Learning*,
JMLR 2024 ("T" below), and Colbert and Peet, ICML 2021 ("T'").
"""

from __future__ import annotations
