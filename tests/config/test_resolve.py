import json

import pytest

from keras_dml.config import (
    differences,
    dump_run_config,
    explain,
    flags_of,
    load_recipe,
    load_run_config,
    recipe_names,
    resolve,
    validate,
)
from keras_dml.config.resolve import again
from keras_dml.errors import UsageError

SOURCES = ["cub200", "cars196", "sop", "inshop", "omniglot", "digits", "./x"]


def smallest(**changes):
    return {
        "loss": [{"name": "softmax"}],
        "stages": [{"phases": [{"epochs": 1}]}],
        **changes,
    }


@pytest.mark.parametrize("name", recipe_names())
@pytest.mark.parametrize("source", SOURCES)
def test_every_recipe_resolves_for_every_source(name, source):
    config = resolve(name, source)
    assert config.data.source == source
    papers = load_recipe(name).sources
    assert config.section == (source if source in papers else "default")


@pytest.mark.parametrize("name", recipe_names())
def test_every_preset_resolves_and_changes_something(name):
    for preset in load_recipe(name).presets:
        assert resolve(f"{name}:{preset}", "omniglot").section == "default"
        # Where the recipe itself is the deck's, its preset names that.
        assert preset == "deck" or any(
            resolve(f"{name}:{preset}", source)
            != resolve(name, source).model_copy(
                update={"recipe": f"{name}:{preset}"}
            )
            for source in ("cub200", "inshop", "omniglot")
        )


DECK = [
    "contrastive",
    "triplet",
    "lifted",
    "n_pair",
    "proxynca",
    "margin",
    "arcface",
    "multi_similarity",
    "soft_triple",
    "proxy_anchor",
]


@pytest.mark.parametrize("name", DECK)
def test_the_decks_losses_come_as_printed_as_in_its_code_and_otherwise(name):
    presets = load_recipe(name).presets
    assert "deck" in presets
    assert "code" in presets
    assert {"authors", "paper", "reimplementation"} & set(presets)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_names_its_paper_and_number(name):
    recipe = load_recipe(name)
    assert recipe.paper
    assert "Table" in recipe.expected or recipe.expected.startswith("none")
    assert recipe.backbone


def test_saved_configuration_runs_again(tmp_path):
    config = resolve("proxynca_pp:no_max+no_fast", "cub200")
    path = tmp_path / "config.yaml"
    path.write_text(dump_run_config(config))
    assert load_run_config(path) == config


def test_each_enhancement_of_proxynca_pp_is_one_switch():
    whole = resolve("proxynca_pp", "cub200")
    changed = {
        "no_prob": lambda c: c.loss[0].name,
        "no_scale": lambda c: c.model.scale,
        "no_cbs": lambda c: c.sampling.kind,
        "no_norm": lambda c: c.model.layer_norm,
        "no_max": lambda c: c.model.pooling,
        "no_fast": lambda c: c.optimizer.proxies.lr,
    }
    for preset in changed:
        off = resolve(f"proxynca_pp:{preset}", "cub200")
        for name, value in changed.items():
            same = value(off) == value(whole)
            assert same == (name != preset), (preset, name)


def test_papers_settings_of_proxynca_pp():
    config = resolve("proxynca_pp", "sop")
    assert config.model.scale == 9.0
    assert config.optimizer.backbone.lr == pytest.approx(2.4e-2)
    assert config.optimizer.proxies.lr == pytest.approx(2.4e2)
    assert config.optimizer.proxies.clip_value is None
    assert config.optimizer.head.arguments == {"epsilon": 1.0}
    assert [stage.classes for stage in config.stages] == ["first_half", "all"]
    assert config.evaluation.k == [1, 10, 100, 1000]
    assert len(resolve("proxynca_pp", "inshop").stages) == 1


def test_heated_family_differs_as_the_paper_says():
    kinds = {name: resolve(name, "cars196") for name in ("ln", "bn", "hbn")}
    assert kinds["ln"].model.normalization == "l2"
    assert kinds["bn"].model.normalization == "batch_norm"
    assert kinds["bn"].stages[0].phases[0].heat is None
    heat = kinds["hbn"].stages[0].phases[0].heat
    assert (heat.epoch, heat.scale, heat.lr_factor) == (61, 4.0, 0.1)
    assert kinds["hbn"].model == kinds["bn"].model


