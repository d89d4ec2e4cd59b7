import pytest

from keras_dml.errors import Mistakes, UsageError


def test_one_error_names_each_mistake_once():
    mistakes = Mistakes()
    for source in "aab":
        with mistakes.collected(f"{source}: "):
            raise UsageError("is missing\nis empty")
    with pytest.raises(UsageError) as caught:
        mistakes.check("Data: ")
    assert str(caught.value).splitlines() == [
        "Data: a: is missing",
        "a: is empty",
        "b: is missing",
        "b: is empty",
    ]


def test_without_a_mistake_nothing_is_raised():
    mistakes = Mistakes()
    with mistakes.collected():
        pass
    mistakes.check()


def test_other_errors_get_through():
    with pytest.raises(KeyError), Mistakes().collected():
        raise KeyError("x")
