"""The weights of given kernels by the evidence."""
