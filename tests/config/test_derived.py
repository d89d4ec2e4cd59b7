import pytest

from keras_dml.config import (
    RunConfig,
    dump_run_config,
    load_run_config,
    resolve,
    validate,
)
from keras_dml.errors import UsageError

SAMPLE = "model.proxies.sample=0.1"


def values(**changes):
    return {
        "loss": [{"name": "softmax"}],
        "stages": [{"phases": [{"epochs": 1}]}],
        **changes,
    }


def sampled(**optimizer):
    model = {"proxies": {"sample": 0.1}}
    return validate(values(model=model, optimizer=optimizer)).optimizer


def test_nothing_changes_without_a_sample():
    config = validate(values())
    assert config.model.proxies.sample is None
    assert not config.loss[0].sampled
    assert config.optimizer.proxies.name == "adam"


def test_a_sample_reaches_loss_and_optimizer_and_is_saved(tmp_path):
    config = resolve("norm_softmax", "omniglot", overrides=[SAMPLE])
    plain = resolve("norm_softmax", "omniglot")
    assert all(term.sampled for term in config.loss)
    assert config.optimizer.proxies.name == "row_lazy_adam"
    assert config.optimizer.proxies.lr == plain.optimizer.proxies.lr
    assert config.optimizer.backbone == plain.optimizer.backbone
    path = tmp_path / "config.yaml"
    path.write_text(dump_run_config(config))
    assert load_run_config(path) == config


@pytest.mark.parametrize(
    ("sampling", "classes"),
    [
        ({}, 32),
        ({"kind": "random"}, 128),
        ({"kind": "random", "batch_size": 50, "classes": 3}, 50),
        ({"batch_size": 50, "images": 4}, 13),
        ({"batch_size": 50, "images": 4, "classes": 7}, 7),
    ],
)
def test_a_sample_holds_the_classes_of_a_batch(sampling, classes):
    model = {"proxies": {"sample": 0.1}}
    proxies = validate(values(model=model, sampling=sampling)).model.proxies
    assert proxies.sample_at_least == classes


def test_mistakes_in_sampling_are_reported_as_such():
    model = {"proxies": {"sample": 0.1}}
    with pytest.raises(UsageError, match=r"`sampling\.batch_size`"):
        validate(values(model=model, sampling={"batch_size": "many"}))


def test_adam_and_adamw_become_lazy_with_their_decay():
    assert sampled().proxies.name == "row_lazy_adam"
    lazy = sampled(backbone={"name": "adamw"})
    assert lazy.proxies.name == "row_lazy_adam"
    assert lazy.proxies.weight_decay == 0.004
    assert lazy.backbone.name == "adamw"
    lazy = sampled(
        backbone={"name": "sgd"},
        proxies={"name": "adamw", "weight_decay": 0.1},
    )
    assert lazy.proxies.name == "row_lazy_adam"
    assert lazy.proxies.weight_decay == 0.1
    assert lazy.backbone.name == "sgd"


def test_a_decay_of_zero_is_none_at_all():
    lazy = sampled(backbone={"name": "adamw", "weight_decay": 0.0})
    assert lazy.proxies.weight_decay == 0.0
    lazy = sampled(
        backbone={"name": "adamw", "weight_decay": 0.1},
        proxies={"weight_decay": 0.0},
    )
    assert lazy.head.weight_decay == 0.1
    assert lazy.proxies.weight_decay == 0.0


def test_without_a_decay_an_optimizer_has_its_own():
    for group in validate(values()).optimizer:
        assert group[1].weight_decay is None
    assert sampled(backbone={"name": "sgd"}).proxies.weight_decay is None


@pytest.mark.parametrize("name", ["sgd", "torch_adam", "row_lazy_adam"])
def test_other_optimizers_stay(name):
    assert sampled(backbone={"name": name}).proxies.name == name


def test_sections_may_be_made_already():
    config = validate(values())
    assert RunConfig(loss=config.loss, stages=config.stages) == config


@pytest.mark.parametrize("share", [0, 1.5, "half"])
def test_shares_are_checked(share):
    with pytest.raises(UsageError, match=r"model\.proxies\.sample"):
        resolve(
            "norm_softmax",
            "omniglot",
            overrides=[f"model.proxies.sample={share}"],
        )


def test_proxies_take_adam_where_the_backbone_has_muon():
    changes = ["optimizer.backbone={name: muon, arguments: {momentum: 0.9}}"]
    config = resolve("norm_softmax", "digits", overrides=changes)
    head, proxies = config.optimizer.head, config.optimizer.proxies
    assert (head.name, head.arguments) == ("muon", {"momentum": 0.9})
    assert (proxies.name, proxies.arguments) == ("adam", {})
    changes.append("optimizer.proxies.name=muon")
    config = resolve("norm_softmax", "digits", overrides=changes)
    assert config.optimizer.proxies.arguments == {"momentum": 0.9}
