"""What sections of papers resolve to, beside the authors' codes."""

import pytest

from keras_dml.config import resolve
from tests.config.test_plans import jobs_of


def facts(config):
    return [
        (stage.name, [phase.epochs for phase in stage.phases])
        for stage in config.stages
    ]


@pytest.mark.parametrize("recipe", ["proxynca_pp", "proxynca_pp:authors"])
def test_proxynca_pp_has_a_length_for_each_data_set(recipe):
    """`nb_epochs` of the authors' files; In-Shop has one stage."""
    both = [("search", [5, 40]), ("final", [5, 40])]
    twice = [("search", [5, 80]), ("final", [5, 80])]
    assert facts(resolve(recipe, "cub200")) == both
    assert facts(resolve(recipe, "sop")) == twice
    assert facts(resolve(recipe, "inshop")) == [("main", [5, 80])]


@pytest.mark.parametrize("recipe", ["proxynca_pp", "proxynca"])
def test_two_stages_on_in_shop_are_those_of_the_other_data_sets(recipe):
    """Section 4.1 has two in all experiments, the authors' README one here."""
    two = resolve(f"{recipe}:two_stage", "inshop").stages
    assert two == resolve(recipe, "sop").stages


def test_the_authors_of_proxynca_pp_drop_one_epoch_late():
    search, final = resolve("proxynca_pp:authors", "sop").stages
    assert search.phases[1].plateau.patience == 5
    assert final.drops_one_epoch_late and final.replay == "search"


@pytest.mark.parametrize(
    ("recipe", "source", "rate", "images"),
    [
        ("proxynca:cbs+fast", "cub200", 4e2, 4),
        ("proxynca:cbs+fast", "sop", 2.4e2, 3),
        ("proxynca:cbs+fast", "inshop", 2.4e3, 3),
        ("proxynca_pp", "inshop", 2.4e3, 3),
    ],
)
def test_enhancements_added_have_the_values_of_the_whole(
    recipe, source, rate, images
):
    config = resolve(recipe, source)
    assert config.optimizer.proxies.lr == rate
    assert config.sampling.images == images


def test_the_reimplementation_of_proxynca_has_its_own_values():
    for source, epochs, batch, scale, rate in (
        ("cub200", 20, 32, 9.0, 1.0),
        ("cars196", 50, 32, 9.0, 1.0),
        ("sop", 50, 32, 8.0, 10.0),
    ):
        config = resolve("proxynca:reimplementation", source)
        assert facts(config) == [("main", [epochs])]
        assert config.sampling.batch_size == batch
        assert config.model.scale == scale
        assert config.optimizer.proxies.lr == rate
        assert config.loss[0].name == "proxynca_pp"
        assert config.optimizer.backbone.clip_value is None


@pytest.mark.parametrize("source", ["cub200", "sop"])
def test_the_authors_of_multi_similarity_train_3000_steps(source):
    config = resolve("multi_similarity:authors", source)
    (phase,) = config.stages[0].phases
    steps, backbone = config.sampling.steps_per_epoch, config.optimizer.backbone
    assert steps * phase.epochs == 3000
    assert steps * backbone.step_epochs == 1200
    assert backbone.step_factor == 0.1
    assert (backbone.name, backbone.arguments) == ("torch_adam", {"l2": 5e-4})
    assert config.data.image_size == 227


def test_the_authors_of_margin_halve_the_rates_from_epoch_12_on():
    config = resolve("margin:authors", "cub200")
    phases = config.stages[0].phases
    rates = [one.lr_factor for one in phases for _ in range(one.epochs)]
    halvings = [12, 14, 16, 18]
    assert rates == [
        0.5 ** sum(epoch >= one for one in halvings) for epoch in range(20)
    ]
    assert config.optimizer.proxies.weight_decay == 0.0
    rates = config.optimizer.backbone.lr, config.optimizer.head.lr
    assert rates == (1e-6, 1e-4)


def test_rates_of_centers_keep_their_proportion():
    for recipe, source, rate in (
        ("soft_triple", "cub200", 1e-2),
        ("soft_triple", "sop", 6e-2),
        ("soft_triple:deck", "sop", 1e-4),
        ("soft_triple:authors", "sop", 1e-2),
    ):
        assert resolve(recipe, source).optimizer.proxies.lr == rate
    authors = resolve("soft_triple:authors", "sop")
    assert authors.optimizer.backbone.step_factor == 0.1
    assert authors.model.pooling == "average"


def test_the_deck_clips_the_proxies_of_one_class_of_losses():
    """The class is called `Proxy_Anchor`, and holds its two own losses."""
    for recipe, limit in (
        ("proxy_anchor", 10.0),
        ("our_loss_2", 10.0),
        ("our_loss_1", 10.0),
        ("arcface", None),
        ("soft_triple", None),
        ("margin", None),
    ):
        optimizer = resolve(recipe, "cub200").optimizer
        assert optimizer.proxies.clip_value == limit, recipe
        assert optimizer.backbone.clip_value == 10.0


