"""What a fit has learned of each column, for people."""
