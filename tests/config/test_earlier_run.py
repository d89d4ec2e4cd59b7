"""Changes of a run's `config.yaml` undo what followed from what they change."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_dml.config import dump_run_config, flags_of, resolve
from keras_dml.config.resolve import again
from keras_dml.errors import UsageError
from keras_dml.run.settling import settle

SAMPLE = "model.proxies.sample=0.5"


@pytest.fixture
def saved(tmp_path):
    """Writes a configuration as `config.yaml` and returns its path."""

    def save(config):
        path = tmp_path / "config.yaml"
        path.write_text(dump_run_config(config))
        return path

    return save


def settled(config, side=70):
    images = np.zeros((2, side, side, 3), np.uint8)
    train = SimpleNamespace(images=images, paths=None)
    return settle(config, SimpleNamespace(train=train))


@pytest.mark.parametrize(
    "optimizer",
    [
        (),
        ("optimizer.backbone={name: adamw, weight_decay: 0.1}",),
        ("optimizer.proxies={name: sgd, lr: 0.1}",),
    ],
)
def test_without_its_sample_a_run_is_one_that_never_had_it(saved, optimizer):
    plain = resolve("norm_softmax", "digits", overrides=optimizer)
    whole = resolve("norm_softmax", "digits", overrides=[*optimizer, SAMPLE])
    config = again(saved(whole), overrides=["model.proxies.sample=null"])
    assert config.model == plain.model
    assert config.loss == plain.loss
    # With a decay, Keras' Adam is AdamW.
    name = config.optimizer.proxies.name
    assert name == plain.optimizer.proxies.name.removesuffix("w")
    proxies = plain.optimizer.proxies.changed(name=name)
    assert config.optimizer == plain.optimizer.changed(proxies=proxies)


def test_a_run_with_a_sample_trains_again_as_it_was(saved):
    for more in ([], ["optimizer.proxies.name=row_lazy_adam"]):
        config = resolve("norm_softmax", "digits", overrides=[SAMPLE, *more])
        assert again(saved(config)) == config
        other = again(saved(config), overrides=["model.proxies.sample=0.2"])
        assert other == config.changed(model={"proxies": {"sample": 0.2}})


def test_an_optimizer_that_is_set_stays_without_the_sample(saved):
    config = resolve("norm_softmax", "digits", overrides=[SAMPLE])
    changes = {"model.proxies.sample": None}
    changes["optimizer.proxies.name"] = "row_lazy_adam"
    config = again(saved(config), overrides=changes)
    assert config.optimizer.proxies.name == "row_lazy_adam"


def test_a_sampled_loss_needs_a_sample(saved):
    config = resolve("norm_softmax", "digits", overrides=[SAMPLE])
    path = saved(config)
    path.write_text(path.read_text().replace("sample: 0.5", "sample: null"))
    with pytest.raises(UsageError, match=r"`loss\.0\.sampled` .*Received: nu"):
        again(path)
    with pytest.raises(UsageError, match=r"`loss\.0\.sampled` needs"):
        resolve("norm_softmax", "digits", overrides=["loss.0.sampled=true"])


def pretrained(*overrides, **flags):
    flags = flags_of({"backbone": "resnet50", **flags})
    return resolve("norm_softmax", "./x", flags=flags, overrides=overrides)


@pytest.mark.parametrize("size", [200, 160, 40, None])
def test_another_image_size_is_settled_as_in_a_new_run(saved, size):
    path = saved(settled(pretrained()))
    old = again(path).data
    assert (old.natural_size, old.image_size, old.train_size) == (70, 160, 128)
    config = again(path, overrides={"data.image_size": size})
    assert settled(config) == settled(pretrained(image_size=size))
    if size:
        assert again(path, flags=flags_of({"image_size": size})) == config


def test_sizes_that_are_set_too_stay(saved):
    path = saved(settled(pretrained()))
    changes = {"data.image_size": 128, "data.train_size": 96}
    changes["augmentation.resize"] = 160
    config = settled(again(path, overrides=changes))
    assert (config.data.train_size, config.augmentation.resize) == (96, 160)
    path = saved(settled(pretrained("augmentation.resize=200")))
    config = again(path, overrides=["data.image_size=128"])
    assert config.augmentation.resize == 200
    path = saved(settled(pretrained()))
    other = again(path, overrides=["model.dim=8"])
    assert other == again(path).changed(model={"dim": 8})


@pytest.mark.parametrize(
    ("before", "weights", "after", "settled_weights"),
    [
        ("resnet50", "auto", "small_cnn", "none"),
        ("small_cnn", "auto", "resnet50", "imagenet"),
        ("resnet50", "auto", "hub:resnet_18_imagenet", "auto"),
        ("resnet50", "none", "mobilenet_v2", "none"),
        ("resnet50", "auto", "resnet50", "imagenet"),
    ],
)
def test_another_backbone_starts_from_its_own_weights(
    saved, before, weights, after, settled_weights
):
    flags = {"backbone": before, "weights": weights, "image_size": 64}
    path = saved(settled(resolve("norm_softmax", "./x", flags=flags_of(flags))))
    config = again(path, flags=flags_of({"backbone": after}))
    assert config.data.image_size == 64
    if not after.startswith("hub:"):
        config = settled(config)
    assert config.model.weights == settled_weights
    flags = flags_of({"backbone": after, "weights": "own.weights.h5"})
    assert again(path, flags=flags).model.weights == "own.weights.h5"


def test_weights_of_a_file_are_no_settled_ones(saved, tmp_path):
    file = str(tmp_path / "own.weights.h5")
    path = saved(settled(pretrained(weights=file)))
    config = again(path, flags=flags_of({"backbone": "mobilenet_v2"}))
    assert config.model.weights == file


def planned(**changes):
    """A run for minutes, as its folder holds it once its length is settled."""
    config = pretrained("stages.main.train.epochs=11")
    return config.changed(evaluation={"every": 3}, **changes)


@pytest.mark.parametrize("length", [{"minutes": 60}, {"epochs": 20}])
def test_another_length_may_have_the_refit_that_was_left_out(saved, length):
    """It never came back, however many minutes there were."""
    path = saved(planned(refit=None))
    config = again(path, flags=flags_of(length))
    assert (config.refit, config.evaluation.every) == (True, None)
    fixed = ["refit=false", "evaluation.every=2"]
    config = again(path, flags=flags_of(length), overrides=fixed)
    assert (config.refit, config.evaluation.every) == (False, 2)
    never = again(saved(planned(refit=False)), flags=flags_of(length))
    assert never.refit is False


def test_other_minutes_open_the_epochs_however_they_are_given(saved):
    """With `--set minutes=30` the old epochs stayed."""
    path = saved(planned())
    by_flag = again(path, flags=flags_of({"minutes": 30}))
    assert again(path, overrides=["minutes=30"]) == by_flag
    assert (by_flag.stages[0].phases[0].epochs, by_flag.passes) == (None, None)
    fixed = ["minutes=30", "stages.main.train.epochs=5"]
    assert again(path, overrides=fixed).stages[0].phases[0].epochs == 5


def test_epochs_that_minutes_made_longer_end_with_the_minutes(saved):
    """An hour of quick steps had epochs of 3,600; 20 of them are none."""
    long = planned().changed(sampling={"steps_per_epoch": 3600})
    path = saved(long)
    for flags in ({"minutes": 5}, {"epochs": 20}):
        changed = again(path, flags=flags_of(flags))
        assert changed.sampling.steps_per_epoch == 50
    assert again(path).sampling.steps_per_epoch == 3600
    given = ["minutes=5", "sampling.steps_per_epoch=70"]
    assert again(path, overrides=given).sampling.steps_per_epoch == 70


def test_an_epoch_that_minutes_made_shorter_ends_with_the_minutes(saved):
    """20 epochs of the 14 steps that fitted into ten minutes are few."""
    (stage,) = planned().stages
    once = [phase.changed(epochs=1) for phase in stage.phases]
    short = planned().changed(
        stages=[stage.changed(phases=once)],
        sampling={"steps_per_epoch": 14},
    )
    path = saved(short)
    assert again(path).sampling.steps_per_epoch == 14
    for flags in ({"minutes": 60}, {"epochs": 20}):
        changed = again(path, flags=flags_of(flags))
        assert changed.sampling.steps_per_epoch == 50
    # Several epochs are as long as somebody wished.
    path = saved(planned().changed(sampling={"steps_per_epoch": 14}))
    changed = again(path, flags=flags_of({"epochs": 20}))
    assert changed.sampling.steps_per_epoch == 14


def test_a_run_trains_again_without_the_refit_that_was_left_out(saved):
    config = planned(refit=None)
    assert again(saved(config)) == config
    assert again(saved(config), overrides=["seed=3"]).refit is None
    # The epoch that is kept is one that was validated.
    best = config.changed(evaluation={"select": "best"})
    longer = again(saved(best), flags=flags_of({"epochs": 20}))
    assert longer.evaluation.every == 3


def test_another_loss_brings_the_batches_and_proxies_that_it_needs(saved):
    """A loss on pairs got random batches, where classes rarely meet."""
    flags = flags_of({"backbone": "mobilenet_v2"})
    path = saved(resolve("proxy_anchor", "photos", flags=flags))
    changed = again(path, flags=flags_of({"loss": "triplet"}))
    own = resolve("triplet", "photos", flags=flags)
    assert changed.sampling.kind == own.sampling.kind == "balanced"
    assert changed.sampling.images == own.sampling.images
    assert changed.model.proxies == own.model.proxies
