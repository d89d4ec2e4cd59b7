import numpy as np
from PIL import Image

from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet
from keras_dml.report import projector
from keras_dml.report.projector import write_projector
from keras_dml.report.thumbnails import Thumbnails


def write(folder, count, monkeypatch, limit=5000):
    monkeypatch.setattr(projector, "MAX_IMAGES", limit)
    shades = np.linspace(0, 250, count).astype(np.uint8)
    pixels = np.zeros((count, 48, 48, 1), np.uint8) + shades.reshape(
        -1, 1, 1, 1
    )
    labels = np.arange(count) % 2
    names = ["tab\there", "line\nbreak"]
    ids = [f"{row}" for row in range(count)]
    images = Thumbnails(Manifest("x", labels, names, ids, images=pixels))
    rows = np.arange(count * 2, dtype="float32").reshape(count, 2)
    embeddings = EmbeddingSet(rows, labels, ids, class_names=names)
    written = write_projector(folder, embeddings, images)
    lines = (folder / "metadata.tsv").read_text().splitlines()[1:]
    tensor = np.loadtxt(folder / "embeddings.tsv", ndmin=2)
    assert len(lines) == len(tensor) == written
    chosen = [int(line.split("\t")[1]) for line in lines]
    np.testing.assert_array_equal(tensor, rows[chosen])
    with Image.open(folder / "sprite.png") as image:
        sprite = np.asarray(image)
    columns = sprite.shape[1] // 48
    for place, row in enumerate(chosen):
        top, left = 48 * (place // columns), 48 * (place % columns)
        tile = sprite[top : top + 48, left : left + 48]
        assert (tile == shades[row]).all()
    return lines, chosen


def test_tiles_rows_and_lines_agree(tmp_path, monkeypatch):
    for count in (1, 7):
        lines, chosen = write(tmp_path, count, monkeypatch)
        assert chosen == list(range(count))
        assert lines[0] == "tab here\t0"


def test_of_many_images_some_are_drawn(tmp_path, monkeypatch):
    _, chosen = write(tmp_path, 40, monkeypatch, limit=9)
    assert len(set(chosen)) == 9
    assert chosen == sorted(chosen)
