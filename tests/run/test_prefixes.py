"""Runs whose prefixes work alone, and what is made of one."""

import json

import numpy as np
import pytest

import keras_dml
from keras_dml.config import flags_of, resolve
from keras_dml.embeddings import load_embeddings
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate
from keras_dml.export.formats import open_artifact
from keras_dml.run.final import fit_final
from keras_dml.run.prefixes import CutRun, with_dim
from keras_dml.run.thresholds import usual_threshold
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder

pytestmark = pytest.mark.slow  # trainings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matryoshka")
    return keras_dml.fit(
        image_folder(folder / "photos", classes=24, images=6),
        backbone="small_cnn",
        epochs=1,
        dim=8,
        matryoshka=(2, 4, 8),
        output=folder / "run",
        export=False,
        settings={
            "sampling.steps_per_epoch": 2,
            "sampling.batch_size": 24,
            "data.validation_fraction": 0.5,
            "data.validation_from": 6,
            "evaluation.clustering": True,
        },
    )


def test_metrics_of_the_prefixes_are_those_of_their_numbers_alone(run):
    test = run.part("test").embeddings
    assert run.metrics["prefixes"].keys() == {"2", "4"}
    for size, found in run.metrics["prefixes"].items():
        rows = test.embeddings[:, : int(size)]
        alone = evaluate(rows, test.labels, k=1).metrics
        assert found == {
            name: pytest.approx(alone[name], abs=1e-6)
            for name in ("recall@1", "map@r")
        }
    short = run.metrics["prefixes"]["2"]
    assert run.metrics["after"]["map@r"] > short["map@r"]


def test_table_and_page_show_the_prefixes(run):
    last = run.rows()[-2:]
    assert [row["metric"] for row in last] == [
        "MAP@R, first 2 numbers",
        "MAP@R, first 4 numbers",
    ]
    value = run.metrics["prefixes"]["4"]["map@r"]
    assert last[1]["trained"] == value
    page = run.folder.report.read_text()
    assert f'the first 4</th>\n<td class="number">{value:.3f}</td>' in page
    log = " ".join(run.folder.log.read_text().split())
    assert "The first 2 and 4 numbers shall work alone" in log


def test_a_prefix_embeds_and_searches_alone(run, tmp_path):
    photos = run.config.data.source
    done = run.embed(photos, tmp_path / "vectors.npz", dim=4)
    assert done.dim == 4
    vectors = load_embeddings(tmp_path / "vectors.npz")
    whole = run.part("all", photos).embeddings
    order = [whole.ids.tolist().index(one) for one in vectors.ids.tolist()]
    expected = whole.embeddings[order, :4]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors.embeddings, expected, atol=1e-4)
    photo = f"{photos}/class_23/0.jpg"
    found = run.search([photo], k=3, gallery=photos, dim=4)
    row = vectors.ids.tolist().index("class_23/0.jpg")
    scores = vectors.embeddings @ vectors.embeddings[row]
    scores[row] = -1
    neighbors = found.answers[0].neighbors
    assert [one.score for one in neighbors] == pytest.approx(
        np.sort(scores)[::-1][:3].tolist(), abs=1e-4
    )


def test_a_prefix_has_its_own_thresholds(run):
    cut = with_dim(run, 2)
    found, _ = usual_threshold(cut)
    kept = json.loads((run.folder.path / "thresholds-2.json").read_text())
    assert kept["hash"] == cut.weights_hash != run.weights_hash
    assert found.threshold.score != usual_threshold(run)[0].threshold.score


def test_a_prefix_of_a_final_training_has_those_of_the_measured_one(run):
    """It had none: only those of whole embeddings came along."""
    final = TrainedRun(fit_final(run.folder, run.metrics, run.config))
    found, _ = usual_threshold(with_dim(final, 2))
    measured, _ = usual_threshold(with_dim(run, 2))
    assert found.threshold == measured.threshold
    assert found.threshold.score != usual_threshold(final)[0].threshold.score


def test_a_prefix_is_exported_alone(run):
    result = run.export("saved_model", "litert", dim=4)
    folder = run.folder.path / "export-4"
    assert folder.is_dir() and not run.folder.export.exists()
    shape = (1, *run.config.data.image_shape)
    batch = np.random.default_rng(0).integers(0, 256, shape).astype("float32")
    expected = CutRun(run, 4).embedder.predict(batch, verbose=0)
    for path in result.models:
        artifact = open_artifact(path.parent if path.is_file() else path)
        np.testing.assert_allclose(
            artifact.embed(artifact.prepare(batch)), expected, atol=1e-4
        )
    for name in ("saved_model", "litert"):
        (manifest,) = folder.glob(f"{name}*/manifest.json")
        facts = json.loads(manifest.read_text())
        assert facts["embedding"]["dim"] == 4
        assert facts["after"] == run.metrics["prefixes"]["4"]
        assert facts["prefixes"] == {}
    run.export("saved_model", output=run.folder.path / "whole")
    (manifest,) = (run.folder.path / "whole").glob("*/manifest.json")
    facts = json.loads(manifest.read_text())
    assert facts["prefixes"] == run.metrics["prefixes"]


def test_a_prefix_that_was_not_trained_is_refused(run, tmp_path):
    with pytest.raises(
        UsageError, match="`dim` must be.*2, 4 and 8.*: 3.*Train"
    ):
        run.embed(run.config.data.source, tmp_path / "vectors", dim=3)
    assert with_dim(run, 8) is run
    assert with_dim(run, None) is run


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"matryoshka": [4, 2]}, r"increase.*Received: \[4, 2\] and dim=8"),
        ({"matryoshka": [4, 4]}, "increase"),
        ({"matryoshka": [4, 16]}, "up to `dim`"),
        (
            {"matryoshka": [4], "matryoshka_weights": [1.0]},
            r"for each prefix, and one for the whole.*Received: 1 numbers",
        ),
        ({"matryoshka_weights": [1.0]}, "`matryoshka_weights` must hold"),
    ],
)
def test_sizes_and_weights_are_checked(settings, message):
    overrides = {f"model.{key}": value for key, value in settings.items()}
    with pytest.raises(UsageError, match=message):
        resolve("triplet", "digits", overrides={"model.dim": 8, **overrides})


def test_the_whole_embedding_counts_listed_or_not():
    for sizes in ((2, 4), (2, 4, 8)):
        flags = flags_of({"dim": 8, "matryoshka": sizes})
        overrides = {"model.matryoshka_weights": [1.0, 2.0, 3.0]}
        model = resolve("triplet", "digits", flags=flags, overrides=overrides)
        assert model.model.prefixes == [2, 4]
