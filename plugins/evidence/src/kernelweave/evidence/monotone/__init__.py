"""Predictions that rise or fall with a column, by rearrangement after the fit."""
