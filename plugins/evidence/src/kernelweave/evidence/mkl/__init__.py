"""Evidence MKL: a weighted sum of given kernels, with weights that maximise the evidence."""
