"""Regularizers of proxies."""

from keras_dml.regularizers.proxies import CenterDistance, ProxyRepulsion

__all__ = ["CenterDistance", "ProxyRepulsion"]
