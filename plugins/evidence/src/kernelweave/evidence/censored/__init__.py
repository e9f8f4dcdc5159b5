"""Targets that are known by half: limits of detection, ranges, and times of what has not ended."""
