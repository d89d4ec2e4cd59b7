from keras_dml.naming import differences, nearest


def test_the_closest_names_come_first():
    assert nearest("proxynca_p", ["softmax", "proxynca_pp"]) == "'proxynca_pp'"


def test_something_is_always_suggested():
    assert nearest("zzz", ["softmax"]) == "'softmax'"


def test_differences_name_nested_settings_and_those_of_one_side():
    stored = {"model": {"dim": 64, "extra": {}}, "k": [1, 2]}
    given = {"model": {"dim": 32, "extra": {}}, "k": [1, 2], "seed": 0}
    assert differences(stored, given) == [
        "`model.dim` was 64, received 32",
        "`seed` was None, received 0",
    ]
