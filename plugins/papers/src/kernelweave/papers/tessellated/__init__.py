"""What the tessellated-kernel papers print.

Sources: Talitckii, Colbert and Peet, *Efficient Convex Algorithms for Universal Kernel Learning*,
JMLR 2024 ("T" below), and *An Efficient Algorithm for Tessellated Kernel Learning*, an anonymous
manuscript of 2021 ("T'").
"""
