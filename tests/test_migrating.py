"""The migration page names losses and arguments that exist."""

import re

import keras
import pytest

from keras_dml import layers, losses, optimizers
from tests.conftest import ROOT

ROWS = [
    line.split(" | ")
    for line in (ROOT / "docs/migrating.md").read_text().splitlines()
    if line.startswith("| `")
]
CALLS = sorted(
    {
        code
        for row in ROWS
        for cell in row[1:]
        for code in re.findall(r"`([A-Z]\w+\(.*?\))`", cell)
        if code.split("(")[0] in {*losses.__all__, *layers.__all__}
        and "..." not in code
    }
)


def test_the_page_has_calls():
    assert len(ROWS) > 30
    assert len(CALLS) > 25


@pytest.mark.parametrize("call", CALLS)
def test_every_call_can_be_made(call):
    if call.startswith("Proxies("):
        call = call.replace("Proxies(", "Proxies(3, ")
    names = {**vars(losses), **vars(layers)}
    names |= {"loss": losses.Triplet(), "size": 8, "num_classes": 3}
    made = eval(call, names)
    assert isinstance(made, (keras.losses.Loss, keras.layers.Layer))


@pytest.mark.parametrize(
    "name",
    [
        "TripletSemiHardLoss",
        "TripletHardLoss",
        "ContrastiveLoss",
        "NpairsLoss",
        "NpairsMultilabelLoss",
        "LiftedStructLoss",
    ],
)
def test_every_loss_of_tensorflow_addons_has_a_row(name):
    assert any(f"`{name}(" in row[0] for row in ROWS)


def test_the_optimizer_it_names_exists():
    assert optimizers.PerVariable
