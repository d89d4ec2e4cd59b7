"""Finds images that are similar to an image."""
