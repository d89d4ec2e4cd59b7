"""The config of an object follows from the arguments of its class."""

import pytest

from keras_dml import layers


def test_an_argument_that_is_not_stored_is_named():
    class Warm(layers.Proxies):
        def __init__(self, num_classes, temperature=2.0, **kwargs):
            super().__init__(num_classes, **kwargs)

    wanted = "`Warm` must store its argument `temperature`.*self.temperature"
    with pytest.raises(ValueError, match=wanted):
        Warm(3).get_config()
