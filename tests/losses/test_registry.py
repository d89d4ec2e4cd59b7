import keras
import numpy as np
import pytest

from keras_dml import former, losses, regularizers
from keras_dml.errors import UsageError
from keras_dml.models import HEADS, get_head
from tests.conformance import roundtrip


@pytest.mark.parametrize("name", losses.LOSSES)
def test_names_are_those_of_the_losses(name):
    loss = losses.get(name)
    assert type(loss) is losses.LOSSES[name]
    assert loss.name == name


def test_arguments_reach_the_loss():
    assert losses.get("softmax", reduction="sum").reduction == "sum"


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'proxyncaa'.*mean 'proxynca'"):
        losses.get("proxyncaa")


@pytest.mark.parametrize("name", former.LOSSES)
def test_names_of_version_0_1_are_still_read(name):
    assert type(losses.get(name)) is losses.LOSSES[former.LOSSES[name]]
    assert losses.input_of(name) == losses.input_of(former.LOSSES[name])


@pytest.mark.parametrize(
    "name, cls",
    [
        ("CentreDistance", regularizers.CenterDistance),
        ("SubCentreArcFace", losses.SubCenterArcFace),
    ],
)
def test_classes_of_version_0_1_are_still_loaded(name, cls):
    saved = keras.saving.serialize_keras_object(cls())
    saved |= {"class_name": name, "registered_name": f"keras_dml>{name}"}
    assert type(keras.saving.deserialize_keras_object(saved)) is cls


def test_get_takes_what_get_of_keras_takes():
    loss = losses.ArcFace(margin=0.3)
    assert losses.get(loss) is loss
    assert losses.get(losses.ArcFace, margin=0.3).margin == 0.3
    assert losses.get("ArcFace", margin=0.3).margin == 0.3
    for config in (
        losses.serialize(loss),
        {"class_name": "ArcFace", "config": {"margin": 0.3}},
        {"class_name": "arcface", "config": {"margin": 0.3}},
    ):
        assert type(losses.get(config)) is losses.ArcFace
        assert losses.deserialize(config).margin == 0.3
    with pytest.raises(UsageError, match="name or a class.*margin"):
        losses.get(loss, margin=0.4)


def test_configs_of_version_0_1_are_still_loaded():
    config = {"name": "arc_face", "reduction": "sum_over_batch_size"}
    loss = losses.deserialize(
        {
            "module": "keras_dml.losses.arc_face",
            "class_name": "ArcFace",
            "config": {**config, "margin": 0.3, "scale": 64.0},
            "registered_name": "keras_dml>ArcFace",
        }
    )
    assert (loss.name, loss.margin) == ("arc_face", 0.3)


def test_a_loss_of_a_user_saves_what_it_declares():
    class Milder(losses.ArcFace):
        def __init__(self, factor=0.5, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

    config = Milder(factor=0.2, margin=0.3).get_config()
    assert config["factor"] == 0.2
    assert config["margin"] == 0.3
    assert config["name"].startswith("milder")


def test_an_unknown_argument_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'reductio'.*mean 'reduction'"):
        losses.get("softmax", reductio="sum")


def test_losses_of_other_packages_are_found_by_their_path():
    loss = losses.get("keras.losses.Circle", gamma=64.0)
    assert type(loss) is keras.losses.Circle
    assert loss.gamma == 64.0


@pytest.mark.parametrize(
    "name, message",
    [
        ("keras.losses.Cirkle", "cannot be imported.*Cirkle"),
        ("no_such_package.Loss", "cannot be imported.*no_such_package"),
        ("keras.layers.Dense", "must be the path of a loss"),
    ],
)
def test_paths_that_name_no_loss_are_refused(name, message):
    with pytest.raises(UsageError, match=message):
        losses.get(name)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_every_loss_says_what_it_takes(name):
    assert losses.input_of(name) in HEADS


@pytest.mark.parametrize(
    "name, takes",
    [
        ("norm_softmax", "logits"),
        ("proxy_anchor", "similarities"),
        ("proxy_isa", "weighted_similarities"),
        ("triplet", "embeddings"),
        ("margin", "embeddings_and_boundaries"),
    ],
)
def test_input_of(name, takes):
    assert losses.input_of(name) == takes


def test_a_loss_of_another_package_must_be_told_what_it_takes():
    name = "keras.losses.Circle"
    assert losses.input_of(name, "unit_embeddings") == "unit_embeddings"
    with pytest.raises(UsageError, match="`takes` must say.*unit_embeddings"):
        get_head(losses.input_of(name))


def test_ours_cannot_be_told_otherwise():
    with pytest.raises(UsageError, match="takes logits.*takes='embeddings'"):
        losses.input_of("softmax", "embeddings")


@pytest.mark.parametrize("identifier", [None, 3, {}, {"config": {}}])
def test_what_names_no_loss_is_refused(identifier):
    with pytest.raises(UsageError, match="identifier|class_name"):
        losses.get(identifier)


@pytest.mark.parametrize("name", ["norm_softmax", "triplet"])
def test_lists_are_rows(name):
    rows = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]
    loss = losses.get(name)
    expected = loss(np.array([0, 0, 1]), np.array(rows, np.float32))
    np.testing.assert_allclose(loss([0, 0, 1], rows), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="a row for each image"):
        loss(np.int64(0), np.float32(1.0))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relational", {}),
        ("weighted_sum", {"losses": ["contrastive", "MultiSimilarity"]}),
        ("matryoshka", {"loss": "contrastive", "widths": [2]}),
        ("with_memory", {"loss": {"name": "contrastive", "power": 2.0}}),
        ("with_distillation", {"loss": "keras.losses.Dice"}),
        ("on_moments", {"loss": "triplet"}),
        ("on_sampled_classes", {"loss": "SparseCategoricalCrossentropy"}),
        ("at_step", {"loss": "contrastive"}),
    ],
)
def test_the_name_of_any_loss_is_its_key(name, arguments):
    loss = losses.get(name, **arguments)
    assert loss.name == name
    assert type(losses.get(type(loss).__name__, **arguments)) is type(loss)
    assert type(losses.get({"name": name, **arguments})) is type(loss)
    assert roundtrip(loss).name == name


def test_a_dict_of_a_name_and_arguments_is_a_loss():
    """As miners take it."""
    loss = losses.get({"name": "arcface", "margin": 0.3})
    assert (type(loss), loss.margin) == (losses.ArcFace, 0.3)
    with pytest.raises(UsageError, match="has no argument 'margins'"):
        losses.get({"name": "arcface", "margins": 0.3})


def test_an_unknown_name_of_an_inner_loss_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'contrastve'.*mean 'contrastive'"):
        losses.Matryoshka("contrastve", [2])
    with pytest.raises(ValueError, match="`loss` must be a loss object.*'mse'"):
        losses.Matryoshka("mse", [2])
