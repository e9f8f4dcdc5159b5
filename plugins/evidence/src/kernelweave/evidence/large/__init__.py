"""Tables of any length: the metric from some rows, the predictor from landmarks and sums."""
