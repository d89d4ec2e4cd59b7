"""Intervals of metrics, metrics per class, and health of embeddings."""
