import numpy as np
import pytest

from keras_dml.data.made_classes import upright, with_quarter_turns
from keras_dml.data.manifest import Manifest


@pytest.mark.parametrize("several", [False, True])
def test_quarter_turns_are_further_classes(several):
    whole = Manifest(
        name="fruit",
        labels=np.eye(2, dtype=bool)[[0, 1, 1]] if several else [0, 1, 1],
        class_names=["apple", "pear"],
        ids=["a", "b", "c"],
        images=np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1),
    )
    turned = with_quarter_turns(whole)
    assert (len(turned), turned.num_classes) == (12, 8)
    assert turned.turn.tolist() == np.repeat(np.arange(4), 3).tolist()
    assert turned.ids[3] == "a turned by 90"
    assert turned.names[[1, 10]].tolist() == ["pear", "pear turned by 270"]
    assert upright(turned).ids.tolist() == whole.ids.tolist()
    for turn in range(4):
        part = turned.select(turned.turn == turn)
        np.testing.assert_array_equal(part.images, whole.images)
        assert len(np.unique(part.names)) == 2
