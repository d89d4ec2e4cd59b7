"""Images are embedded with their labels, one or several."""

import keras
import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.image_list import list_images
from keras_dml.embed.local import embed_missing
from keras_dml.embed.stream import image_batches
from keras_dml.embeddings import load_embeddings
from keras_dml.embeddings.merging import merge_shards
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.evaluation import evaluate
from tests.images import image_folder

CONFIG = resolve("norm_softmax", "digits").changed(
    data={"image_size": 8, "channels": 1}
)


def embed(source, path, kind):
    """Embeds a source in shards of four images, by its pixels."""
    images = list_images(str(source))
    parts = -(-len(images) // 4)
    folder = ShardFolder(path)
    folder.create(
        {
            "format": kind,
            "shard_size": 4,
            "num_images": len(images),
            "labels": images.labels is not None,
            "dim": 64,
            "weights_hash": "f00",
            "digests": [""] * parts,
            "max_pixels": 10**6,
        }
    )
    embed_missing(
        lambda pixels: keras.ops.reshape(pixels, (-1, 64)),
        images,
        folder,
        CONFIG,
        batch_size=4,
    )
    folder.finish()
    return folder


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_several_labels_are_evaluated_as_several(kind, tmp_path):
    """Two images are positives when they share a label, in any order."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    folder = image_folder(tmp_path / "images", classes=3, images=3, size=8)
    sets = [{"a", "b"}, {"b", "c"}, {"c"}] * 3
    lines = ["path,label"]
    for number, (file, labels) in enumerate(
        zip(sorted(folder.rglob("*.jpg")), sets, strict=True)
    ):
        order = sorted(labels, reverse=bool(number % 2))
        lines.append(f"{file.relative_to(folder)},{'|'.join(order)}")
    table = folder / "list.csv"
    table.write_text("\n".join(lines) + "\n")
    shards = embed(table, tmp_path / "shards", kind)
    merged = tmp_path / f"all.{kind}"
    merge_shards(shards, merged)
    rows = load_embeddings(shards.path).embeddings
    expected = evaluate(rows, sets, k=1).metrics
    joined = evaluate(rows, ["|".join(sorted(one)) for one in sets], k=1)
    assert joined.metrics != expected
    for path in (shards.path, merged):
        assert evaluate(path, k=1).metrics == pytest.approx(expected)
        assert load_embeddings(path).labels.tolist() == sets


def test_a_bar_in_the_name_of_a_folder_is_a_character(tmp_path):
    folder = image_folder(tmp_path / "images", classes=2, images=2, size=8)
    (folder / "class_1").rename(folder / "cat|dog")
    shards = embed(folder, tmp_path / "shards", "npz")
    labels = np.unique(load_embeddings(shards.path).labels)
    assert labels.tolist() == ["cat|dog", "class_0"]


@pytest.mark.parametrize("missed", [[1], [4, 5, 6, 7]])
def test_what_the_disk_kept_back_is_read_again(missed, tmp_path, monkeypatch):
    """A read that failed once was listed as a bad image for ever."""
    folder = image_folder(tmp_path / "images", classes=3, images=3, size=8)
    whole = load_embeddings(embed(folder, tmp_path / "whole", "npz").path)
    calls = []

    def busy(images, parts, *arguments, **options):
        calls.append(parts)
        for rows, batch in image_batches(images, parts, *arguments, **options):
            kept = ~np.isin(rows, missed) | (len(calls) > 1)
            if kept.any():
                yield rows[kept], batch[kept]

    monkeypatch.setattr("keras_dml.embed.local.image_batches", busy)
    found = embed(folder, tmp_path / "busy", "npz")
    assert len(calls) == 2
    assert not found.read_bad()
    # Nothing else is tried again.
    assert len(calls[1]) == len(missed)
    rows = load_embeddings(found.path)
    np.testing.assert_array_equal(rows.ids, whole.ids)
    np.testing.assert_array_equal(rows.embeddings, whole.embeddings)