def test_preset_default_leaves_the_papers_section():
    assert resolve("proxynca_pp", "cub200").section == "cub200"
    assert resolve("proxynca_pp:default", "cub200").section == "default"


def test_pretrained_changes_apply_with_weights_only(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "common: {loss: [{name: softmax}]}\n"
        "default: {optimizer: {backbone: {lr: 1e-2}}, "
        "stages: [{phases: [{epochs: 1}]}]}\n"
        "pretrained: {optimizer: {backbone: {lr: 1e-5}}}\n"
    )
    scratch = resolve(
        str(path), "./x", flags={"model": {"backbone": "small_cnn"}}
    )
    tuned = resolve(str(path), "./x")
    assert tuned.model.backbone == "mobilenet_v2"
    none = resolve(
        str(path),
        "./x",
        flags={"model": {"backbone": "mobilenet_v2", "weights": "none"}},
    )
    rates = [c.optimizer.backbone.lr for c in (scratch, tuned, none)]
    assert rates == [1e-2, 1e-5, 1e-2]


@pytest.mark.parametrize(
    ("source", "model", "recipe"),
    [
        ("./x", {}, "proxy_anchor"),
        ("./x", {"backbone": "mobilenet_v2"}, "proxy_anchor"),
        ("./x", {"backbone": "hub:resnet_18_imagenet"}, "proxy_anchor"),
        ("./x", {"backbone": "small_cnn"}, "norm_softmax"),
        (
            "./x",
            {"backbone": "mobilenet_v2", "weights": "none"},
            "norm_softmax",
        ),
        ("omniglot", {}, "norm_softmax"),
        ("omniglot", {"backbone": "resnet50"}, "proxy_anchor"),
        ("cub200", {"backbone": "resnet50"}, "norm_softmax"),
    ],
)
def test_the_default_recipe_follows_the_network(source, model, recipe):
    explanation = explain(None, source, flags={"model": model})
    assert explanation.config.recipe == recipe
    assert explanation.origins["recipe"] == "built in"
    assert explanation.config == resolve(recipe, source, flags={"model": model})


@pytest.mark.parametrize("recipe", [None, "proxy_anchor", "proxy_isa"])
@pytest.mark.parametrize("source", ["cars196", "omniglot", "./x"])
@pytest.mark.parametrize(
    "model",
    [
        {"backbone": "mobilenet_v2"},
        {"backbone": "bn_inception"},
        {"backbone": "resnet50", "weights": "none"},
        {"weights": "none"},
    ],
)
def test_a_network_by_override_is_one_by_flag(recipe, source, model):
    config = resolve(recipe, source, flags={"model": model})
    settings = {f"model.{key}": value for key, value in model.items()}
    for overrides in (settings, [f"{k}={v}" for k, v in settings.items()]):
        explained = explain(recipe, source, overrides=overrides)
        assert explained.config == config
        assert {explained.origins[key] for key in settings} == {"override"}
    other = {"model": {"backbone": "small_cnn", "weights": "auto"}}
    settings = {"model.backbone": "mobilenet_v2", "model.weights": "auto"}
    settings |= {f"model.{key}": value for key, value in model.items()}
    assert resolve(recipe, source, flags=other, overrides=settings) == (
        resolve(recipe, source, overrides=settings)
    )


def test_a_model_by_override_brings_its_network():
    config = resolve("norm_softmax", "./x", overrides=["model={dim: 8}"])
    assert config.model.backbone == "small_cnn"
    assert config.minutes is None
    override = "model={dim: 8, backbone: resnet50}"
    assert resolve("norm_softmax", "digits", overrides=override).minutes == 10


def test_a_loss_in_place_of_another_knows_the_network_by_override():
    flags = flags_of({"loss": "triplet"})
    backbone = {"model.backbone": "mobilenet_v2"}
    config = resolve("norm_softmax", "digits", flags=flags, overrides=backbone)
    flags["model"] = {"backbone": "mobilenet_v2"}
    assert config == resolve("norm_softmax", "digits", flags=flags)


