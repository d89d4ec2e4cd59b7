"""Images in memory are embedded by a run, its embedder or a SavedModel."""

import shutil

import numpy as np
import pytest

from keras_dml.embed.embedder import ImageEmbedder
from keras_dml.errors import RunError, UsageError
from tests.embed.photos import BAD, expected


def test_a_run_its_embedder_and_its_export_embed_alike(
    run, saved_model, photos
):
    models = (run, run / "embedder.keras", saved_model)
    found = [expected(model, photos) for model in models]
    for one in found:
        bad = {name: why for name, why in one.items() if isinstance(why, str)}
        assert bad.keys() == BAD.keys()
        for name, why in bad.items():
            assert BAD[name] in why
    for name in found[0].keys() - BAD.keys():
        for other in found[1:]:
            np.testing.assert_allclose(other[name], found[0][name], atol=1e-5)


def test_an_embedder_of_another_run_is_refused(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace("dim: 5", "dim: 6"))
    with pytest.raises(RunError, match="in 5 dimensions; the run says .* 6"):
        ImageEmbedder(copy)


def test_a_saved_model_without_variables_is_refused(saved_model, tmp_path):
    copy = shutil.copytree(saved_model, tmp_path / "copy")
    shutil.rmtree(copy / "variables")
    with pytest.raises(UsageError, match="must be a whole SavedModel"):
        ImageEmbedder(copy)


def test_a_folder_without_a_model_is_refused(tmp_path, photos):
    with pytest.raises(UsageError, match="must be a run folder, an"):
        ImageEmbedder(photos)


def test_a_saved_model_outlives_the_folder_it_came_from(
    saved_model, photos, tmp_path
):
    folder = shutil.copytree(saved_model, tmp_path / "copy")
    embedder = ImageEmbedder(folder)
    shutil.rmtree(folder)
    (result,) = embedder.embed_bytes([(photos / "wide.png").read_bytes()])
    assert result.shape == (5,)
