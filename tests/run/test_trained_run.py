"""What a run leaves, and finds when its images have changed since."""

import shutil

import pytest

import keras_dml
from keras_dml.errors import RunError, UsageError
from keras_dml.run import fit as training
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder
from tests.run.made_up import QUICK, quick_settings


@pytest.mark.slow
def test_classes_that_trained_are_not_tested_later(tmp_path):
    """A new folder moved the half of the classes that tests, in silence."""
    photos = image_folder(tmp_path / "photos", classes=8, images=4, size=28)
    run = keras_dml.fit(
        photos,
        output=tmp_path / "run",
        backbone="small_cnn",
        recipe="norm_softmax",
        epochs=1,
        settings=QUICK,
        export=False,
        report=False,
        verbose=False,
    )
    tested = TrainedRun(run.folder.path).part("test")
    more = photos / "0-new"
    shutil.copytree(next(photos.iterdir()), more)
    with pytest.raises(UsageError, match="classes must be those that the run"):
        TrainedRun(run.folder.path).part("test")
    # A photo more in a class is embedded with the others.
    shutil.rmtree(more)
    folder = photos / tested.embeddings.names[0]
    shutil.copy(next(folder.iterdir()), folder / "more.png")
    again = TrainedRun(run.folder.path).part("test")
    assert len(again.embeddings) == len(tested.embeddings) + 1


@pytest.mark.slow
def test_a_run_whose_export_fails_has_its_results(tmp_path, capsys):
    """An operation that LiteRT lacks left hours of training without any."""
    photos = image_folder(tmp_path / "photos", classes=8, images=4, size=28)

    def fails(*arguments):
        raise RunError("LiteRT has no such operation.")

    config = quick_settings(photos, "none", epochs=1)
    with pytest.raises(RunError, match="no such operation"):
        training.fit(config, tmp_path / "run", export=fails)
    said = " ".join(capsys.readouterr().err.split())
    assert f"keras-dml export {tmp_path / 'run'}`" in said
    folder = RunFolder(tmp_path / "run")
    assert folder.finished
    assert TrainedRun(folder.path).part("test") is not None
