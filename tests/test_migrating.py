"""The migration page names losses, arguments and functions that exist."""

import fnmatch
import importlib
import inspect
import json
import re

import keras
import numpy as np
import pytest
import yaml

import keras_dml
from keras_dml import layers, losses, miners
from keras_dml.export import ExportOptions
from tests.conftest import ROOT

PAGE = (ROOT / "docs/migrating.md").read_text()
PARITY = ROOT / "tests/parity"
PROOFS = yaml.safe_load((PARITY / "proofs.yaml").read_text())
PEERS = json.loads((ROOT / "tests/parity/peer_losses.json").read_text())


def rows(text):
    """The rows of the tables of a text, without their header."""
    return [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| `")
    ]


LOSSES, _, REST = PAGE.partition("\n## Samplers, accuracy, trainers\n")
ROWS = rows(LOSSES)
CALLS = sorted(
    {
        code
        for row in ROWS
        for cell in row[1:]
        for code in re.findall(r"`((?:miners\.)?[A-Z]\w+\(.*?\))`", cell)
        if code.split("(")[0]
        in {
            *losses.__all__,
            *layers.__all__,
            *(f"miners.{m}" for m in dir(miners)),
        }
        and "..." not in code
    }
)


def section(peer):
    """The part of the page on a library, such as "tensorflow-addons 0.23.0"."""
    name, version = peer.split()
    titles = {"tensorflow-similarity": "TensorFlow Similarity"}
    title = titles.get(name, name) + " " + version.rsplit(".", 1)[0]
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found, f"The page has no section {title!r}."
    return rest.split("\n## ")[0]


def rest_of(peer):
    """Its rows in the table of samplers, accuracy and trainers."""
    return rows(REST.replace(f"| {peer.split()[0]} `", "| `"))


def equal_rows():
    """The rows that say "equal": the file of a library, and their class."""
    for peer in PEERS:
        library = peer.split()[0].replace("-", "_")
        for row in rows(section(peer)):
            if re.search(r"\bequal\b", row[2]):
                yield library, re.match(r"`(\w+)", row[0])[1]


@pytest.mark.parametrize("library, name", list(equal_rows()))
def test_what_a_row_calls_equal_has_kept_numbers(library, name):
    proofs = {
        file: patterns[name]
        for file, patterns in PROOFS.items()
        if file.startswith(library) and name in patterns
    }
    assert len(proofs) == 1, f"{name} has {len(proofs)} proofs"
    ((file, pattern),) = proofs.items()
    with np.load(PARITY / f"{file}.npz") as kept:
        cases = {key.split("/")[1] for key in kept.files}
    assert fnmatch.filter(cases, pattern), (file, pattern)
    assert (PARITY / f"test_{file}.py").is_file()


def test_every_proof_is_of_a_row():
    proven = {name for patterns in PROOFS.values() for name in patterns}
    assert proven == {name for _, name in equal_rows()}


def test_the_page_has_calls():
    assert len(ROWS) > 60
    assert len(CALLS) > 40


@pytest.mark.parametrize("call", CALLS)
def test_every_call_can_be_made(call):
    if call.startswith("Proxies("):
        call = call.replace("Proxies(", "Proxies(3, ")
    names = {"miners": miners, **vars(losses), **vars(layers)}
    names |= {"loss": losses.Triplet(), "size": 8, "num_classes": 3}
    made = eval(call, names)
    kinds = (keras.losses.Loss, keras.layers.Layer, miners.Miner)
    assert isinstance(made, kinds)


@pytest.mark.parametrize(
    "peer, name", [(peer, name) for peer in PEERS for name in PEERS[peer]]
)
def test_every_name_that_a_library_exports_has_a_row(peer, name):
    named = [
        row
        for row in rows(section(peer)) + rest_of(peer)
        if re.search(rf"`{name}\b", row[0])
    ]
    assert len(named) == 1, f"{name} has {len(named)} rows"
    (row,) = named
    assert len(row) == 3
    assert all(cell.strip() for cell in row)


@pytest.mark.parametrize("ours", miners.MINERS.values())
def test_every_miner_of_ours_is_on_the_page(ours):
    """In the row of what it replaces, or among those that only we have."""
    assert re.search(rf"`miners\.{ours.__name__}\b", PAGE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][1:30])
def test_every_row_names_one_of_ours_or_says_that_there_is_none(row):
    ours = {
        name
        for package in (losses, layers, miners)
        for name in getattr(package, "__all__", vars(package))
        if re.search(rf"`(miners\.)?{name}\b", row[1])
    }
    assert ours or row[1] == "none"
    assert not row[1].startswith("none;") or "nearest" in row[1]


def referred():
    """What the table of samplers, accuracy and trainers has for theirs."""
    table = REST.split("\n\nLosses take")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    for line in rows[2:]:
        for code in re.findall(r"`(.*?)`", line.split(" | ")[1]):
            if not code.startswith("--"):
                yield code


REFERRED = list(referred())


def test_the_rest_of_the_page_is_read():
    assert len(REFERRED) >= 9


@pytest.mark.parametrize("code", REFERRED)
def test_what_replaces_the_rest_exists_and_takes_these_arguments(code):
    name, _, arguments = code.partition("(")
    owner, _, attribute = name.rpartition(".")
    owners = {
        "run": keras_dml.Run,
        "keras.Model": keras.Model,
        "keras_dml": keras_dml,
    }
    if owner not in owners:
        owners[owner] = importlib.import_module(f"keras_dml.{owner}")
    found = getattr(owners[owner], attribute)
    named = re.findall(r"(\w+)=", arguments)
    accepted = {*inspect.signature(found).parameters}
    if found is keras_dml.Run.export:
        accepted |= {*inspect.signature(ExportOptions).parameters}
    assert set(named) <= accepted
