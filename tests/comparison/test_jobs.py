import pytest

from keras_dml.comparison.jobs import count_trials, make_jobs
from keras_dml.comparison.plans import arms
from keras_dml.comparison.run_names import label_of, run_name, short_name
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError


def plan(**values):
    return parse_plan({"title": "T", "sources": ["digits"], **values})


def test_every_arm_source_network_size_and_seed():
    jobs = make_jobs(
        plan(
            sources=["digits", "omniglot"],
            recipes=["triplet", "norm_softmax"],
            backbones=["small_cnn", "mobilenet_v2"],
            dims=[16, 32],
            seeds=[0, 1, 2],
        )
    )
    assert len(jobs) == 2 * 2 * 2 * 2 * 3
    assert len({job.run for job in jobs}) == len(jobs)
    for job in jobs:
        config, record = job.config, job.record
        assert (record.source, record.backbone, record.dim, record.seed) == (
            config.data.source,
            config.model.backbone,
            config.model.dim,
            config.seed,
        )
        assert record.recipe == config.recipe == record.arm


def test_every_arm_is_measured_once_before_any_is_repeated():
    jobs = make_jobs(plan(recipes=["triplet", "ln"], seeds=[3, 1]))
    assert [(job.record.seed, job.record.arm) for job in jobs] == [
        (3, "triplet"),
        (3, "ln"),
        (1, "triplet"),
        (1, "ln"),
    ]


def test_folds_are_runs():
    jobs = make_jobs(
        plan(
            recipes=["triplet"],
            protocol={"kind": "cross_validation", "folds": 3},
            seeds=[0, 1],
        )
    )
    assert [job.record.fold for job in jobs] == [0, 1, 2] * 2
    assert [job.config.data.fold for job in jobs] == [0, 1, 2] * 2


def test_settings_of_the_plan_the_arm_and_the_grid():
    jobs = make_jobs(
        plan(
            recipes=["norm_softmax"],
            arms=[
                {"name": "plain"},
                {"name": "wide", "set": {"model.dim": 512}},
            ],
            grid={"model.scale": [4.0, 8.0]},
            set={"evaluation.every": 2, "model.dim": 64},
        )
    )
    found = [(j.record.arm, j.config.model.dim) for j in jobs]
    assert found == [
        ("plain, scale 4.0", 64),
        ("plain, scale 8.0", 64),
        ("wide, scale 4.0", 512),
        ("wide, scale 8.0", 512),
    ]
    assert {job.config.evaluation.every for job in jobs} == {2}
    assert [job.config.model.scale for job in jobs] == [4.0, 8.0] * 2
    assert jobs[0].record.line == "plain"
    assert jobs[0].record.factors == {"model.scale": 4.0}


def test_a_later_part_wins_also_over_a_whole_section_between():
    """The first part that named a key gave it its place for all."""
    (job,) = make_jobs(
        plan(
            recipes=["norm_softmax"],
            set={"sampling.batch_size": 32},
            arms=[
                {
                    "name": "balanced",
                    "set": {
                        "sampling": {"kind": "balanced", "images": 4},
                        "sampling.batch_size": 64,
                    },
                }
            ],
        )
    )
    assert job.config.sampling.batch_size == 64


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"set": {"data.validation_fraction": 0.3}},
            r"what the protocol `fixed_validation` decides. Received: "
            r"data\.validation_fraction=0\.3, .* changes to 0\.1\.",
        ),
        (
            {"grid": {"data.validation_fraction": [0.1, 0.3]}},
            "what the protocol `fixed_validation` decides",
        ),
        (
            {"set": {"final": "all"}},
            "Received: final='all', which .* changes to 'measured'",
        ),
        (
            {
                "arms": [{"name": "a", "set": {"stages.main.train.epochs": 9}}],
                "budget": {"epochs": 3},
            },
            r"what the budget decides. Received: stages\.main\.train\.epochs=9",
        ),
    ],
)
def test_what_the_budget_or_the_protocol_decides_is_not_set(values, told):
    fixed = {"kind": "fixed_validation"}
    with pytest.raises(UsageError, match=told):
        make_jobs(plan(recipes=["norm_softmax"], protocol=fixed, **values))


def test_a_grid_of_one_arm_is_named_by_its_factors_alone():
    jobs = make_jobs(plan(recipes=["triplet"], grid={"model.dim": [8, 16]}))
    assert [job.record.arm for job in jobs] == ["dim 8", "dim 16"]


def test_one_recipe_with_arms_is_only_what_they_start_from():
    one = plan(recipes=["ln"], arms=[{"name": "wide"}])
    assert [(arm.name, arm.recipe) for arm in arms(one)] == [("wide", "ln")]
    two = plan(recipes=["ln", "bn"], arms=[{"name": "wide", "recipe": "bn"}])
    assert [arm.name for arm in arms(two)] == ["ln", "bn", "wide"]


