from keras_dml.naming import nearest


def test_the_closest_names_come_first():
    assert nearest("proxynca_p", ["softmax", "proxynca_pp"]) == "'proxynca_pp'"


def test_something_is_always_suggested():
    assert nearest("zzz", ["softmax"]) == "'softmax'"
