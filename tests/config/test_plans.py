"""Every plan that comes with the package: its runs, numbers and ablations."""

import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from keras_dml.comparison.jobs import configured, first_setup, make_jobs
from keras_dml.comparison.plans import arms
from keras_dml.config import resolve
from keras_dml.config.plans import (
    dump_plan,
    load_plan,
    narrowed,
    parse_plan,
    plan_names,
)
from keras_dml.config.tuning_section import RangeConfig
from keras_dml.data.facts import known_datasets
from keras_dml.errors import UsageError
from keras_dml.evaluation.metrics.metric_names import metric_function

DOCS = Path(__file__).parents[2] / "docs" / "plans.md"

# Arms, then seeds, then what else multiplies.
RUNS = {
    "demo": 4 * 2,
    # Here: small networks, data of this project.
    "grocery": 4 * 2,
    "grocery_tournament": 25 * 3,
    "omniglot_dims": 4 * 2 * 6,
    "omniglot_heating": 10 * 3,
    "omniglot_k_max": 7 * 3,
    "omniglot_own_losses": 4 * 3,
    "omniglot_proxy_isa": 9 * 3,
    "omniglot_proxy_isa_start": 8 * 3,
    "omniglot_search": 5 * 3,
    "omniglot_small": 4 * 2,
    "omniglot_temperature": 17 * 3,
    "omniglot_tournament": 44 * 3,
    "photos_claims": 2 * 16 * 3,
    # ProxyNCA++: lines of a table, five runs each.
    "proxynca_pp_tables3_6": 5 * 4 * 5,
    "proxynca_pp_table7": 7 * 5,
    "proxynca_pp_table8": 7 * 2 * 5,
    "proxynca_pp_table9": 10 * 2 * 5,
    "proxynca_pp_table10": 11 * 2 * 5,
    "proxynca_pp_table11": 5 * 2 * 5,
    "proxynca_pp_tables12_13": 8 * 2 * 5,
    "proxynca_pp_tables14_15": 2 * 4 * 5,
    "proxynca_pp_figure4a": 6 * 5,
    "proxynca_pp_figure4b": 7 * 5,
    "proxynca_pp_figure4c": 7 * 5,
    "proxynca_pp_figure5": 5 * 5,
    "proxynca_pp_figure6": 6 * 5,
    "proxynca_pp_figure7": 2 * 5,
    "proxynca_pp_appendix_d": 5,
    "proxynca_pp_appendix_d_search": 1,
    "norm_softmax": 2 * 4 * 5,
    # Heated-Up: SM, LN, BN, HLN, HBN.
    "heated_up_tables1_4": 5 * 4 * 3,
    "heated_up_table5": 7 * 3 * 3,
    "heated_up_table5_ln": 6 * 3 * 3,
    # The deck: ten losses, four embedding sizes.
    "deck_tournament": 10 * (3 + 1) * 4,
    "deck_own_losses": 12 * 3,
    "deck_cross_validation": 3 * 10,
    "deck_fixed_validation": 3,
    "deck_split_ratio": 4,
    "deck_search": 3,
    # Proxy-ISA.
    "proxy_isa_table1": 3 * 4 * 3,
    "proxy_isa_table2": 2 * 2 * 5,
    "proxy_isa_table3": 7 * 3,
    "proxy_isa_table4": 2 * 4 * 3,
    "proxy_isa_figure9": 4 * 4,
    "proxy_isa_figure10a": 5 * 3,
    "proxy_isa_figure10b": 6 * 3,
    "proxy_isa_figure11": 4 * 3,
    # Reality Check: ten seeds, four folds.
    "reality_check": 11 * 2 * 10 * 4,
}
TRIALS = {
    "proxynca_pp_appendix_d_search": 5,
    "deck_search": 50,
    "reality_check": 50,
    "omniglot_own_losses": 12,
    "omniglot_search": 12,
}
DECK_LOSSES = {
    "Contrastive",
    "Triplet",
    "LiftedStructure",
    "NPair",
    "ProxyNCA",
    "Margin",
    "ArcFace",
    "MultiSimilarity",
    "SoftTriple",
    "ProxyAnchor",
}
SIX = {
    "scale": {"model.scale"},
    "max": {"model.pooling"},
    "norm": {"model.layer_norm"},
    "cbs": {"sampling.kind"},
    "fast": {"optimizer.proxies.lr"},
    "prob": {"loss.0.name"},
}


