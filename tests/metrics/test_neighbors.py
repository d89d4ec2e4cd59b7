"""The order of equal neighbors is that of their arrival on every backend."""

import pytest

from tests.test_backends import installed, run

ORDER = """
import numpy as np
from keras import ops
from keras_dml.metrics.neighbors import Neighbors, merge_neighbors

few = Neighbors(np.zeros((1, 4), "float32") - np.inf, np.zeros((1, 4), bool),
                np.zeros((1,), "int32"))
few = Neighbors(*map(ops.convert_to_tensor, few))
equal = ops.zeros((1, 60))
match = ops.convert_to_tensor(np.arange(60)[None, :] < 2)
found = merge_neighbors(few, equal, match, ops.ones((1, 60), "bool"))
print(ops.convert_to_numpy(found.match)[0].tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"])
def test_of_equal_rows_the_first_is_the_nearest(backend):
    if not installed(backend):
        pytest.skip(f"The backend {backend} is not installed.")
    done = run(ORDER, backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[True, True, False, False]"
