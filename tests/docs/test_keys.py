"""Every key of a run and of a plan has its place, type, default and origin."""

import re

import pytest

from keras_dml.config import RunConfig, explain, resolve
from keras_dml.config.merging import flatten
from keras_dml.config.plan_sections import PlanConfig
from tests.docs.pages import origins, settings

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("model", "path"),
    [(RunConfig, settings.RUN), (PlanConfig, settings.PLAN)],
)
def test_every_key_has_a_place_with_its_type(generated, model, path):
    text = generated[path]
    count = 0
    for _, prefixes, schema in settings.keys(model):
        for prefix in prefixes:
            for key in schema["properties"]:
                place = f"{prefix}.{key}".lstrip(".")
                anchor = f"`{place}`{{ #{settings.anchor_of(place)} }}"
                assert text.count(anchor) == 1, place
                count += 1
    assert count == len(re.findall(r"`\{ #", text))
    assert "\n:   any value" not in text


def test_texts_are_of_keys_that_exist():
    known = {
        name: {*schema["properties"]}
        for model in (RunConfig, PlanConfig)
        for name, _, schema in settings.keys(model)
    }
    for name, texts in settings.TEXTS.items():
        assert {*texts} <= known[name], name


def test_every_key_that_config_shows_has_a_place(generated):
    text = generated[settings.RUN]
    for name in ("proxynca_pp", "hbn", "triplet"):
        shown = flatten(resolve(name, "digits").model_dump(mode="json"))
        for key in shown:
            place = origins.place_of(key, settings.places(RunConfig))
            assert f"`{place}`{{ #" in text, key


def test_every_key_says_what_sets_it(generated):
    """As `keras-dml config` does: the value on photos, and the recipes."""
    entries = re.findall(
        r"^(`.+)\n:   (.+)", generated[settings.RUN], re.MULTILINE
    )

    def entry(key):
        place = origins.place_of(key, settings.places(RunConfig))
        (text,) = (text for keys, text in entries if f"`{place}`{{ #" in keys)
        return text

    assert "On photos: `64` from `_base: pretrained`" in entry(
        "sampling.batch_size"
    )
    assert "On photos" not in entry("strategy")
    for key, origin in explain("triplet").origins.items():
        if ": " in origin:
            named = f"`{origin.partition(': ')[0]}`" in entry(key)
            assert named or re.search(r"Set by .+ more\.", entry(key)), key
