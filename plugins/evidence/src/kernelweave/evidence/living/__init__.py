"""Models that learn new rows, forget rows and are merged, with the kernel that they have."""
