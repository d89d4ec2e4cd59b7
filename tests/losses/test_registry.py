import pytest

from keras_dml import losses
from keras_dml.errors import UsageError


@pytest.mark.parametrize("name", losses.LOSSES)
def test_names_are_those_of_the_losses(name):
    loss = losses.get(name)
    assert type(loss) is losses.LOSSES[name]
    assert loss.name == name


def test_arguments_reach_the_loss():
    assert losses.get("softmax", reduction="sum").reduction == "sum"


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'proxynca'.*mean 'proxy_nca'"):
        losses.get("proxynca")


def test_an_unknown_argument_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'reductio'.*mean 'reduction'"):
        losses.get("softmax", reductio="sum")
