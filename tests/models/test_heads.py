"""The heads: what each kind of loss needs."""

import keras
import pytest

from keras_dml import callbacks, layers, losses
from keras_dml.errors import UsageError
from keras_dml.models import HEADS, HeadOptions, get_head
from keras_dml.models.head import label_input, unused_input

EACH = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_every_loss_has_a_head(name):
    assert losses.input_of(name) in HEADS


@EACH
def test_a_head_has_variables_if_it_says_so(head):
    embedding, label = unused_input((4,)), label_input()
    options = HeadOptions(sample_aware={"memory_size": 8})
    output = head.connect(embedding, label, 3, options)
    model = keras.Model([embedding, label], output)
    assert bool(model.trainable_variables) == head.has_variables
    if head.has_class_columns:
        assert head.proxies(model) is model.get_layer("proxies")
    else:
        assert head.proxies(model) is None


@EACH
def test_the_callbacks_of_a_head(head):
    kinds = [type(one) for one in head.callbacks(lambda epoch: [], print)]
    expected = [callbacks.BatchCheck] if head.compares_rows else []
    if head.name == "weighted_similarities":
        expected = [callbacks.CountEpochs]
    assert kinds == expected


@EACH
def test_only_embeddings_have_a_memory(head):
    memory = layers.CrossBatchMemory(losses.Contrastive(), size=8)
    options = HeadOptions(memory=memory)
    if head.name == "embeddings":
        head.check(options, "float32")
    else:
        with pytest.raises(UsageError, match=f"takes {head.name}"):
            head.check(options, "float32")


@EACH
def test_foreign_losses_on_rows_are_refused_on_several_replicas(head):
    head.check_replicas("mine", 1)
    if head.compares_rows:
        with pytest.raises(UsageError, match="'mine'.*2 devices"):
            head.check_replicas("mine", 2)
    else:
        head.check_replicas("mine", 2)


def test_an_unknown_head_is_refused_with_all_that_are_known():
    with pytest.raises(UsageError, match="`logits`.*Received: takes=None"):
        get_head(None)