def test_the_authors_steps_hold_for_images_of_ones_own():
    for recipe in ("multi_similarity:authors", "soft_triple:authors"):
        group = resolve(recipe, "photos").optimizer.backbone
        assert (group.schedule, group.warmup_steps) == ("step", 0)


def test_the_authors_of_proxy_anchor_train_batch_norm_on_sop():
    def mode(source):
        return resolve("proxy_anchor:authors", source).model.batch_norm

    assert (mode("cub200"), mode("sop")) == ("frozen_statistics", "train")


def test_heated_ups_table_3_has_clusters():
    for job in jobs_of("heated_up_tables1_4"):
        settings = job.config.evaluation
        clusters = job.config.data.source in ("cub200", "cars196", "sop")
        assert settings.clustering == clusters
        if clusters:
            assert settings.kmeans_init == "k-means++"
            starts = 1 if job.config.data.source == "sop" else 10
            assert settings.kmeans_starts == starts


def test_the_reality_check_stops_as_its_authors_do():
    for job in jobs_of("reality_check"):
        (phase,) = job.config.stages[0].phases
        settings = job.config.optimizer.backbone
        assert settings.arguments == {"momentum": 0.9, "rho": 0.99}
        cars = job.config.data.source == "cars196"
        every = job.config.evaluation.every
        assert (every, phase.stop_patience) == ((5, 3) if cars else (2, 5))


def test_proxy_isas_flags_freeze_the_statistics_where_it_warms_up():
    """`--bn_freeze False` is read as true; the warm-up frees gamma and beta."""
    for recipe, source, expected in (
        ("proxy_isa", "cub200", "frozen"),
        ("proxy_isa:authors", "cars196", "frozen"),
        ("proxy_isa:authors", "sop", "frozen_statistics"),
        ("proxy_isa:authors", "inshop", "frozen_statistics"),
        ("proxy_isa:exceptional_settings", "cub200", "frozen_statistics"),
        ("proxy_isa:exceptional_settings", "sop", "train"),
    ):
        found = resolve(recipe, source).model.batch_norm
        assert found == expected, (recipe, source)


@pytest.mark.parametrize("source", ["cub200", "cars196"])
def test_proxy_isas_code_warms_its_papers_network_up(source):
    """Its README passes `--warm 0`, where the default is 1, for ResNet50."""
    own, other = (
        resolve(
            "proxy_isa:authors", source, flags={"model": {"backbone": network}}
        )
        for network in ("bn_inception", "resnet50")
    )
    assert own.model.batch_norm == "frozen_statistics"
    assert other.model.batch_norm == "frozen"
    epochs = [
        [phase.epochs for phase in config.stages[0].phases]
        for config in (own, other)
    ]
    assert epochs == [[1, 99], [100]]


@pytest.mark.parametrize("recipe", ["soft_triple", "soft_triple:code"])
def test_centers_start_as_the_codes_of_soft_triple_draw_them(recipe):
    """`kaiming_uniform_` of a matrix (dim, classes x centers)."""
    model = resolve(recipe, "cub200").model
    assert model.proxies.initializer == "uniform_fan_in"
    assert model.kernel_initializer == "he_fan_out"
    own = resolve("soft_triple:authors", "cub200").model
    assert own.kernel_initializer == "uniform_fan_in"


def test_in_shop_has_the_settings_of_the_readme_of_proxy_anchor():
    flags = {"model": {"backbone": "bn_inception"}}
    config = resolve("proxy_anchor:authors", "inshop", flags=flags)
    backbone = config.optimizer.backbone
    assert (backbone.lr, backbone.step_epochs) == (6e-4, 20)
    assert (backbone.step_factor, config.optimizer.proxies.lr) == (0.25, 6e-2)
    assert config.sampling.batch_size == 180
    assert config.model.batch_norm == "train"
    assert facts(config) == [("main", [1, 59])]


@pytest.mark.parametrize("recipe", ["hln", "hbn"])
def test_heated_up_starts_as_slim_does(recipe):
    model = resolve(recipe, "cars196").model
    assert model.kernel_initializer == "scaled_fan_in"
    assert model.logits_bias
    config = resolve(f"{recipe}:authors+gradual", "cars196")
    assert config.stages[0].phases[0].refresh_bn == 300


@pytest.mark.parametrize("backbone", ["small_cnn", "mobilenet_v2"])
def test_proxy_isa_trains_as_what_it_is_compared_with(backbone):
    """Its proxies learned at a tenth of the rate from pretrained weights."""
    isa, anchor = (
        resolve(recipe, "digits", overrides=[f"model.backbone={backbone}"])
        for recipe in ("proxy_isa", "proxy_anchor")
    )
    for part in ("optimizer", "sampling", "augmentation", "stages"):
        assert getattr(isa, part) == getattr(anchor, part), part
