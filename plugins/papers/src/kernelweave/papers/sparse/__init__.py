"""The tables of the sparse multiple kernel learning paper, its baselines, and its future work."""
