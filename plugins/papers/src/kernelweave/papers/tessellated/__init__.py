"""What the tessellated-kernel papers print.

Sources: Talitckii, Colbert and Peet, *Efficient Convex Algorithms for Universal Kernel Learning*,
JMLR 2024 ("T" below), and Colbert and Peet, ICML 2021 ("T'").
"""
