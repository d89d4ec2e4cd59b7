"""Thresholds: when the nearest image is not near enough."""
