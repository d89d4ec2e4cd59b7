import pytest

from keras_dml.config.merging import BUILT_IN, Layer, Merged, flatten
from keras_dml.config.named_items import nested
from keras_dml.config.settings import parse_settings
from keras_dml.errors import UsageError

BELOW = {
    "seed": 1,
    "loss": [
        {"name": "triplet", "weight": 0.5, "arguments": {"margin": 0.1}},
        {"name": "circle"},
    ],
    "stages": [
        {"name": "search", "phases": [{"name": "warm_up"}, {"epochs": 9}]},
        {"name": "final", "phases": [{"epochs": 40}]},
    ],
    "model": {"dim": 64, "heat": None, "k": [1, 2]},
}


def parse_override(text):
    ((key, value),) = parse_settings([text])
    return nested(key, value)


def merged(*changes):
    layers = [Layer("below", BELOW)]
    layers += [Layer(f"change {n}", part) for n, part in enumerate(changes)]
    return Merged(layers)


def overridden(*overrides):
    return merged(*map(parse_override, overrides))


def test_layers_keep_their_values():
    first, second = {"a": {"b": [1]}}, {"a": {"c": 2}}
    values = Merged([Layer("1", first), Layer("2", second)]).values
    values["a"]["b"].append(3)
    assert first == {"a": {"b": [1]}}
    assert values == {"a": {"b": [1, 3], "c": 2}}


@pytest.mark.parametrize(
    "part",
    [
        {"stages": {"final": {"train": {"epochs": 7}}}},
        {"stages": {"final": {"phases": {"train": {"epochs": 7}}}}},
        {"stages": {"final": {"phases": {0: {"epochs": 7}}}}},
        {"stages": {1: {"phases": {"0": {"epochs": 7}}}}},
        parse_override("stages.final.train.epochs=7"),
        parse_override("stages.1.phases.0.epochs=7"),
        parse_override("stages.1.train={epochs: 7}"),
        parse_override("stages={final: {train: {epochs: 7}}}"),
        parse_override("stages.final={train: {epochs: 7}}"),
        parse_override("stages.final.phases={train: {epochs: 7}}"),
        parse_override("stages.final.phases.train={epochs: 7}"),
    ],
)
def test_one_phase_by_name_or_position(part):
    values = merged(part).values
    assert values["stages"][1]["phases"] == [{"epochs": 7}]
    assert values["stages"][0] == BELOW["stages"][0]


@pytest.mark.parametrize(
    "part",
    [
        {"loss": {"triplet": {"margin": 0.3}}},
        {"loss": {"triplet": {"arguments": {"margin": 0.3}}}},
        {"loss": {0: {"margin": 0.3}}},
        parse_override("loss.triplet.margin=0.3"),
        parse_override("loss.triplet.arguments.margin=0.3"),
        parse_override("loss.0.arguments.margin=0.3"),
        parse_override("loss={triplet: {margin: 0.3}}"),
        parse_override("loss.triplet={margin: 0.3}"),
        parse_override("loss.0={arguments: {margin: 0.3}}"),
    ],
)
def test_one_argument_of_one_term(part):
    first, second = merged(part).values["loss"]
    assert first == {
        "name": "triplet",
        "weight": 0.5,
        "arguments": {"margin": 0.3},
    }
    assert second == {"name": "circle"}


def test_a_list_replaces_a_list():
    values = merged({"loss": [{"name": "supcon"}]}).values
    assert values["loss"] == [{"name": "supcon"}]
    assert overridden("model.k=[4]").values["model"]["k"] == [4]


def test_names_without_a_list_make_one():
    part = {
        "loss": {"triplet": {"margin": 0.1}},
        "stages": {"main": {"classes": "all", "train": {"epochs": 3}}},
    }
    assert Merged([Layer("", part)]).values == {
        "loss": [{"name": "triplet", "arguments": {"margin": 0.1}}],
        "stages": [
            {
                "name": "main",
                "classes": "all",
                "phases": [{"name": "train", "epochs": 3}],
            }
        ],
    }


