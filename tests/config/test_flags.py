import sys

import pytest

from keras_dml.config import (
    differences,
    dump_run_config,
    explain,
    flags_of,
    recipe_names,
    resolve,
)
from keras_dml.config.resolve import again
from keras_dml.errors import UsageError


def test_an_argument_of_fit_sets_any_key(monkeypatch, tmp_path):
    keys = sys.modules["keras_dml.config.flags"].FLAGS
    monkeypatch.setitem(keys, "epochs", "stages.main.train.epochs")
    arguments = {"epochs": 7, "weights": tmp_path, "seed": 0, "devices": None}
    flags = flags_of(arguments)
    assert flags["model"] == {"weights": str(tmp_path)}
    assert flags["seed"] == 0 and "devices" not in flags
    del flags["model"]
    config = resolve("norm_softmax", "digits", flags=flags)
    changed = differences(resolve("norm_softmax", "digits"), config)
    assert [*changed] == ["stages.main.train.epochs"]


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"batch_size": 8}, {"sampling.batch_size": 8}),
        ({"image_size": 64}, {"data.image_size": 64}),
        ({"dim": 16}, {"model.dim": 16}),
        (
            {"lr": 0.5},
            {"optimizer.backbone.lr": 0.5, "optimizer.head.lr": 0.5},
        ),
        ({"freeze": "all"}, {"stages.main.train.freeze": "all"}),
    ],
)
def test_short_options_set_what_they_say_and_nothing_else(given, changed):
    config = resolve("norm_softmax", "digits", flags=flags_of(given))
    found = differences(resolve("norm_softmax", "digits"), config)
    assert {key: value for key, (_, value) in found.items()} == changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"epochs": 3},
            "`epochs` changes the phase 'train' of the stage 'main'.* "
            r"Received: epochs=3 with the stages 'search' and 'final'\. Set "
            r"`stages\.search\.train\.epochs` and "
            r"`stages\.final\.train\.epochs` with `settings` instead\.",
        ),
        (
            {"minutes": 2},
            r"`minutes` .* Received: minutes=2 with .*\.final\.train\.epochs`",
        ),
        (
            {"freeze": "all"},
            r"`freeze` .* Received: freeze=all .*\.final\.train\.freeze`",
        ),
    ],
)
def test_a_phase_that_a_recipe_does_not_have(tmp_path, arguments, message):
    flags = flags_of(arguments)
    with pytest.raises(UsageError, match=message):
        resolve("proxynca_pp", "cub200", flags=flags)
    path = tmp_path / "config.yaml"
    path.write_text(dump_run_config(resolve("norm_softmax", "cub200")))
    with pytest.raises(UsageError, match=message):
        again(path, flags=flags)
    assert resolve("proxynca_pp", "inshop", flags=flags)
    assert resolve("proxynca_pp:default", "cub200", flags=flags)


def test_a_phase_of_another_name_is_named(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "common: {loss: [{name: softmax}], stages: "
        "[{phases: [{name: first}, {name: second}]}]}"
    )
    with pytest.raises(
        UsageError, match=r"`stages\.main\.second\.freeze` with"
    ):
        resolve(str(path), "./x", flags=flags_of({"freeze": "all"}))


@pytest.mark.parametrize("source", ["cub200", "sop", "digits", "./x"])
@pytest.mark.parametrize("name", recipe_names())
def test_a_rate_leaves_the_proxies_theirs(name, source):
    without = resolve(name, source).optimizer
    given = resolve(name, source, flags=flags_of({"lr": 0.00777})).optimizer
    assert given.backbone == without.backbone.changed(lr=0.00777)
    assert given.head == without.head.changed(lr=0.00777)
    # An open rate is that of the network, which no number stands for.
    if without.proxies.lr is not None:
        assert given.proxies == without.proxies