def test_a_backbone_that_is_no_name_is_refused_as_such():
    for value in ("null", "[1]", "{a: 1}", "5"):
        override = f"model.backbone={value}"
        with pytest.raises(UsageError, match=r"`model\.backbone` must be text"):
            resolve(None, "./x", overrides=[override])


def test_data_set_facts_reach_the_configuration():
    config = resolve("norm_softmax", "omniglot")
    assert config.augmentation.flip is False
    assert config.data.channels == 1


def test_overrides_take_dotted_keys_and_positions():
    config = resolve(
        "norm_softmax",
        "digits",
        overrides=["model.dim=32", "stages.0.phases.0.epochs=7", "seed=3"],
    )
    assert config.model.dim == 32
    assert config.stages[0].phases[0].epochs == 7
    assert config.seed == 3


@pytest.mark.parametrize(
    ("key", "whole"),
    [
        ("stages.main", "stages"),
        ("stages.main.train", "stages.main.phases"),
        ("stages.0.phases.train", "stages.0.phases"),
        ("loss.norm_softmax", "loss"),
    ],
)
def test_null_does_not_take_an_item_out_of_a_list(key, whole):
    """A phase that was set to null stayed, and nothing said so."""
    with pytest.raises(UsageError, match=rf"`{whole}=\[\.\.\.\]`"):
        resolve("norm_softmax", "digits", overrides=[f"{key}=null"])
    assert resolve(
        "norm_softmax", "digits", overrides=["stages.main.replay=null"]
    )


def test_numbers_in_scientific_notation_are_numbers():
    config = resolve(
        "norm_softmax", "digits", overrides=["optimizer.head.lr=1e-5"]
    )
    assert config.optimizer.head.lr == 1e-5


def test_head_and_proxies_inherit_from_backbone():
    config = validate(
        smallest(
            optimizer={
                "backbone": {"name": "sgd", "lr": 0.5, "clip_value": 1.0},
                "proxies": {"lr": 2.0, "clip_value": None},
            }
        )
    )
    assert config.optimizer.head == config.optimizer.backbone
    assert config.optimizer.proxies.name == "sgd"
    assert config.optimizer.proxies.lr == 2.0
    assert config.optimizer.proxies.clip_value is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.dimension=3", "`model.dimension`. Nearest: 'dim'"),
        ("optimizer.backbone.learning_rate=1", "backbone.learning_rate`"),
        ("stages.0.phases.0.epoch=3", "Nearest: 'epochs'"),
        ("epoch=3", "Nearest: `stages.main.train.epochs`, "),
        ("images_size=3", "Nearest: `data.image_size`"),
        ("margin=3", "key `margin`. There are: recipe, section, "),
        ("model.dim=many", "`model.dim` must be a whole number"),
        ("model.dim=0", "must be at least 1. Received: 0"),
        ("model.dim", "must be `key=value`"),
        ("stages.4.name=x", "a position from 0 to 0"),
        ("stages.mian.classes=all", "Nearest: 'main'"),
        ("stages.main.clases=all", "Nearest: 'classes'"),
        ("stages.main.trian.epochs=3", "Nearest: 'train'"),
        ("loss.norm_softmx.weight=2", "Nearest: 'norm_softmax'"),
        ("model.dim.x=1", "`model.dim` is a value, not a section"),
        ("evaluation.k.0=3", "Received: '0' as a key of it. Set"),
        ("loss=[]", "`loss`"),
    ],
)
def test_mistakes_are_explained(override, message):
    with pytest.raises(UsageError, match="(?s).*") as caught:
        resolve("norm_softmax", "digits", overrides=["model.dim=8", override])
    assert message in str(caught.value)


def test_heat_needs_one_form():
    for heat in (
        {},
        {"epoch": 3},
        {"scale": 4.0},
        {"epoch": 3, "scale": 4.0, "every": 2},
        {"every": 3, "scale": 2.0},
        {"every": 3, "epoch": 2},
    ):
        with pytest.raises(UsageError, match="either `epoch` and `scale`"):
            validate(smallest(stages=[{"phases": [{"heat": heat}]}]))


