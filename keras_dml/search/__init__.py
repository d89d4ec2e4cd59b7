"""Finds the images that are like an image."""