plan_of = functools.cache(load_plan)


@functools.cache
def jobs_of(name):
    """The runs of the plan's first seed; other seeds differ in nothing."""
    plan = plan_of(name)
    return make_jobs(plan.model_copy(update={"seeds": plan.seeds[:1]}))


def configs_of(name, source=None):
    """Configurations by arm in one experiment: on the plan's first data."""
    source = source or plan_of(name).sources[0]
    return {
        job.record.arm: job.config
        for job in jobs_of(name)
        if job.config.data.source == source
    }


def printed(plan):
    """The numbers of papers in a plan: table, arm, metric and value each."""
    return [
        (table, arm, metric, value)
        for table in plan.paper_values
        for arm, values in table.values.items()
        for metric, value in values.items()
    ]


def flat(value, key=""):
    """Every leaf of nested sections and lists by its dotted key."""
    if isinstance(value, dict) and value:
        items = value.items()
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        items = enumerate(value)
    else:
        return {key: value}
    leaves = {}
    for part, inner in items:
        leaves |= flat(inner, f"{key}.{part}" if key else str(part))
    return leaves


def differences(first, second):
    """Dotted keys in which two runs differ, but for the recipe's name."""
    a, b = flat(first.model_dump()), flat(second.model_dump())
    keys = {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}
    return keys - {"recipe"}


def test_every_plan_is_counted_here():
    assert set(plan_names()) == set(RUNS)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_plan_resolves_to_the_runs_of_its_table(name):
    plan = plan_of(name)
    jobs = jobs_of(name)
    assert len(jobs) * len(plan.seeds) == RUNS[name]
    assert len({job.run for job in jobs}) == len(jobs)
    assert plan.title
    assert plan.about
    assert parse_plan(plan.model_dump()) == plan
    assert (plan.tuning.budget if plan.tuning else None) == TRIALS.get(name)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_run_on_a_papers_data_has_the_papers_settings(name):
    datasets = {"cub200", "cars196", "sop", "inshop"}
    for job in jobs_of(name):
        source = job.config.data.source
        expected = source if source in datasets else "default"
        assert job.config.section == expected, job.run
        assert source in known_datasets() or name.startswith(
            ("grocery", "photos")
        )


@pytest.mark.parametrize("name", sorted(RUNS))
def test_printed_numbers_are_fractions_of_metrics_that_are_shown(name):
    plan = plan_of(name)
    lines = {arm.name for arm in arms(plan)} | {
        job.record.arm for job in jobs_of(name)
    }
    for table, arm, metric, value in printed(plan):
        assert arm in lines
        assert 0 < value < 1
        assert table.where
        assert table.source in plan.sources
        assert metric in plan.metrics
    places = Counter(
        (table.where, table.source, table.backbone, table.dim, arm, metric)
        for table, arm, metric, _ in printed(plan)
    )
    assert set(places.values()) <= {1}
    for metric in plan.metrics:
        assert metric == "nmi_geometric" or metric_function(metric)
    named = {finding.metric for finding in plan.findings} - {None}
    assert named <= set(plan.metrics)