def test_a_gradual_heat_changes_the_scale():
    """It was refused when the phase began, after all that came before."""
    phase = {"heat": {"every": 3, "scale_factor": 1.0}}
    with pytest.raises(UsageError, match="`scale_factor` must differ from 1"):
        validate(smallest(stages=[{"phases": [phase]}]))


def test_step_schedule_needs_its_length():
    with pytest.raises(UsageError, match="needs `step_epochs`"):
        validate(smallest(optimizer={"backbone": {"schedule": "step"}}))


def test_a_step_schedule_has_no_warm_up():
    step = {"schedule": "step", "step_epochs": 5}
    warm = {"backbone": {**step, "warmup_steps": 100}}
    with pytest.raises(UsageError, match=r"backbone`.* `warmup_steps` must be"):
        validate(smallest(optimizer=warm))
    step = [f"optimizer.backbone.{key}={step[key]}" for key in step]
    with pytest.raises(UsageError, match="`warmup_steps` must be 0 with"):
        resolve("norm_softmax", "digits", overrides=step)
    step.append("optimizer.backbone.warmup_steps=0")
    config = resolve("norm_softmax", "digits", overrides=step)
    assert config.optimizer.proxies.schedule == "step"


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            "[{phases: [{epochs: 5, freeze: all}, {epochs: 10}]}]",
            "`stages.0`: `phases` must have names of their own. Received "
            "twice: train",
        ),
        (
            "[{phases: [{epochs: 5}]}, {phases: [{epochs: 10}]}]",
            "`stages` must have names of their own. Received twice: main",
        ),
        (
            "[{name: refit, phases: [{epochs: 5}]}]",
            "`stages` must have names of their own. Received twice: refit",
        ),
    ],
)
def test_phases_and_stages_of_one_name_are_refused(stages, message):
    """Records are kept by name: a final training had the epochs of both."""
    refits = ["refit=true", "evaluation.interpolate=[1.0]"]
    given = [f"stages={stages}", *refits]
    with pytest.raises(UsageError, match=message):
        resolve("triplet", "digits", overrides=given)


def test_unknown_recipe_names_the_nearest():
    with pytest.raises(UsageError, match="Nearest: 'proxynca_pp'"):
        load_recipe("proxynca_p")


def test_unknown_preset_lists_those_there_are():
    with pytest.raises(UsageError, match="no preset 'nomax'.*, no_max,"):
        resolve("proxynca_pp:nomax", "cub200")


def published(recipe, source, backbone, **settings):
    return resolve(
        recipe, source, flags={"model": {"backbone": backbone}}, **settings
    )


@pytest.mark.parametrize(
    ("recipe", "source", "backbone", "epochs"),
    [
        ("proxy_isa", "cub200", "resnet50", 5),
        ("proxy_isa", "cub200", "bn_inception", 10),
        ("proxy_isa", "cars196", "resnet50", 10),
        ("proxy_isa:no_weights", "cars196", "bn_inception", 20),
        ("proxy_isa", "sop", "bn_inception", 20),
    ],
)
def test_a_network_brings_its_own_steps(recipe, source, backbone, epochs):
    """The README of Proxy-ISA's authors."""
    for _, group in published(recipe, source, backbone).optimizer:
        assert group.step_epochs == epochs


DECK = {
    # Batch, epochs of warm-up and training, rate, epochs and factor of a step.
    ("cub200", "resnet50"): (100, 5, 95, 1e-4, 5, 0.1),
    ("cub200", "googlenet"): (180, 1, 99, 1e-4, 10, 0.1),
    ("cars196", "resnet50"): (100, 5, 95, 1e-4, 10, 0.1),
    ("cars196", "bn_inception"): (180, 1, 99, 1e-4, 20, 0.1),
    ("sop", "resnet50"): (100, 5, 95, 6e-4, 10, 0.25),
    ("sop", "googlenet"): (180, 1, 99, 6e-4, 20, 0.25),
}


