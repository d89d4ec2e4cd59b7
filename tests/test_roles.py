import numpy as np
import pytest

from keras_dml.roles import ROLES, has_gallery, query_rows, reference_rows

MIXTURES = [
    [],
    ["", ""],
    ["query", ""],
    ["gallery", "query"],
    ["gallery", "", "query", "gallery"],
]


@pytest.mark.parametrize("role", MIXTURES)
def test_every_row_is_a_query_or_a_reference(role):
    assert {*role} <= {*ROLES}
    role = np.array(role, "<U7")
    queries, references = query_rows(role), reference_rows(role)
    rows = np.arange(len(role))
    np.testing.assert_array_equal(np.union1d(queries, references), rows)
    apart = not np.intersect1d(queries, references).size
    assert has_gallery(role) == (apart and len(role) > 0)


def test_rows_without_a_role_are_queries():
    role = np.array(["", "gallery", "query"])
    assert query_rows(role).tolist() == [0, 2]
    assert reference_rows(role).tolist() == [1]
