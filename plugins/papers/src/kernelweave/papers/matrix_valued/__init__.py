"""Table 1 and Figures 1 and 2 of the matrix-valued kernel learning paper."""
