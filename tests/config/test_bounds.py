"""No number of a configuration can ask for more than any machine has."""

import pytest

from keras_dml.config import RunConfig, resolve
from keras_dml.config.plan_sections import MOST_RUNS, PlanConfig
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError


def numbers(schema, path=()):
    """Yields every number of a JSON schema with its place."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number") and "enum" not in schema:
            yield path, schema
        for key, part in schema.items():
            yield from numbers(part, (*path, key))
    elif isinstance(schema, list):
        for part in schema:
            yield from numbers(part, path)


@pytest.mark.parametrize("section", [RunConfig, PlanConfig])
def test_every_number_has_two_bounds(section):
    found = list(numbers(section.model_json_schema()))
    assert len(found) > 10
    for path, number in found:
        assert {"minimum", "exclusiveMinimum"} & {*number}, path
        assert {"maximum", "exclusiveMaximum"} & {*number}, path


@pytest.mark.parametrize(
    "setting",
    [
        "seed=4294967296",
        "model.dim=2000000",
        "model.scale=.inf",
        "model.scale=1e308",
        "model.scale=1e-300",
        "model.proxies.centers=1000000000",
        "loss.0.weight=.nan",
        "loss.0.memory={size: 100000000000}",
        "data.image_size=1000000",
        "data.enlarge=1e308",
        "data.max_classes=100000000000000000000",
        "sampling.steps_per_epoch=100000000000000000000",
        "evaluation.kmeans_starts=1000000000",
        "evaluation.k=[100000000000000000000]",
        "augmentation.area=[.nan, 1]",
        "augmentation.area=[0.5, 0.1]",
        "augmentation.scale=[1, 1e308]",
        "optimizer.backbone.lr=.inf",
        "minutes=1e308",
    ],
)
def test_numbers_out_of_range(setting):
    with pytest.raises(UsageError) as caught:
        resolve("norm_softmax", "digits", overrides=[setting])
    (line,) = {
        one.replace(f"optimizer.{group}", "optimizer.backbone")
        for one in str(caught.value).splitlines()
        for group in ("head", "proxies")
        if f"optimizer.{group}" in one or "optimizer." not in one
    }
    key = setting.partition("=")[0]
    assert f"Configuration key `{key}" in line
    assert "Received: " in line
    assert len(line) < 300


def plan(**values):
    return {"title": "x", "sources": ["digits"], "recipes": ["bn"], **values}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"seeds": [2**32]}, "`seeds.0`.*less than 4294967296"),
        ({"dims": [2_000_000]}, "`dims.0`.*65536"),
        ({"budget": {"epochs": 10**17}}, "`budget.epochs`.*1000000"),
        ({"protocol": {"folds": 10**12}}, "`protocol.folds`.*1000"),
        (
            {"grid": {key: list(range(99)) for key in "abcde"}},
            "at most 100,000 trainings; .* make 9,509,900,499",
        ),
        (
            {"tuning": {"space": {"a": {"low": 0, "high": 1e30, "step": 0.1}}}},
            "a range has at most 1,000,000,000 steps; step is 0.1",
        ),
        (
            {"tuning": {"space": {"a": [*range(1001)]}}},
            "`tuning.space.a`.*at most 1000 items",
        ),
    ],
)
def test_plans_that_no_machine_can_run(values, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_plan(plan(**values))
    assert len(str(caught.value)) < 800


def test_a_plan_may_be_as_large_as_the_limit():
    seeds = list(range(MOST_RUNS // 2))
    assert parse_plan(plan(recipes=["bn", "ln"], seeds=seeds)).seeds == seeds
