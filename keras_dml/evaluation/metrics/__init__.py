"""Retrieval metrics of ranks, and how well clusters agree with classes."""
