"""A question of our own, answered by paired measurements and run like a paper's table."""
