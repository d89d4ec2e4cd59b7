"""`keras-dml push`: a run on the Hub, and back from it.

The server is a stand-in; the client is the Hub's own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_dml import Run
from keras_dml.config import dump_run_config, load_run_config
from keras_dml.embed.embedder import ImageEmbedder
from keras_dml.push.files import files_of
from keras_dml.run.trained_run import TrainedRun
from tests.cli.hub_server import OTHER_TOKEN, TOKEN, serving_hub
from tests.cli.refusals import refused

huggingface_hub = pytest.importorskip("huggingface_hub")
constants = pytest.importorskip("huggingface_hub.constants")

pytestmark = [
    pytest.mark.slow,  # a training
    # Of the client, when it uploads a large file.
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]


@pytest.fixture
def hub(monkeypatch):
    with serving_hub() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        # The protocol of the other way is not public; the client has both.
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield served


def downloaded(hub, folder):
    """Runs the command of the card."""
    command = Path(sys.executable).with_name("hf")
    subprocess.run(
        [command, "download", "ada/paint", "--local-dir", folder],
        check=True,
        env={
            **os.environ,
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(folder.parent / "home"),
        },
    )
    return folder


def head_of(card):
    return huggingface_hub.ModelCard(
        card.decode(), ignore_metadata_errors=False
    )


def test_a_pushed_run_comes_back_and_embeds_the_same(
    hub, command, run, images, tmp_path
):
    outcome = command("push", run, "ada/paint")
    assert outcome.code == 0
    assert outcome.out == f"Pushed: {hub.address}/ada/paint\n"
    assert hub.repositories["ada/paint"].visibility == "private"
    back = downloaded(hub, tmp_path / "back")
    (image, *_) = sorted(images.rglob("*.png"))
    np.testing.assert_array_equal(
        ImageEmbedder(back)([image]), ImageEmbedder(run)([image])
    )
    one, other = Run(run), Run(back)
    assert other.rows() == one.rows()
    assert other.conclusion() == one.conclusion()
    assert other.history.phases == one.history.phases


def test_no_image_no_embedding_and_no_path_is_uploaded(
    hub, command, run, images
):
    Run(run).export("litert")
    Run(run).export("litert", references=True, output=run / "export-8")
    outcome = command("push", run, "ada/paint")
    files = hub.repositories["ada/paint"].files
    assert set(files) == {
        "README.md",
        "config.yaml",
        "embedder.keras",
        "export/litert/embedder.tflite",
        "export/litert/manifest.json",
        "export/litert/parity.json",
        "history.csv",
        "metrics.json",
        "thresholds.json",
    }
    assert "export-8/litert is left out" in outcome.err
    for name, content in files.items():
        for folder in (images.parent, run.parent):
            assert str(folder).encode() not in content, name


@pytest.fixture
def named(run):
    """A run whose settings name files of this machine, as a user's may."""
    place = run.parent / "own"
    config = load_run_config(run / "config.yaml").changed(
        recipe=f"{place}/mine.yaml:fast",
        data={"source": f"{place}/photos", "data_dir": f"{place}/sets"},
        model={
            "backbone": f"hub:{place}/dino",
            "weights": f"{place}/net.weights.h5",
        },
    )
    (run / "config.yaml").write_text(dump_run_config(config))
    metrics = json.loads((run / "metrics.json").read_text()) | {
        "recipe": config.recipe,
        "backbone": config.model.backbone,
        "dataset": "photos",
    }
    (run / "metrics.json").write_text(json.dumps(metrics))
    return run


def test_of_paths_only_the_last_part_is_uploaded(named):
    files = files_of(TrainedRun(named), "ada/paint", None)
    for name in ("README.md", "config.yaml", "metrics.json"):
        assert str(named.parent).encode() not in files[name], name
    pushed = named.parent / "pushed.yaml"
    pushed.write_bytes(files["config.yaml"])
    config = load_run_config(pushed)
    assert config.recipe == "mine.yaml:fast"
    assert config.data.source == "photos"
    assert config.model.backbone == "hub:dino"
    assert config.model.weights == "net.weights.h5"
    assert config.data.data_dir == "sets"


def test_an_export_that_names_a_folder_is_refused(hub, command, run):
    Run(run).export("litert")
    manifest = run / "export" / "litert" / "manifest.json"
    facts = json.loads(manifest.read_text()) | {"recipe": "/home/ada/my.yaml"}
    manifest.write_text(json.dumps(facts))
    refused(command("push", run, "ada/paint"), "/home/ada/my.yaml")
    assert hub.repositories == {}


def test_settings_stay_but_for_the_folders_above_paths(hub, command, run):
    command("push", run, "ada/paint")
    pushed = run.parent / "pushed.yaml"
    pushed.write_bytes(hub.repositories["ada/paint"].files["config.yaml"])
    own, other = load_run_config(run / "config.yaml"), load_run_config(pushed)
    assert other.data.source == "paint"
    assert other.changed(data={"source": own.data.source}) == own