@pytest.mark.parametrize("place", DECK, ids="-".join)
@pytest.mark.parametrize(
    "recipe",
    [
        "proxy_anchor:deck",
        "our_loss_1",
        "our_loss_2",
        "multi_similarity:deck",
        "proxynca:deck_protocol+deck",
    ],
)
def test_the_deck_has_a_batch_and_a_schedule_for_each_network(recipe, place):
    config = published(recipe, *place)
    warm_up, train = config.stages[0].phases
    backbone = config.optimizer.backbone
    assert DECK[place] == (
        config.sampling.batch_size,
        warm_up.epochs,
        train.epochs,
        backbone.lr,
        backbone.step_epochs,
        backbone.step_factor,
    )


def test_the_authors_of_proxy_anchor_have_a_batch_for_each_network():
    for source, factor in (("cub200", 0.5), ("sop", 0.25)):
        for backbone, batch, warm_up in (
            ("resnet50", 120, 5),
            ("bn_inception", 180, 1),
        ):
            config = published("proxy_anchor:authors", source, backbone)
            lengths = [phase.epochs for phase in config.stages[0].phases]
            assert config.sampling.batch_size == batch
            assert lengths == [warm_up, 60 - warm_up]
            assert config.optimizer.backbone.step_factor == factor


def test_heated_ups_authors_start_sop_at_the_class_means():
    for source in ("cars196", "cub200", "sop"):
        config = resolve("hbn:authors", source)
        assert config.model.proxies.class_means == (source == "sop")
        (phase,) = config.stages[0].phases
        assert phase.refresh_bn == 300


def test_a_value_knows_for_which_network_it_was_set():
    explained = explain(
        "proxy_isa", "cars196", flags={"model": {"backbone": "bn_inception"}}
    )
    assert explained.origins["optimizer.backbone.step_epochs"] == (
        "proxy_isa: sources.cars196.backbones.bn_inception"
    )
    own = load_recipe("proxy_isa").own("sources", "cars196")
    assert (
        "sources.cars196.backbones.bn_inception",
        "optimizer.backbone.step_epochs",
        20,
    ) in own


def test_changes_for_networks_and_data_sets_within_one_another(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "base: triplet\n"
        "default:\n"
        "  seed: 1\n"
        "  sources: {digits: {seed: 2, backbones: {resnet50: {seed: 3}}}}\n"
        "  backbones: {resnet50: {seed: 4}}\n"
    )

    def seed(source, backbone):
        return published(str(recipe), source, backbone).seed

    assert seed("photos", "small_cnn") == 1
    assert seed("digits", "small_cnn") == 2
    assert seed("digits", "resnet50") == 3
    assert seed("photos", "resnet50") == 4


def test_changes_for_a_network_that_does_not_exist(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "base: triplet\npresets: {a: {backbones: {resnet5: {seed: 1}}}}\n"
    )
    with pytest.raises(UsageError, match="`backbones` of .*Did you mean.*ne"):
        resolve(str(recipe), "digits")