@pytest.mark.parametrize(
    ("name", "arm", "metric", "where", "value"),
    [
        ("proxynca_pp_tables3_6", "ProxyNCA", "recall@1", "Table 3", 0.593),
        ("proxynca_pp_tables3_6", "ProxyNCA++", "recall@1000", "Table 5", 0.99),
        ("proxynca_pp_tables3_6", "ProxyNCA++", "recall@40", "Table 6", 0.994),
        ("proxynca_pp_table7", "-scale", "recall@1", "Table 7", 0.614),
        ("proxynca_pp_table7", "-prob", "nmi_geometric", "Table 7", 0.734),
        ("proxynca_pp_table9", "+cbs", "recall@1", "Table 9", 0.548),
        ("proxynca_pp_table10", "+cbs +max", "recall@1", "Table 10", 0.555),
        ("proxynca_pp_table11", "MS max", "recall@1", "Table 11", 0.685),
        (
            "proxynca_pp_tables12_13",
            "NormSoftMax",
            "recall@1",
            "Table 12",
            0.644,
        ),
        ("heated_up_tables1_4", "HBN", "recall@1", "Table 1", 0.747),
        ("heated_up_tables1_4", "LN", "nmi_geometric", "Table 2", 0.5923),
        ("heated_up_tables1_4", "BN", "recall@100", "Table 3", 0.9375),
        ("heated_up_tables1_4", "HBN", "recall@20", "Table 4", 0.959),
        (
            "heated_up_table5",
            "HBN",
            "recall@1",
            "Table 5, None, 256 dim",
            0.801,
        ),
        ("deck_tournament", "NPair", "recall@1", "googlenet, 64 ", 0.4876),
        ("deck_own_losses", "OurLoss2", "recall@1", "SOP", 0.7792),
        ("deck_cross_validation", "ProxyAnchor", "recall@1", "CV", 0.6632),
        ("deck_fixed_validation", "SoftTriple", "recall@1", "Our", 0.6612),
        ("proxy_isa_table2", "Proxy-ISA", "map@r", "Table 2", 0.268),
        ("proxy_isa_table3", "1/E and 1/E", "map@r", "Table 3", 0.163),
        ("proxy_isa_table4", "Proxy-ISA", "recall@1", "Table", 0.694),
        ("reality_check", "CosFace", "map@r", "Proxy-ISA, Table 2", 0.267),
    ],
)
def test_some_numbers_as_printed(name, arm, metric, where, value):
    found = [
        number
        for table, *place, number in printed(plan_of(name))
        if place == [arm, metric]
        and where in f"{table.where}, {table.backbone}, {table.dim} dim"
    ]
    assert found[0] == value


def test_what_table_11_prints_without_training_as_printed():
    (table,) = plan_of("proxynca_pp_table11").paper_values
    assert table.pretrained == {
        "Margin avg": {"recall@1": 0.45},
        "Margin max": {"recall@1": 0.531},
    }
    pooling = configs_of("proxynca_pp_table11")
    assert pooling["Margin avg"].model.pooling == "average"
    assert pooling["Margin max"].model.pooling == "max"


def test_every_line_of_a_papers_table_has_its_numbers():
    for name in RUNS:
        plan = plan_of(name)
        lines = {arm.name for arm in arms(plan)}
        if re.match(r"(proxynca_pp|heated_up)_tables?[\d_]+$", name):
            assert {arm for _, arm, *_ in printed(plan)} == lines, name
    assert len(printed(plan_of("deck_tournament"))) == 10 * 16 * 4


def test_removing_an_enhancement_changes_it_alone():
    configs = configs_of("proxynca_pp_table7")
    whole = configs.pop("ProxyNCA++")
    assert {arm.removeprefix("-") for arm in configs} == set(SIX)
    for arm, config in configs.items():
        assert differences(whole, config) == SIX[arm.removeprefix("-")]


@pytest.mark.parametrize("table", [8, 9, 10])
def test_adding_enhancements_changes_them_alone(table):
    configs = configs_of(f"proxynca_pp_table{table}")
    none = configs["ProxyNCA"]
    for arm, config in configs.items():
        parts = re.findall(r"\+(\w+)", arm)
        intended = set().union(*(SIX[part] for part in parts))
        assert differences(none, config) == intended, arm


def test_proxynca_with_all_six_is_proxynca_pp():
    added = configs_of("proxynca_pp_table8")
    removed = configs_of("proxynca_pp_table7")
    all_six = added["+scale +norm +cbs +max +fast +prob"]
    assert not differences(all_six, removed["ProxyNCA++"])
    five = added["+scale +norm +cbs +max +fast"]
    assert not differences(five, removed["-prob"])