def test_equal_settings_share_a_run():
    jobs = make_jobs(
        plan(
            recipes=["ln"],
            arms=[
                {"name": "as it is"},
                {"name": "the same", "set": {"model.dim": 256}},
            ],
        )
    )
    assert jobs[0].config == jobs[1].config
    assert jobs[0].run == jobs[1].run
    assert [job.record.arm for job in jobs] == ["as it is", "the same"]


def test_different_settings_never_share_a_folder():
    jobs = make_jobs(
        plan(
            recipes=["ln"],
            arms=[
                {"name": "-scale", "set": {"model.scale": 1.0}},
                {"name": "+scale", "set": {"model.scale": 2.0}},
                {"name": "scale", "set": {"model.scale": 3.0}},
            ],
        )
    )
    assert len({job.run for job in jobs}) == 3


def test_names_stay_the_same():
    values = {"recipes": ["ln", "proxynca_pp:no_max"], "dims": [8]}
    first, second = (make_jobs(plan(**values)) for _ in range(2))
    assert [job.run for job in first] == [job.run for job in second]
    assert first[1].run == "digits-small_cnn-8d-proxynca_pp_no_max-seed0"


def test_found_settings_come_on_top():
    jobs = make_jobs(
        plan(recipes=["ln", "bn"], set={"model.scale": 4.0}),
        {("digits", None, "bn"): {"model.scale": 9.0}},
    )
    assert [job.config.model.scale for job in jobs] == [4.0, 9.0]


def test_cases_are_for_their_networks_and_data():
    jobs = make_jobs(
        plan(
            sources=["digits", "omniglot"],
            recipes=["ln"],
            arms=[{"name": "plain"}, {"name": "own", "set": {"model.dim": 9}}],
            backbones=["small_cnn", "googlenet"],
            weights="none",
            set={"model.dim": 8, "model.scale": 2.0},
            cases=[
                {"sources": ["digits"], "set": {"model.scale": 3.0}},
                {
                    "backbones": ["googlenet"],
                    "weights": "googlenet.weights.h5",
                    "set": {"model.dim": 7},
                },
            ],
        )
    )
    for job in jobs:
        model, record = job.config.model, job.record
        digits = record.source == "digits"
        googlenet = record.backbone == "googlenet"
        assert model.scale == (3.0 if digits else 2.0)
        assert model.weights == (
            "googlenet.weights.h5" if googlenet else "none"
        )
        expected = 9 if record.arm == "own" else 7 if googlenet else 8
        assert model.dim == expected


def test_cases_name_what_the_plan_has():
    with pytest.raises(UsageError, match="unknown: cub200"):
        plan(recipes=["ln"], cases=[{"sources": ["cub200"]}])


def test_all_mistakes_at_once():
    with pytest.raises(UsageError) as caught:
        make_jobs(
            plan(
                recipes=["norm_sofmax", "triplet", "ln:no_such"],
                set={"model.dimm": 3},
                seeds=[0, 1],
            )
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "Nearest: 'norm_softmax'" in lines[0]
    assert "Unknown configuration key `model.dimm`" in lines[1]
    assert "no preset 'no_such'" in lines[2]


def test_short_names():
    assert short_name("model.scale") == "scale"
    assert short_name("optimizer.proxies.lr") == "proxies lr"
    assert short_name("loss.0.arguments.margin") == "margin"


def test_trials_are_counted():
    assert count_trials(plan(recipes=["ln"])) == 0
    searched = plan(
        recipes=[],
        sources=["digits", "omniglot"],
        backbones=["small_cnn", "resnet50"],
        arms=[
            {"name": "a", "recipe": "ln"},
            {"name": "b", "recipe": "bn", "space": {"model.dim": [8, 16, 32]}},
        ],
        tuning={"space": {"model.scale": [2, 4]}},
    )
    assert count_trials(searched) == (2 + 6) * 2 * 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "1, 2"),
        (["a", "b c"], "a, b c"),
        ([-0.5, 1e-5], "-0.5, 1e-05"),
        ([], "[]"),
        (None, "None"),
        (True, "True"),
        (4.0, "4.0"),
    ],
)
def test_labels_are_words_and_name_the_folders_of_before(value, words):
    (job,) = make_jobs(plan(recipes=["ln"]))
    label = label_of("ln", {"model.k": value, "model.scale": 4}, alone=False)
    assert label == f"ln, k {words}, scale 4"
    before = f"ln, k {value}, scale 4"
    assert run_name(job.config, label, 0) == run_name(job.config, before, 0)
