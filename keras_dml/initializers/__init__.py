"""Initializers of kernels and proxies."""

from keras_dml.initializers.named import (
    get_kernel_initializer,
    get_proxy_initializer,
)
from keras_dml.initializers.uniform_fan_in import UniformFanIn

__all__ = ["UniformFanIn", "get_kernel_initializer", "get_proxy_initializer"]