def test_an_override_replaces_a_section_and_a_layer_changes_it():
    replaced = overridden("model={dim: 8}").values["model"]
    assert replaced == {"dim": 8}
    changed = merged({"model": {"dim": 8}}).values["model"]
    assert changed == {"dim": 8, "heat": None, "k": [1, 2]}


@pytest.mark.parametrize(
    "key", ["stages.search.warm_up", "stages.0.phases.0", "stages.search.0"]
)
def test_an_override_changes_an_item(key):
    """An item without its name, or what else it says, is another item."""
    values = overridden(f"{key}={{epochs: 2}}").values["stages"][0]
    assert values["phases"][0] == {"name": "warm_up", "epochs": 2}


def test_an_override_replaces_a_section_of_an_item():
    replaced = overridden(
        "loss.triplet.arguments={soft: true}",
        "stages.final.train.heat={epoch: 3, scale: 4.0}",
        "stages.final.train.heat={every: 3}",
    ).values
    assert replaced["loss"][0] == {
        "name": "triplet",
        "weight": 0.5,
        "arguments": {"soft": True},
    }
    assert replaced["stages"][1]["phases"][0]["heat"] == {"every": 3}


def test_null_becomes_a_section():
    values = merged({"model": {"heat": {"epoch": 3}}}).values
    assert values["model"]["heat"] == {"epoch": 3}


def test_origins_are_those_of_the_layers():
    origins = merged(
        {"loss": {"triplet": {"margin": 0.3}}, "seed": 2},
        {"stages": {"final": {"train": {"epochs": 7}}}},
    ).origins
    assert origins["seed"] == "change 0"
    assert origins["loss.triplet.margin"] == "change 0"
    assert origins["loss.triplet.weight"] == "below"
    assert origins["stages.final.train.epochs"] == "change 1"
    assert origins["stages.search.train.epochs"] == "below"
    assert BUILT_IN not in origins.values()


def test_every_key_of_flatten_is_an_override():
    flat = flatten(BELOW)
    values = BELOW
    for key in flat:
        if not key.endswith(".name"):
            layers = [Layer("", values), Layer("", parse_override(f"{key}=5"))]
            values = Merged(layers).values
    assert {
        key: value
        for key, value in flatten(values).items()
        if not key.endswith(".name")
    } == {key: 5 for key in flat if not key.endswith(".name")}


def test_items_of_one_name_go_by_position():
    twice = {"loss": [{"name": "nca"}, {"name": "nca", "weight": 2.0}]}
    assert flatten(twice)["loss.1.weight"] == 2.0
    layers = [Layer("", twice), Layer("", {"loss": {"nca": {"weight": 3.0}}})]
    with pytest.raises(UsageError, match="`loss.nca` names more than one"):
        Merged(layers)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss.tripet.margin=1", "`loss.tripet` .*Nearest: 'triplet'"),
        ("stages.finl.classes=all", "'search', 'final'.*from 0 to 1.*'final'"),
        ("stages.final.clases=all", "Received: 'clases'. Nearest: 'classes'"),
        ("stages.2.classes=all", "Received: '2'"),
        ("stages.\u00b2.classes=all", "Received: '\u00b2'"),
        (f"stages.{'9' * 5000}.classes=all", "Received: '999"),
        (
            f"{'a.' * 40}b=1",
            "A key must have at most 32 parts. Received: 'a.a.",
        ),
        ("model.dim=[", "The value of `model.dim` is not valid YAML"),
        ("seed.x=1", "`seed` is a value, not a section"),
        ("model.dim", "must be `key=value`, .*Received: 'model.dim'"),
        ("=3", "must be `key=value`"),
    ],
)
def test_mistakes(override, message):
    with pytest.raises(UsageError, match=message):
        overridden(override)
