import keras
import numpy as np
import pytest

from keras_dml import losses
from keras_dml.config import LossConfig, MemoryConfig, MomentsConfig
from keras_dml.errors import UsageError
from keras_dml.layers import TrainingStep
from keras_dml.models import get_head
from keras_dml.run.loss_terms import (
    build_loss,
    build_memory,
    build_moments,
    loss_head,
    needs_step,
)


def with_memory(name, **changes):
    return LossConfig(name=name, memory=MemoryConfig(size=64, **changes))


def test_one_term_is_the_loss_itself():
    assert type(build_loss([LossConfig(name="softmax")])) is losses.Softmax


def test_an_unknown_loss_is_named_once_with_the_nearest():
    with pytest.raises(UsageError) as error:
        build_loss([LossConfig(name="tripplet")])
    said = str(error.value)
    assert said.startswith("`loss.0.name`: The loss 'tripplet' is unknown")
    assert said.count("tripplet") == 1 and len(said) < 160
    assert "'triplet'" in said


def test_an_argument_that_is_refused_names_its_loss():
    wrong = LossConfig(name="triplet", arguments={"mining": "hardest"})
    with pytest.raises(
        UsageError, match="`loss.0.arguments` of 'triplet': `mining`"
    ):
        build_loss([wrong])


def test_several_terms_are_summed():
    terms = [
        LossConfig(name="softmax"),
        LossConfig(name="proxynca", weight=0.5),
    ]
    built = build_loss(terms)
    assert type(built) is losses.WeightedSum
    assert built.weights == [1.0, 0.5]
    assert loss_head(terms) is get_head("logits")


def test_terms_that_take_different_inputs_are_refused():
    terms = [LossConfig(name="softmax"), LossConfig(name="triplet")]
    with pytest.raises(UsageError, match="'softmax' logits, 'triplet' emb"):
        loss_head(terms)


def test_two_terms_of_one_loss_must_take_the_same_too():
    name = "keras.losses.MeanSquaredError"
    terms = [
        LossConfig(name=name, takes=one) for one in ("embeddings", "logits")
    ]
    with pytest.raises(UsageError, match="must take the same input"):
        loss_head(terms)


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


def test_a_miner_that_draws_gets_the_step():
    drawing = {"miner": {"name": "distance_weighted", "nearest": 0.6}}
    term = LossConfig(name="contrastive", arguments=drawing)
    built = build_loss([term])
    assert type(built) is losses.AtStep
    assert built.loss.miner.nearest == 0.6
    assert needs_step([term])
    term = term.changed(memory=MemoryConfig(size=64))
    built = build_loss([term])
    assert type(built.loss) is losses.WithMemory
    assert build_memory([term]).loss.miner.nearest == 0.6
    fixed = LossConfig(name="contrastive", arguments={"miner": "batch_hard"})
    assert build_loss([fixed]).miner is not None
    assert not needs_step([fixed])
    assert not needs_step([LossConfig(name="margin", arguments=drawing)])


class StepItself(losses.PairLoss):
    """The number of the step, for each row."""

    def pair_loss(self, pairs):
        rows = keras.ops.zeros(keras.ops.shape(pairs.embeddings)[0])
        return rows + keras.ops.cast(pairs.step, "float32")


def test_a_pair_loss_of_the_users_own_knows_the_step():
    term = LossConfig(name=f"{__name__}.StepItself")
    assert needs_step([term])
    embeddings = TrainingStep()(np.eye(4, 3, dtype="float32"))
    predictions = np.array(embeddings)
    predictions[:, -1] = 7
    assert float(build_loss([term])([0, 0, 1, 1], predictions)) == 7.0
    summed = term.changed(arguments={"reduction": "sum"})
    assert float(build_loss([summed])([0, 0, 1, 1], predictions)) == 28.0


class OnRows(keras.losses.Loss):
    """A loss of Keras alone, which knows of no pairs."""

    takes = "embeddings"

    def call(self, y_true, y_pred):
        return keras.ops.sum(y_pred, axis=1)


def test_a_loss_without_pairs_is_left_as_it_is():
    term = LossConfig(name=f"{__name__}.OnRows")
    assert not needs_step([term])
    assert type(build_loss([term])) is OnRows


def test_an_unknown_miner_is_refused_with_the_name_of_the_loss():
    term = LossConfig(name="contrastive", arguments={"miner": "batchhard"})
    with pytest.raises(UsageError, match="'contrastive'.*'batch_hard'"):
        build_loss([term])


def test_most_losses_have_no_memory_and_no_moments():
    assert build_memory([LossConfig(name="softmax")]) is None
    assert build_moments([LossConfig(name="softmax")]) is None


def test_moments_are_of_a_layer_and_its_loss():
    moments = MomentsConfig(orders=3, projections=64)
    term = LossConfig(
        name="contrastive", arguments={"negative_margin": 0.3}, moments=moments
    )
    layer = build_moments([term])
    assert layer.name == "moments"
    assert (layer.orders, layer.projections) == (3, 64)
    built = build_loss([term])
    assert type(built) is losses.OnMoments
    assert (built.loss.negative_margin, built.orders) == (0.3, 3)
    with pytest.raises(UsageError, match="`moments` needs a `loss` of one"):
        build_moments([term, term])


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


def test_sampled_classes_need_the_loss_that_knows_their_columns():
    terms = [
        LossConfig(name="softmax", sampled=True),
        LossConfig(name="proxynca", weight=0.5, sampled=True),
    ]
    built = build_loss(terms)
    assert type(built) is losses.OnSampledClasses
    assert built.loss.weights == [1.0, 0.5]
    assert loss_head(terms) is get_head("logits")
    match = "`loss.0.sampled`, which `model.proxies.sample` sets: .*'triplet'"
    with pytest.raises(UsageError, match=match):
        build_loss([LossConfig(name="triplet", sampled=True)])
