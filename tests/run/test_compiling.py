import keras
import pytest

from keras_dml import losses
from keras_dml.config import LossConfig, MemoryConfig
from keras_dml.errors import UsageError
from keras_dml.run.compiling import (
    build_loss,
    build_memory,
    check_replicas,
    loss_input,
)

KERAS_CIRCLE = LossConfig(name="keras.losses.Circle", takes="unit_embeddings")


def with_memory(name, **changes):
    return LossConfig(name=name, memory=MemoryConfig(size=64, **changes))


def test_one_term_is_the_loss_itself():
    assert type(build_loss([LossConfig(name="softmax")])) is losses.Softmax


def test_several_terms_are_summed():
    terms = [
        LossConfig(name="softmax"),
        LossConfig(name="proxy_nca", weight=0.5),
    ]
    built = build_loss(terms)
    assert type(built) is losses.WeightedSum
    assert built.weights == [1.0, 0.5]
    assert loss_input(terms) == "logits"


def test_terms_that_take_different_inputs_are_refused():
    terms = [LossConfig(name="softmax"), LossConfig(name="triplet")]
    with pytest.raises(UsageError, match="'softmax' logits, 'triplet' emb"):
        loss_input(terms)


def test_a_memory_holds_the_loss_and_its_arguments():
    term = LossConfig(
        name="contrastive",
        arguments={"negative_margin": 0.3},
        memory=MemoryConfig(size=64, weight=0.5, warm_up_steps=7),
    )
    memory = build_memory([term])
    assert memory.name == "memory"
    assert (memory.size, memory.weight, memory.warm_up_steps) == (64, 0.5, 7)
    assert memory.loss.negative_margin == 0.3
    built = build_loss([term])
    assert type(built) is losses.WithMemory
    assert built.loss.negative_margin == 0.3


def test_most_losses_have_no_memory():
    assert build_memory([LossConfig(name="softmax")]) is None


@pytest.mark.parametrize(
    "terms, message",
    [
        (
            [with_memory("contrastive"), LossConfig(name="triplet")],
            "one term of weight 1. Received: 2 terms",
        ),
        ([with_memory("n_pair")], "loss.0.memory`: `loss` must be"),
        ([with_memory("softmax")], "loss.0.memory`: `loss` must be"),
    ],
)
def test_memories_that_cannot_be_are_refused(terms, message):
    with pytest.raises(UsageError, match=message):
        build_memory(terms)


def test_the_circle_of_keras_is_refused_on_several_devices():
    assert type(build_loss([KERAS_CIRCLE])) is keras.losses.Circle
    check_replicas([KERAS_CIRCLE], 1)
    check_replicas([LossConfig(name="circle")], 2)
    with pytest.raises(UsageError, match="'keras.losses.Circle'.*2 devices"):
        check_replicas([KERAS_CIRCLE], 2)
