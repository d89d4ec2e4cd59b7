"""Exact search, search by ScaNN, and the recall of an approximate index."""
