"""The int8 references beside a model, and the client that searches them."""

import json
import runpy

import numpy as np
import pytest
from PIL import Image

from keras_dml.data.image_fit import ImageFit
from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.errors import UsageError
from keras_dml.export import References, export_litert
from tests.conformance import to_numpy
from tests.conftest import ROOT
from tests.export.clients import cosines
from tests.export.images import FILES
from tests.export.test_litert import IMAGES
from tests.images import turned_file

pytestmark = pytest.mark.slow

CLIENT = ROOT / "examples" / "litert" / "python" / "embed.py"
NAMES = [f"image {row}" for row in range(16)]

BARE_CLIENT = """
    import runpy

    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def make_references(batches):
    return References(batches, labels=["a", "b"] * 8, ids=NAMES)


@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_rows_are_the_embeddings_of_the_artifact(
    quantize, make_embedder, tmp_path
):
    embedder = make_embedder()
    folder = export_litert(
        embedder,
        tmp_path / "litert",
        quantize=quantize,
        calibration=IMAGES,
        references=make_references([IMAGES[:5], IMAGES[5:]]),
    )
    notes = json.loads((folder / "references.json").read_text())
    assert (notes["rows"], notes["dim"]) == (16, 8)
    assert notes["labels"] == ["a", "b"] * 8
    assert notes["ids"] == NAMES
    rows = np.fromfile(folder / "references.bin", "int8").reshape(16, 8)
    assert np.abs(rows).max() == 127
    expected = to_numpy(embedder(IMAGES))
    assert cosines(rows, expected).min() > 0.99
    tolerance = 0.01 if quantize == "none" else 0.05
    np.testing.assert_allclose(notes["scale"] * rows, expected, atol=tolerance)


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (References([], [], []), "at least one image"),
        (References([IMAGES[:0]], [], []), "at least one image"),
        (References([IMAGES], NAMES[:3], NAMES), "`labels` .*3 for 16 images"),
        (References([IMAGES], NAMES, NAMES * 2), "`ids` .*32 for 16 images"),
    ],
)
def test_references_that_cannot_be(
    references, message, make_embedder, tmp_path
):
    with pytest.raises(UsageError, match=message):
        export_litert(
            make_embedder(), tmp_path / "litert", references=references
        )
    assert not list(tmp_path.iterdir())


def test_embeddings_of_any_length_are_refused(make_embedder, tmp_path):
    with pytest.raises(UsageError, match="length 1"):
        export_litert(
            make_embedder(normalize=False),
            tmp_path / "litert",
            references=make_references([IMAGES]),
        )


def test_the_client_finds_each_image_in_a_bare_process(
    make_embedder, run_bare, tmp_path
):
    folder = export_litert(
        make_embedder(),
        tmp_path / "litert",
        quantize="int8",
        calibration=IMAGES,
        references=make_references([IMAGES]),
    )
    files = []
    for row in (3, 8):
        files.append(tmp_path / f"{row}.png")
        Image.fromarray(IMAGES[row]).save(files[-1])
    printed = run_bare(
        BARE_CLIENT,
        CLIENT,
        folder,
        *files,
        "--k",
        2,
        "--output",
        tmp_path / "rows.npy",
        absent=("tensorflow", "keras", "keras_dml", "scipy", "sklearn"),
    ).splitlines()
    assert [line for line in printed if ".png" in line] == [*map(str, files)]
    assert printed[1].endswith("b  image 3")
    assert printed[4].endswith("a  image 8")
    assert float(printed[1].split()[0]) == pytest.approx(1, abs=0.01)
    assert np.load(tmp_path / "rows.npy").shape == (2, 8)


def test_the_client_reads_the_names_of_version_0_1(
    client, make_embedder, tmp_path
):
    folder = export_litert(
        make_embedder(),
        tmp_path / "litert",
        references=make_references([IMAGES]),
    )
    for suffix in (".bin", ".json"):
        (folder / f"references{suffix}").rename(folder / f"gallery{suffix}")
    read = client["References"](client["references_file"](folder))
    assert read.rows.shape == (16, 8)


def test_the_client_without_references(make_embedder, run_bare, tmp_path):
    folder = export_litert(make_embedder(), tmp_path / "litert")
    Image.fromarray(IMAGES[0]).save(tmp_path / "0.png")
    printed = run_bare(
        BARE_CLIENT,
        CLIENT,
        folder,
        tmp_path / "0.png",
        absent=("tensorflow", "keras", "keras_dml"),
    )
    assert "0.png [" in printed


@pytest.fixture
def client():
    return runpy.run_path(str(CLIENT))


@pytest.mark.parametrize(
    ("resize", "squash", "channels"),
    [(16, False, 3), (20, False, 3), (18, True, 3), (16, False, 1)],
)
def test_the_client_prepares_as_the_evaluation(
    resize, squash, channels, client, make_embedder, tmp_path
):
    embedder = make_embedder(channels=channels)
    folder = export_litert(
        embedder, tmp_path / "litert", resize=resize, squash=squash
    )
    paths = []
    for kind in ("jpeg", "png", "alpha_png", "gray_jpeg", "one_pixel_png"):
        paths.append(str(tmp_path / kind))
        (tmp_path / kind).write_bytes(FILES[kind])
    paths.append(str(tmp_path / "turned"))
    (tmp_path / "turned").write_bytes(turned_file(6))
    manifest = Manifest(
        name="files",
        labels=np.zeros(len(paths), "int64"),
        class_names=("one",),
        ids=np.array(paths),
        paths=np.array(paths),
    )
    batches = evaluation_batches(
        manifest,
        batch_size=8,
        image_size=16,
        channels=channels,
        resize=resize,
        squash=squash,
    )
    (expected,) = [np.asarray(inputs["image"]) for inputs, _ in batches]
    opened = client["Embedder"](folder / "embedder.tflite")
    pixels = np.stack([opened.load(path) for path in paths])
    assert pixels.dtype == np.uint8
    assert np.abs(pixels - expected).mean() < 1.5
    actual = opened.embed(pixels)
    assert cosines(actual, to_numpy(embedder(expected))).min() > 0.999


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_the_client_reads_gray_of_16_bits_as_training(kind, client, tmp_path):
    values = np.arange(256, dtype="uint16").reshape(16, 16) * 257
    Image.fromarray(values).save(tmp_path / "gray", kind)
    opened = object.__new__(client["Embedder"])
    opened.shape = (16, 16, 3)
    opened.manifest = {"image": {"resize": 16, "squash": False}}
    expected = ImageFit(16).decode((tmp_path / "gray").read_bytes())
    np.testing.assert_array_equal(opened.load(tmp_path / "gray"), expected)
    Image.fromarray(values.astype("float32")).save(tmp_path / "float", "TIFF")
    with pytest.raises(ValueError, match="at most 16 bits. Received: F"):
        opened.load(tmp_path / "float")


@pytest.mark.parametrize(
    "wrong", [IMAGES[0], IMAGES[:, :8], IMAGES / np.float32(255)]
)
def test_the_client_refuses_wrong_images(
    wrong, client, make_embedder, tmp_path
):
    folder = export_litert(make_embedder(), tmp_path / "litert")
    opened = client["Embedder"](folder / "embedder.tflite")
    with pytest.raises(ValueError, match="`images` must be uint8 of shape"):
        opened.embed(wrong)
    assert opened.embed(IMAGES[:0]).shape == (0, 8)
