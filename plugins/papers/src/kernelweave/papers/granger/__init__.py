"""Figures 3 to 5 of the matrix-valued kernel learning paper, and a test with known graphs."""