def test_enhancements_on_omniglot_change_what_they_say():
    configs = configs_of("omniglot_temperature")
    # Batches of two images a class: the settings of random ones do not matter.
    six = SIX | {"cbs": {"sampling.kind", "sampling.images"}}
    none, whole = configs["none"], configs["all six"]
    for arm, config in configs.items():
        if arm.startswith("-"):
            assert differences(whole, config) == SIX[arm[1:]], arm
        elif arm.startswith("+"):
            parts = re.findall(r"\+(\w+)", arm)
            intended = set().union(*(six[part] for part in parts))
            assert differences(none, config) == intended, arm
    assert differences(none, whole) == set().union(*six.values())
    rates = [c.optimizer.proxies.lr for c in (none, whole)]
    assert rates[0] == none.optimizer.backbone.lr < rates[1]
    assert none.model.scale == 1.0 < whole.model.scale


def test_pooling_is_all_that_differs_in_pairs():
    configs = configs_of("proxynca_pp_table11")
    for arm, config in configs.items():
        if arm.endswith(" avg"):
            other = configs[arm.replace("avg", "max")]
            assert differences(config, other) == {"model.pooling"}
    configs = configs_of("proxynca_pp_figure7")
    assert differences(configs["GMP"], configs["GAP"]) == {"model.pooling"}


@pytest.mark.parametrize("source", ["cub200", "cars196"])
def test_max_and_fast_are_switches_of_norm_softmax_too(source):
    configs = configs_of("proxynca_pp_tables12_13", source)
    for base, sign in (("ProxyNCA++", "-"), ("NormSoftMax", "NormSoftMax +")):
        for part in ("max", "fast"):
            changed = differences(configs[base], configs[f"{sign}{part}"])
            assert changed == SIX[part]
    fast = configs["NormSoftMax +fast"].optimizer.proxies.lr
    assert fast == pytest.approx(0.4)
    assert configs["NormSoftMax"].model.scale == 2.0


def test_norm_softmax_on_four_data_sets_is_its_recipe_on_cub():
    configs = {
        job.config.data.source: job.config
        for job in jobs_of("norm_softmax")
        if job.config.model.dim == 2048
    }
    shared = ["strategy=none", "model.backbone=resnet50_v1_5"]
    recipe = resolve("norm_softmax", "cub200", overrides=shared)
    assert not differences(configs["cub200"], recipe)
    for source in ("sop", "inshop"):
        theirs = resolve("proxynca_pp", source, overrides=shared)
        assert differences(configs[source], theirs) == {
            "loss.0.name",
            "model.pooling",
            "model.scale",
            "model.proxies.metric",
            "optimizer.proxies.lr",
        }


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("proxynca_pp_figure4a", {"model.scale"}),
        ("proxynca_pp_figure4b", {"model.k"}),
        ("proxynca_pp_figure4c", {"optimizer.proxies.lr"}),
        ("proxynca_pp_figure5", {"model.scale"}),
        ("proxynca_pp_figure6", {"optimizer.proxies.lr"}),
        ("omniglot_k_max", {"model.k"}),
        ("deck_split_ratio", {"data.validation_fraction"}),
    ],
)
def test_a_figure_changes_what_is_on_its_axis(name, keys):
    first, *others = configs_of(name).values()
    assert others
    for other in others:
        assert differences(first, other) == keys


