"""Regularizers of proxies."""
