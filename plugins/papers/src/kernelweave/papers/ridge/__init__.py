"""The tables and figures of the Ridge-MKL paper."""
