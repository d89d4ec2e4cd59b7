"""Thresholds that decide whether the nearest image is near enough."""
