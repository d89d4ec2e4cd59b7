"""Initializers of the papers, by name."""