def test_the_settings_that_a_paper_chose_are_points_of_its_figures():
    assert "scale 9.0" in configs_of("proxynca_pp_figure4a")
    assert "proxies lr 400.0" in configs_of("proxynca_pp_figure4c")
    for name, arm in (
        ("proxynca_pp_figure4a", "scale 9.0"),
        ("proxynca_pp_figure4c", "proxies lr 400.0"),
    ):
        whole = configs_of("proxynca_pp_table7")["ProxyNCA++"]
        assert not differences(configs_of(name)[arm], whole)
    most = configs_of("proxynca_pp_figure4b")["k 64"]
    assert most.model.k == (most.data.image_size // 32) ** 2


def test_crops_of_227_change_the_images_alone():
    for source in plan_of("proxynca_pp_tables14_15").sources:
        configs = configs_of("proxynca_pp_tables14_15", source)
        assert differences(*configs.values()) == {
            "data.image_size",
            "augmentation.resize",
        }


@pytest.mark.parametrize(
    "name, source",
    [
        ("heated_up_tables1_4", "cars196"),
        ("heated_up_tables1_4", "cub200"),
        ("heated_up_tables1_4", "sop"),
        ("heated_up_tables1_4", "inshop"),
        ("omniglot_heating", "omniglot"),
    ],
)
def test_heating_and_normalization_are_all_that_differs(name, source):
    configs = configs_of(name, source)
    fixed = " 16" if name == "omniglot_heating" else ""
    layer, batch = configs[f"LN{fixed}"], configs[f"BN{fixed}"]
    kinds = {"model.normalization", "model.proxies.metric"}
    assert differences(layer, batch) == kinds
    assert differences(configs["HLN"], configs["HBN"]) == kinds
    heated = differences(batch, configs["HBN"])
    assert heated == differences(layer, configs["HLN"])
    assert heated
    assert all(key.startswith("stages.0.phases.") for key in heated)
    phases = configs["HBN"].stages[0].phases
    heat = next(phase.heat for phase in phases if phase.heat is not None)
    assert (batch.model.scale, heat.scale) == (16.0, 4.0)
    epochs = [
        sum(phase.epochs for phase in config.stages[0].phases)
        for config in (batch, configs["HBN"])
    ]
    assert epochs[0] == epochs[1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("heated_up_table5", "BN"),
        ("heated_up_table5_ln", "LN"),
        ("omniglot_heating", "LN"),
        ("omniglot_heating", "BN"),
    ],
)
def test_a_fixed_alpha_is_all_that_differs(name, kind):
    configs = configs_of(name)
    middle = configs[f"{kind} 16"]
    for alpha in (4, 8, 32):
        config = configs[f"{kind} {alpha}"]
        assert differences(middle, config) == {"model.scale"}
        assert config.model.scale == alpha


@pytest.mark.parametrize(
    "name",
    [name for name in sorted(RUNS) if re.match(r"(omniglot_)?proxy_isa", name)],
)
def test_the_parts_of_proxy_isa_are_settings_of_its_proxies(name):
    for jobs in by_source(name).values():
        for job in jobs:
            if job.record.recipe == "proxy_anchor":
                continue
            keys = differences(jobs[-1].config, job.config)
            if "Proxy-NCA" in {one.record.arm for one in jobs}:
                keys -= {"loss.0.name"}
            allowed = "model.proxies.sample_aware."
            assert all(key.startswith(allowed) for key in keys), job.run


def by_source(name):
    groups = {}
    for job in jobs_of(name):
        groups.setdefault(job.config.data.source, []).append(job)
    return groups


def test_proxy_isas_schedule_is_that_of_bn_inception():
    steps = {"cub200": 10, "cars196": 20, "sop": 20, "inshop": 20}
    for name in RUNS:
        if name.startswith("proxy_isa"):
            for job in jobs_of(name):
                backbone = job.config.optimizer.backbone
                assert backbone.step_epochs == steps[job.config.data.source]
                assert job.config.model.backbone == "bn_inception"
                assert job.config.model.dim == 512


@pytest.mark.parametrize(
    "name", [name for name in sorted(RUNS) if name.startswith("deck")]
)
def test_the_decks_losses_are_trained_alike(name):
    """Network, images, schedule and length; not the loss and its proxies."""
    own = {
        "loss",
        "sampling.kind",
        "sampling.images",
        "sampling.drop_remainder",  # balanced batches are always full
        "data.validation_fraction",
    }
    proxies = ("model.proxies.", "optimizer.proxies.", "loss.")
    groups = {}
    for job in jobs_of(name):
        record = job.record
        key = (record.source, record.backbone, record.dim, record.fold)
        groups.setdefault(key, []).append(job.config)
    for first, *others in groups.values():
        for other in others:
            keys = differences(first, other) - own
            assert {key for key in keys if not key.startswith(proxies)} <= {
                "evaluation.kmeans_starts",  # nothing is clustered
                "evaluation.kmeans_init",
                "optimizer.backbone.arguments",
                "optimizer.backbone.arguments.epsilon",
                "optimizer.head.arguments",
                "optimizer.head.arguments.epsilon",
                "model.scale",
                "model.boundary",
            }