def test_recipe_file_with_unknown_part(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: {}\n")
    with pytest.raises(UsageError, match="`defaults`. Nearest: 'default'"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "is not valid YAML"), ("- 1", "must hold a mapping")],
)
def test_recipe_file_that_is_not_one(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_recipe(path)
    with pytest.raises(UsageError, match="no recipe file"):
        load_recipe(str(tmp_path / "absent.yaml"))


def test_a_configuration_of_version_0_1_still_resolves():
    old = smallest(
        loss=[{"name": "arc_face"}],
        augmentation={"crop": "centre"},
        model={"proxies": {"centres": 3, "regularizer": "centre_distance"}},
    )
    config = validate(old)
    assert config.loss[0].name == "arcface"
    assert config.augmentation.crop == "center"
    assert config.model.proxies.centers == 3
    assert config.model.proxies.regularizer == "center_distance"
    assert resolve("arcface:sub_centre", "digits").model == (
        resolve("arcface:sub_center", "digits").model
    )
    override = "model.proxies.centres=4"
    config = resolve("arcface", "digits", overrides=[override])
    assert config.model.proxies.centers == 4


def written(folder, name, text):
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def test_recipes_build_on_one_another(tmp_path):
    written(tmp_path, "first", "default: {model: {dim: 8, pooling: average}}")
    written(tmp_path, "second", "base: _base\ndefault: {model: {dim: 16}}")
    path = written(
        tmp_path,
        "mine",
        "base: [second.yaml, first.yaml, _base]\n"
        "common: {loss: {triplet: {margin: 0.3}}}\n"
        "default: {stages: {main: {train: {epochs: 2}}}}\n"
        "presets: {long: {stages: {main: {train: {epochs: 9}}}}}",
    )
    recipe = load_recipe(path)
    assert recipe.bases == ("_base", "second", "first")
    assert recipe.presets == ("long",)
    config = resolve(path, "digits")
    assert config.loss[0].arguments == {"margin": 0.3}
    assert config.model.dim == 8
    assert config.stages[0].phases[0].epochs == 2
    assert config.optimizer.head.schedule == "cosine"
    assert resolve(f"{path}:long", "digits").stages[0].phases[0].epochs == 9


def test_bases_of_one_name_in_two_folders_are_two(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    written(tmp_path, "b", "base: norm_softmax\ncommon: {seed: 1}")
    written(inner, "b", "base: norm_softmax\ncommon: {model: {k: 7}}")
    written(inner, "a", "base: b.yaml")
    path = written(tmp_path, "mine", "base: [inner/a.yaml, b.yaml]")
    config = resolve(path, "digits")
    assert (config.seed, config.model.k) == (1, 7)
    # Nor is the second one a loop.
    written(tmp_path, "b", "base: inner/b.yaml\ncommon: {seed: 1}")
    (inner / "inner").mkdir()
    written(inner, "b", "base: inner/b.yaml\ncommon: {model: {k: 7}}")
    written(inner / "inner", "b", "base: norm_softmax")
    config = resolve(written(tmp_path, "mine", "base: b.yaml"), "digits")
    assert (config.seed, config.model.k) == (1, 7)


def test_a_base_by_two_paths_is_read_once_and_a_loop_is_one(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    written(tmp_path, "b", "base: norm_softmax")
    written(inner, "a", "base: ../b.yaml")
    path = written(tmp_path, "mine", "base: [inner/a.yaml, b.yaml]")
    assert load_recipe(path).bases[-2:] == ("b", "a")
    written(tmp_path, "b", "base: inner/a.yaml")
    with pytest.raises(UsageError, match="`.*b.yaml` .*inner/a.*on itself"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("_bas", "`base` of the recipe `.*mine.yaml` .*Nearest: '_base'"),
        ("mine.yaml", "builds on itself"),
        ("other.yaml", "There is no recipe file"),
    ],
)
def test_a_base_that_does_not_exist(tmp_path, base, message):
    path = written(tmp_path, "mine", f"base: {base}")
    with pytest.raises(UsageError, match=message):
        load_recipe(path)


def test_files_to_build_on_are_no_recipes():
    assert not [name for name in recipe_names() if name.startswith("_")]
    with pytest.raises(UsageError, match="must be a known name"):
        load_recipe("_base")


def test_every_value_knows_where_it_was_set():
    explained = explain(
        "hbn:authors",
        "cub200",
        flags={"model": {"dim": 32}},
        overrides=["stages.main.train.epochs=7", "model.proxies.sample=0.5"],
    )
    origins = {one.key: one.origin for one in explained.settings}
    assert {
        key: origins[key]
        for key in (
            "seed",
            "data.channels",
            "data.image_size",
            "loss.norm_softmax.name",
            "loss.norm_softmax.sampled",
            "model.dim",
            "model.logits_bias",
            "model.proxies.initializer",
            "model.proxies.sample",
            "model.proxies.sample_at_least",
            "optimizer.backbone.name",
            "optimizer.head.name",
            "stages.main.train.epochs",
            "stages.main.train.heat.epoch",
            "stages.main.train.refresh_bn",
        )
    } == {
        "seed": "built in",
        "data.channels": "data set cub200",
        "data.image_size": "_heated_up: published",
        "loss.norm_softmax.name": "bn: common",
        "loss.norm_softmax.sampled": "model.proxies.sample",
        "model.dim": "flag",
        "model.logits_bias": "bn: published",
        "model.proxies.initializer": "_heated_up: common",
        "model.proxies.sample": "override",
        "model.proxies.sample_at_least": "model.proxies.sample",
        "optimizer.backbone.name": "_heated_up: sources.cub200",
        "optimizer.head.name": "optimizer.backbone",
        "stages.main.train.epochs": "override",
        "stages.main.train.heat.epoch": "_heated: presets.authors",
        "stages.main.train.refresh_bn": "_heated_up: presets.authors",
    }


@pytest.mark.parametrize("name", recipe_names())
def test_what_is_printed_can_be_typed(name):
    """Every value of every recipe, given as an override, changes nothing."""
    explained = explain(name, "cub200")
    overrides = [
        f"{one.key}={json.dumps(one.value)}"
        for one in explained.settings
        if one.origin != "built in" and one.key != "section"
    ]
    assert resolve(name, "cub200", overrides=overrides) == explained.config


def test_differences_name_what_differs():
    one = resolve("bn", "cub200")
    other = resolve("hbn", "cub200", overrides=["model.dim=32"])
    found = differences(one, other)
    assert found["model.dim"] == (64, 32)
    assert found["stages.main.train.heat.epoch"] == (None, 61)
    assert "model.normalization" not in found
    assert differences(one, one) == {}


def test_changed_values_leave_the_rest_of_their_section():
    config = resolve("hbn", "digits")
    other = config.changed(seed=7, model={"dim": 64}, stages=[])
    assert (other.seed, other.model.dim, other.stages) == (7, 64, [])
    assert other.model.pooling == config.model.pooling
    assert config.changed() == config


def pretrained(*overrides, recipe="norm_softmax", **flags):
    flags = flags_of({"backbone": "resnet50", **flags})
    return resolve(recipe, "./photos", flags=flags, overrides=overrides)


def test_a_pretrained_network_trains_for_minutes():
    config = pretrained()
    assert config.minutes == 10
    assert config.stages[0].phases[0].epochs is None
    assert config.evaluation.every is None
    assert config.evaluation.interpolate
    assert config.model.whitening


@pytest.mark.parametrize(
    "flags",
    [
        {"backbone": "small_cnn"},
        {"backbone": "resnet50", "weights": "none"},
    ],
)
def test_random_weights_train_for_epochs(flags):
    config = resolve("norm_softmax", "./photos", flags=flags_of(flags))
    assert config.minutes is None
    assert config.stages[0].phases[0].epochs == 15
    assert not config.evaluation.interpolate
    assert not config.model.whitening


def test_weights_of_a_file_make_any_network_a_pretrained_one():
    flags = flags_of({"backbone": "small_cnn", "weights": "own.weights.h5"})
    assert resolve("norm_softmax", "./photos", flags=flags).minutes == 10


def test_epochs_replace_the_minutes_and_minutes_the_epochs():
    config = pretrained(epochs=7)
    assert (config.minutes, config.stages[0].phases[0].epochs) == (None, 7)
    config = resolve("norm_softmax", "digits", flags=flags_of({"minutes": 3}))
    assert (config.minutes, config.stages[0].phases[0].epochs) == (3, None)
    assert config.passes is None


def test_minutes_by_default_see_few_images_40_times():
    assert pretrained().passes == 40
    assert pretrained(minutes=30).passes is None


@pytest.mark.parametrize("minutes", [0, -1])
def test_no_minutes_are_refused(minutes):
    with pytest.raises(UsageError, match="`minutes` must be more than 0"):
        pretrained(minutes=minutes)


def test_a_planned_run_trains_again_as_long(tmp_path):
    """Its minutes stand beside the epochs that they led to."""
    config = pretrained("stages.main.train.epochs=11", "evaluation.every=2")
    (tmp_path / "config.yaml").write_text(dump_run_config(config))
    same = again(tmp_path / "config.yaml")
    assert same == config
    longer = again(tmp_path / "config.yaml", flags=flags_of({"minutes": 20}))
    assert longer.minutes == 20
    assert longer.stages[0].phases[0].epochs is None
    epochs = again(tmp_path / "config.yaml", flags=flags_of({"epochs": 3}))
    assert (epochs.minutes, epochs.stages[0].phases[0].epochs) == (None, 3)
