"""The Beam transform on Beam's local runner, with a real model."""

import csv
import io

import numpy as np
import pytest

beam = pytest.importorskip("apache_beam")

from apache_beam.testing import test_pipeline as pipelines  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

from keras_dml.embed import beam_job  # noqa: E402
from keras_dml.embed.beam import (  # noqa: E402
    EmbedImages,
    ReadImages,
    copy_folder,
)
from keras_dml.embed.embedder import ImageEmbedder  # noqa: E402
from tests.embed.photos import BAD, expected  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


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