def test_proxynca_has_the_decks_optimizer():
    config = configs_of("deck_own_losses")["ProxyNCA"]
    backbone = config.optimizer.backbone
    # What Keras has where nothing is given, as with the deck's other losses.
    assert backbone.arguments == {"epsilon": 1e-7}
    assert (backbone.name, backbone.weight_decay) == ("adamw", 1e-4)
    assert config.evaluation.clustering is False
    assert config.optimizer.proxies.lr == 1e-5


@pytest.mark.parametrize(
    ("name", "source", "backbone", "batch", "rate", "step", "factor"),
    [
        ("deck_tournament", "cub200", "resnet50_v1_5", 100, 1e-4, 5, 0.1),
        ("deck_tournament", "cub200", "bn_inception", 180, 1e-4, 10, 0.1),
        ("deck_tournament", "cub200", "googlenet", 180, 1e-4, 10, 0.1),
        ("deck_tournament", "cars196", "bn_inception", 180, 1e-4, 20, 0.1),
        ("deck_own_losses", "cub200", "bn_inception", 180, 1e-4, 10, 0.1),
        ("deck_own_losses", "cars196", "bn_inception", 180, 1e-4, 20, 0.1),
        ("deck_own_losses", "sop", "bn_inception", 180, 6e-4, 20, 0.25),
        ("deck_cross_validation", "cub200", "bn_inception", 180, 1e-4, 10, 0.1),
        ("deck_fixed_validation", "cub200", "bn_inception", 180, 1e-4, 10, 0.1),
    ],
)
def test_the_decks_schedules(name, source, backbone, batch, rate, step, factor):
    jobs = [
        job.config
        for job in jobs_of(name)
        if (job.record.source, job.record.backbone) == (source, backbone)
    ]
    assert jobs
    for config in jobs:
        group = config.optimizer.backbone
        assert config.sampling.batch_size == batch
        assert group.lr == pytest.approx(rate)
        assert (group.step_epochs, group.step_factor) == (step, factor)
        assert sum(phase.epochs for phase in config.stages[0].phases) == 100
        assert config.evaluation.monitor == "recall@1"


def test_the_decks_three_protocols():
    tournament = jobs_of("deck_tournament")
    assert {job.record.arm for job in tournament} == DECK_LOSSES
    assert {job.config.data.validation for job in tournament} == {"test"}
    experiments = Counter(
        source
        for source, _, _ in {
            (job.record.source, job.record.backbone, job.record.dim)
            for job in tournament
        }
    )
    assert experiments == {"cub200": 3 * 4, "cars196": 4}
    folds = jobs_of("deck_cross_validation")
    assert {job.config.data.fold for job in folds} == set(range(10))
    assert {job.config.data.fold_split for job in folds} == {"random"}
    fixed = jobs_of("deck_fixed_validation")
    assert {job.config.data.validation_fraction for job in fixed} == {0.1}


def test_reality_check_gives_every_loss_the_same():
    plan = plan_of("reality_check")
    assert plan.protocol.concatenated
    assert plan.protocol.split == "contiguous"
    for job in jobs_of("reality_check"):
        config = job.config
        assert config.data.folds == 4
        assert config.sampling.classes is None
        assert config.sampling.batch_size == 8 * 4
        assert config.optimizer.head == config.optimizer.backbone
        assert config.optimizer.backbone.lr == 1e-6
        assert config.model.batch_norm == "frozen"
        assert not config.evaluation.clustering


@pytest.mark.parametrize("name", sorted(TRIALS))
def test_what_a_search_tries_are_settings_of_its_arms(name):
    plan = plan_of(name)
    for arm in arms(plan):
        space = plan.tuning.with_space(arm.space).space
        ends = []
        for end in (0, -1):
            changes = {
                key: (
                    (values.low, values.high)[end]
                    if isinstance(values, RangeConfig)
                    else values[end]
                )
                for key, values in space.items()
            }
            config = configured(
                plan, first_setup(plan, plan.sources[0], arm), changes
            )
            ends.append(flat(config.model_dump()))
            for key, value in changes.items():
                assert ends[-1][place_of(key)] == value
        changed = {key for key in ends[0] if ends[0][key] != ends[1].get(key)}
        assert set(map(place_of, space)) <= changed