def test_the_search_of_a_download_knows_its_threshold(
    hub, command, run, images, tmp_path
):
    (image, *_) = sorted(images.rglob("*.png"))
    search = (image, "--gallery", images, "--json")
    own = json.loads(command("search", run, *search).out)
    command("push", run, "ada/paint")
    back = downloaded(hub, tmp_path / "back")
    assert json.loads(command("search", back, *search).out) == own


def test_the_card_says_what_was_measured(hub, command, run):
    command("push", run, "ada/paint", "--license", "apache-2.0")
    text = hub.repositories["ada/paint"].files["README.md"]
    card, metrics = head_of(text), Run(run).metrics
    assert card.data.license == "apache-2.0"
    assert card.data.pipeline_tag == "image-feature-extraction"
    found = {one.metric_name: one for one in card.data.eval_results}
    assert {name: one.metric_value for name, one in found.items()} == {
        "MAP@R": metrics["after"]["map@r"],
        "R@1": metrics["after"]["recall@1"],
    }
    assert {one.dataset_name for one in found.values()} == {"paint"}
    for part in (Run(run).tested(), *Run(run).conclusion()):
        assert part in card.text
    row = Run(run).rows()[0]
    assert f"| MAP@R | {row['raw pixels']:.4f} | " in card.text


def test_a_second_push_replaces_what_the_first_left(hub, command, run):
    Run(run).export("litert")
    command("push", run, "ada/paint", "--message", "First")
    files = hub.repositories["ada/paint"].files
    others = ["notes.md", "export/notes.md", "export-notes/a/b.txt"]
    files.update(dict.fromkeys(others, b"Of a person."))
    (run / "export" / "litert").rename(run.parent / "away")
    assert command("push", run, "ada/paint").code == 0
    assert not [name for name in files if "litert" in name]
    assert "litert" not in files["README.md"].decode()
    assert {name for name in files if "notes" in name} == {*others}
    assert hub.repositories["ada/paint"].messages == ["First", "Push run"]


def test_a_repository_is_public_only_where_it_is_said(hub, command, run):
    command("push", run, "ada/paint", "--public")
    assert hub.repositories["ada/paint"].visibility == "public"
    # Somebody who does not say so may think that it is private.
    outcome = command("push", run, "ada/paint")
    refused(outcome, "as ada/paint is public")
    assert len(hub.repositories["ada/paint"].messages) == 1


def test_a_final_network_says_whose_results_it_shows(hub, command, run):
    metrics = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").write_text(json.dumps({**metrics, "final": True}))
    command("push", run, "ada/paint")
    card = hub.repositories["ada/paint"].files["README.md"].decode()
    assert "the same training on a part of the classes" in " ".join(
        card.split()
    )


@pytest.mark.parametrize(
    "name", ["paint", "ada/paint/1", "ada/pa int", "ada/pa--int", ""]
)
def test_a_repository_has_an_owner_and_a_name(hub, command, run, name):
    refused(command("push", run, name), "must be OWNER/NAME", "Received")
    assert hub.repositories == {}


def test_refusals(hub, command, run, monkeypatch):
    outcome = command("push", run, "ada/paint", "--license", "none-1")
    refused(outcome, "--license", "none-1", "apache-2.0")
    assert hub.repositories == {}
    monkeypatch.setenv("HF_TOKEN", OTHER_TOKEN)
    refused(
        command("push", run, "ada/other"),
        "Invalid credentials",
        "right to write",
    )
    monkeypatch.delenv("HF_TOKEN")
    refused(command("push", run, "ada/paint"), "needs a token")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    outcome = command("push", run, "ada/paint")
    refused(outcome, "pip install 'keras-dml[push]'")


def test_a_link_out_of_the_run_is_refused(hub, command, run, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("Do not tell.")
    (run / "history.csv").unlink()
    (run / "history.csv").symlink_to(secret)
    refused(command("push", run, "ada/paint"), "must be a file of the run")
    assert hub.repositories == {}


def test_a_run_without_its_network_is_refused(hub, command, run):
    (run / "embedder.keras").unlink()
    refused(command("push", run, "ada/paint"), "does not load", code=1)
    assert hub.repositories == {}


@pytest.mark.parametrize("broken", ["models", "uploads"])
def test_a_hub_out_of_order_is_no_mistake_of_the_caller(
    hub, command, run, broken
):
    hub.broken = broken
    refused(command("push", run, "ada/paint"), "push again", code=1)
    hub.broken = ""
    assert command("push", run, "ada/paint").code == 0


def test_no_network(hub, command, run, monkeypatch):
    # Nothing listens there.
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    refused(command("push", run, "ada/paint"), "push again", code=1)
