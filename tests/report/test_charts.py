import numpy as np
import pytest

from keras_dml.report.charts import drawn_epochs


@pytest.mark.parametrize(
    "logarithmic, epochs", [(True, [0, 2]), (False, [0, 1, 2])]
)
def test_what_has_no_place_on_the_axis_is_not_drawn(logarithmic, epochs):
    values = np.array([0.1, 0.0, 0.2, np.nan])
    assert drawn_epochs(values, logarithmic).tolist() == epochs