def test_an_arm_of_another_network_has_weights_of_its_own():
    """`--weights FILE` is of the network of the plan's other arms."""
    others = [
        arm
        for arm in plan_of("proxynca_pp_table11").arms
        if "model.backbone" in arm.set
    ]
    assert len(others) == 4
    assert {arm.set["model.weights"] for arm in others} == {"imagenet"}


def place_of(key):
    """The key by position of an argument of the only loss."""
    return re.sub(r"^loss\.\w+\.", "loss.0.arguments.", key)


def test_mistakes_in_arms_are_found_before_the_first_run():
    plan = plan_of("proxynca_pp_table7")
    values = plan.model_dump()
    table = values["paper_values"][-1]["values"]
    table["-temperature"] = table.pop("-prob")
    values["findings"][0]["than"] = ["-scales"]
    values["arms"][1]["recipe"] = "proxynca_pp:no_scales"
    values["arms"][2]["set"] = {"model.pool": "average"}
    values["paper_values"][0]["pretrained"] = {"no arm": {"recall@1": 0.5}}
    with pytest.raises(UsageError) as caught:
        make_jobs(parse_plan(values))
    for mistake in (
        "'-temperature'",
        "'-scales'",
        "'no arm'",
        "no preset 'no_scales'",
        "`model.pool`",
    ):
        assert mistake in str(caught.value)


def test_a_plan_is_written_and_read_back():
    from keras_dml.config.yaml_files import parse_yaml

    plan = plan_of("proxy_isa_figure9")
    assert parse_plan(parse_yaml(dump_plan(plan))) == plan


def test_the_page_lists_every_plan_with_its_runs():
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| ([\d,]+)(?: after (\d+) trials.*?)? \|",
        DOCS.read_text("utf-8"),
        re.MULTILINE,
    )
    listed = {name: int(runs.replace(",", "")) for name, _, runs, _ in rows}
    assert listed == RUNS
    assert len(rows) == len(RUNS)
    trials = {name: int(count) for name, _, _, count in rows if count}
    assert trials == TRIALS


@pytest.mark.parametrize(
    "old, new",
    [
        ("deck_cub_googlenet", "deck_tournament"),
        ("deck_search_soft_triple", "deck_search"),
        ("heated_up_table4", "heated_up_tables1_4"),
        ("proxynca_pp_table3", "proxynca_pp_tables3_6"),
        ("proxynca_pp_table13", "proxynca_pp_tables12_13"),
        ("proxy_isa_table4_sop_inshop", "proxy_isa_table4"),
        ("proxy_isa_weights", "proxy_isa_table3"),
    ],
)
def test_a_plan_that_became_part_of_another_says_of_which(old, new):
    with pytest.raises(UsageError, match=f"part of the plan '{new}' now"):
        load_plan(old)


def test_cases_and_findings_follow_the_data_of_a_plan():
    values = plan_of("proxynca_pp_tables12_13").model_dump()
    claims = [finding["claim"] for finding in values["findings"]]
    for source, missing in (("cub200", {3}), ("./shoes", {2, 3})):
        plan = parse_plan(narrowed(values | {"sources": [source]}))
        assert [finding.claim for finding in plan.findings] == [
            claim for i, claim in enumerate(claims) if i not in missing
        ]
    values = plan_of("deck_tournament").model_dump()
    everywhere = {**values["cases"][0], "backbones": [], "weights": None}
    values["cases"].insert(0, everywhere | {"set": {"model.k": 2}})
    plan = parse_plan(narrowed(values | {"backbones": ["resnet50_v1_5"]}))
    assert [case.backbones for case in plan.cases] == [
        [],
        ["resnet50_v1_5"],
        ["resnet50_v1_5"],
    ]
    with pytest.raises(UsageError, match="unknown"):
        parse_plan(values | {"backbones": ["resnet50_v1_5"]})


def test_a_case_can_leave_out_a_combination():
    networks = {
        (job.record.source, job.record.backbone)
        for job in jobs_of("deck_tournament")
    }
    assert networks == {
        ("cub200", "resnet50_v1_5"),
        ("cub200", "googlenet"),
        ("cub200", "bn_inception"),
        ("cars196", "bn_inception"),
    }
