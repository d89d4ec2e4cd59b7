"""Finds the regularizers in the files of this folder."""

import inspect

import keras

from keras_dml.arguments import defined_in

# By the name of their file, as recipes name them.
PROXY_REGULARIZERS: dict[str, type[keras.regularizers.Regularizer]] = {
    key: value
    for key, _, value in defined_in(__package__)
    if inspect.isclass(value)
    and issubclass(value, keras.regularizers.Regularizer)
}
