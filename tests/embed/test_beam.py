"""The Beam transform on Beam's local runner, with a real model."""

import csv
import io
import shutil

import keras
import numpy as np
import pytest
from PIL import Image

beam = pytest.importorskip("apache_beam")

from apache_beam.testing import test_pipeline as pipelines  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

from keras_dml.config import dump_run_config, resolve  # noqa: E402
from keras_dml.embed import beam_job  # noqa: E402
from keras_dml.embed.beam import (  # noqa: E402
    EmbedImages,
    ReadImages,
    copy_folder,
)
from keras_dml.embed.embedder import ImageEmbedder  # noqa: E402
from keras_dml.errors import UsageError  # noqa: E402
from keras_dml.export import export_saved_model  # noqa: E402
from tests.images import image_folder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SIZE = 8


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder as `fit` leaves it, with an untrained embedder."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    folder.mkdir()
    config = resolve(
        "norm_softmax",
        "digits",
        overrides=[
            f"data.image_size={SIZE}",
            "data.channels=3",
            "augmentation.resize=12",
            "model.dim=5",
        ],
    )
    (folder / "config.yaml").write_text(dump_run_config(config))
    keras.utils.set_random_seed(0)
    inputs = keras.Input((SIZE, SIZE, 3))
    outputs = keras.layers.Conv2D(4, 3, activation="relu")(inputs / 255.0)
    outputs = keras.layers.Dense(5)(keras.layers.Flatten()(outputs))
    outputs = keras.layers.UnitNormalization(name="unit")(outputs)
    keras.Model(inputs, outputs).save(folder / "embedder.keras")
    return folder


@pytest.fixture(scope="module")
def saved_model(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "saved_model"
    model = keras.saving.load_model(run / "embedder.keras", compile=False)
    return export_saved_model(model, folder, resize=12)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Good pictures of several kinds and sizes, and four bad ones."""
    folder = image_folder(
        tmp_path_factory.mktemp("images") / "photos", classes=3, images=5
    )
    Image.new("RGB", (1, 1), "red").save(folder / "pixel.jpg")
    Image.new("RGB", (40, 20), "blue").save(folder / "wide.png")
    Image.new("L", (900, 900)).save(folder / "large.png")
    good = (folder / "class_0" / "0.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(good[:-100])
    (folder / "empty.jpg").touch()
    (folder / "letter, sent.jpg").write_text("Dear all")
    return folder


BAD = {
    "cut.jpg": "JPEG",
    "empty.jpg": "the file is empty",
    "large.png": "it has 810,000 pixels, more than the limit of 800,000",
    "letter, sent.jpg": "it is not an image of a known format",
}


def expected(run, photos):
    """One image at a time, without Beam."""
    embedder = ImageEmbedder(run, max_pixels=800_000)
    found = {}
    for path in sorted(photos.rglob("*.*g")):
        (result,) = embedder.embed_bytes([path.read_bytes()])
        found[path.relative_to(photos).as_posix()] = result
    return found


def same(embedded, wanted):
    embedded = dict(embedded)
    assert embedded.keys() == wanted.keys()
    for name, embedding in embedded.items():
        assert np.asarray(embedding).dtype == np.float32
        np.testing.assert_allclose(embedding, wanted[name], atol=1e-5)


def matches_reasons(bad):
    bad = dict(bad)
    assert bad.keys() == BAD.keys()
    for name, reason in bad.items():
        assert BAD[name] in reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "embedder.keras", "saved_model"])
def test_each_image_is_embedded_or_bad(kind, run, saved_model, photos):
    model = {
        "run": run,
        "embedder.keras": run / "embedder.keras",
        "saved_model": saved_model,
    }[kind]
    wanted = expected(run, photos)
    assert {
        name for name, one in wanted.items() if isinstance(one, str)
    } == BAD.keys()
    good = {name: one for name, one in wanted.items() if name not in BAD}
    assert len(good) == 17
    items = [(name, (photos / name).read_bytes()) for name in wanted]
    with pipelines.TestPipeline() as pipeline:
        result = (
            pipeline
            | beam.Create(items)
            | EmbedImages(model, max_batch_size=4, max_pixels=800_000)
        )
        assert_that(result.embedded, lambda found: same(found, good))
        assert_that(result.bad, matches_reasons, label="bad")


@pytest.mark.slow
def test_the_job_writes_files_that_others_read(run, photos, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arguments = [
        *("--model", str(run), "--images", f"{photos}/**"),
        *("--output", str(tmp_path / "vectors"), "--root", f"{photos}/"),
        *(
            "--max-pixels",
            "800000",
            "--shards",
            "2",
            "--runner",
            "DirectRunner",
        ),
    ]
    beam_job.run(arguments)
    tables = [parquet.read_table(one) for one in tmp_path.glob("*.parquet")]
    assert len(tables) == 2
    rows = [row for table in tables for row in table.to_pylist()]
    wanted = expected(run, photos)
    same(
        [(row["id"], np.float32(row["embedding"])) for row in rows],
        {name: one for name, one in wanted.items() if name not in BAD},
    )
    assert len(rows) == 17
    (listed,) = tmp_path.glob("vectors.bad*.csv")
    with open(listed, newline="") as file:
        matches_reasons(
            (row["id"], row["reason"]) for row in csv.DictReader(file)
        )


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_a_bad_image_is_one_row_whatever_its_name(end):
    item = (f"a{end}b.jpg", 'it is "no" image')
    line = beam_job._line(item)
    assert list(csv.reader(io.StringIO(line, newline=""))) == [list(item)]


def test_names_are_whole_without_a_root(photos):
    with pipelines.TestPipeline() as pipeline:
        names = (
            pipeline
            | ReadImages(f"{photos}/class_0/*.jpg")
            | beam.Map(lambda item: item[0])
        )
        folder = f"{photos}/class_0"

        def check(found):
            assert sorted(found) == [f"{folder}/{i}.jpg" for i in range(5)]

        assert_that(names, check)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "/embedder.keras"])
def test_a_model_is_copied_from_afar(run, saved_model, tmp_path, name):
    copy = copy_folder(f"{run}{name}", tmp_path / "run")
    (result,) = ImageEmbedder(copy).embed_bytes([b"x"])
    assert result == "it is not an image of a known format"
    if not name:
        copy = copy_folder(str(saved_model), tmp_path / "saved_model")
        (result,) = ImageEmbedder(copy).embed_bytes([b""])
        assert result == "the file is empty"
    with pytest.raises(FileNotFoundError, match="There is no file in"):
        copy_folder(str(tmp_path / "nowhere"), tmp_path / "x")


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
