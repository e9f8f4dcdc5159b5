"""The performance gate: counts that no machine changes, and exponents of cost."""