def test_the_rate_of_the_proxies_knows_where_it_was_set():
    explained = explain("bn", "cars196", flags=flags_of({"lr": 0.5}))
    assert explained.config.optimizer.proxies.lr == 4e-3
    assert explained.origins["optimizer.proxies.lr"] == (
        "_heated_up: sources.cars196"
    )


def test_a_loss_replaces_that_of_the_recipe():
    flags = flags_of({"loss": "proxy_anchor"})
    (term,) = resolve("norm_softmax", "digits", flags=flags).loss
    assert (term.name, term.arguments) == ("proxy_anchor", {})


def test_a_loss_brings_the_batches_and_proxies_that_it_needs():
    """Without pairs in a batch, and with proxies to start, it cannot train."""
    flags = {"backbone": "mobilenet_v2", "loss": "triplet"}
    config = resolve("norm_softmax", "photos", flags=flags_of(flags))
    own = resolve("triplet", "photos", flags=flags_of(flags))
    assert config.sampling == own.sampling
    assert config.sampling.kind == "balanced"
    assert not config.model.proxies.class_means
    chosen = resolve(
        "norm_softmax",
        "photos",
        flags=flags_of(flags),
        overrides=["sampling.images=8"],
    )
    assert chosen.sampling.images == 8


def test_minutes_and_epochs_are_refused_together():
    with pytest.raises(
        UsageError, match=r"`minutes=2` and `epochs=3`. Leave one"
    ):
        flags_of({"minutes": 2, "epochs": 3})


@pytest.mark.parametrize("form", [str, lambda path: path])
def test_a_file_lists_the_classes_that_train(tmp_path, form):
    path = tmp_path / "train.txt"
    path.write_bytes("\ufeffsand boot\r\n\r\n  007 \n".encode())
    flags = flags_of({"train_classes": form(path)})
    assert flags == {"data": {"train_classes": ["sand boot", "007"]}}
    config = resolve("norm_softmax", str(tmp_path), flags=flags)
    assert config.data.train_classes == ["sand boot", "007"]


def test_names_list_the_classes_that_train():
    flags = flags_of({"train_classes": ("boot", "clog")})
    assert flags == {"data": {"train_classes": ["boot", "clog"]}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "one class in each line. Received: .*No such file"),
        (b"\xff\xfe\xff", "one class in each line. Received: .*utf-8"),
        (b" \n\n", "at least one class. Received: the empty file"),
        (b"a\n" * 45_001, "at most 45,000 classes.*Received: 45,001 names"),
        (b"a" * 500_001, "in 500,000 characters.*Received: 1 names"),
    ],
)
def test_a_file_without_classes_is_refused(tmp_path, content, message):
    path = tmp_path / "train.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=f"`train_classes` must .*{message}"):
        flags_of({"train_classes": path})


def test_the_head_alone_trains_in_every_phase():
    """The heated phase trained the network that the flag had frozen."""
    flags = {"backbone": "mobilenet_v2", "freeze": "all"}
    (stage,) = resolve("hbn", "photos", flags=flags_of(flags)).stages
    assert [phase.freeze for phase in stage.phases] == ["all", "all"]


def test_a_phase_that_freezes_more_than_the_flag_keeps_to_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "common: {loss: [{name: softmax}], stages: [{phases: "
        "[{name: warm, freeze: all}, {name: train}, {name: end}]}]}"
    )
    frozen = {"none": "all none none", "weights": "all weights weights"}
    for asked, expected in frozen.items():
        flags = flags_of({"freeze": asked})
        (stage,) = resolve(str(path), "./x", flags=flags).stages
        assert [phase.freeze for phase in stage.phases] == expected.split()


@pytest.mark.parametrize("name", ["matryoshka", "train_classes"])
def test_a_number_in_place_of_a_list_is_refused_by_name(name):
    """It was a `TypeError` of Python."""
    flags = flags_of({name: 32})
    with pytest.raises(UsageError, match=name):
        resolve("norm_softmax", "photos", flags=flags)
