"""Intervals, classes and health: what one mean does not show."""
