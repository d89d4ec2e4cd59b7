"""Every recipe's network, loss and optimizers go together."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_dml.config import load_recipe, recipe_names, resolve
from keras_dml.config.merging import flatten
from keras_dml.models import BACKBONES
from keras_dml.models.small_cnn import small_cnn
from keras_dml.run.compiling import build_optimizer
from keras_dml.run.loss_terms import build_loss, loss_head
from keras_dml.run.models import build_models

VARIANTS = [
    variant
    for name in recipe_names()
    for variant in (
        name,
        *(f"{name}:{preset}" for preset in load_recipe(name).presets),
    )
]
SMALL = {
    "data": {"image_size": 8, "channels": 1},
    "model": {"backbone": "small_cnn", "dim": 16, "weights": "none", "k": 1},
}


def narrow(input_shape, weights=None):
    return small_cnn(input_shape, widths=(8,), stem=4)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_changes_every_trained_weight(variant, monkeypatch):
    network = BACKBONES["small_cnn"]
    monkeypatch.setitem(
        BACKBONES, "small_cnn", dataclasses.replace(network, builder=narrow)
    )
    config = resolve(variant, "omniglot", flags=SMALL)
    labels = np.arange(16, dtype="int32") // 4
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 255, (16, 8, 8, 1)).astype("float32")
    trainer = build_models(config, num_classes=5).trainer
    trainer.compile(
        build_optimizer(
            config.optimizer,
            epochs=1,
            steps_per_epoch=2,
            head=loss_head(config.loss),
        ),
        build_loss(config.loss, groups=[0, 0, 1, 1, 2]),
        run_eagerly=True,
    )
    before = [np.array(v.numpy()) for v in trainer.trainable_variables]
    inputs = {"image": images, "label": labels}
    losses = [float(trainer.train_on_batch(inputs, labels)) for _ in range(2)]
    assert np.isfinite(losses).all()
    same = {
        variable.path
        for variable, value in zip(
            trainer.trainable_variables, before, strict=True
        )
        if np.array_equal(np.array(variable.numpy()), value)
    }
    frozen = config.optimizer.proxies.lr == 0
    untrained = ("boundaries/", "proxies/")
    assert all(frozen and path.startswith(untrained) for path in same)
    assert all(np.isfinite(v.numpy()).all() for v in trainer.variables)
    keras.utils.clear_session()


# How losses on views and heated ones differ, and whatever is theirs alone.
OWN = ("augmentation.", "model.whitening", "stages.main.train.share", "heated")
METHOD = ("minutes", "passes", "refit", "data.", "augmentation.", "evaluation.")
METHOD += ("stages.", "sampling.steps", "model.batch_norm", "model.dim")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_trains_a_pretrained_network_by_one_method(name):
    """Losses and samplings differ; start, length and way back do not."""
    flags = {"model": {"backbone": "mobilenet_v2", "weights": "imagenet"}}

    def method(recipe):
        config = resolve(recipe, "photos", flags=flags)
        values = flatten(config.model_dump(mode="json"))
        own = OWN if recipe not in ("norm_softmax", "proxy_anchor") else ()
        return {
            key: value
            for key, value in values.items()
            if key.startswith(METHOD) and not any(one in key for one in own)
        }

    usual, found = method("norm_softmax"), method(name)
    assert len(found) > 30
    assert found == {key: usual[key] for key in found}
    config = resolve(name, "photos", flags=flags)
    assert config.model.whitening and config.evaluation.interpolate
