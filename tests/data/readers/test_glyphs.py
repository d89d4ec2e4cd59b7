import hashlib
import os
import subprocess
import sys
import time

import matplotlib
import numpy as np
import pytest

from keras_dml.data.facts import dataset_facts
from keras_dml.data.readers import glyphs, read
from keras_dml.errors import UsageError

# Seconds of a processor; it takes four.
SLOWEST = 30
pytestmark = pytest.mark.slow  # each process draws the set
PRINTS_CHECKSUMS = """
import hashlib
from keras_dml.data.readers import read
manifest = read("glyphs")
print(manifest.checksum(), hashlib.sha256(manifest.images).hexdigest())
"""


@pytest.fixture(scope="module")
def manifest():
    return read("glyphs")


def test_the_set_is_large_and_its_classes_are_equally_large(manifest):
    assert manifest.images.shape[1:] == (28, 28, 1)
    assert manifest.num_classes >= 1000 and len(manifest) >= 20_000
    assert manifest.num_classes == len(manifest.class_names)
    assert set(np.bincount(manifest.labels)) == {glyphs.IMAGES_PER_CLASS}
    assert not manifest.seen and not manifest.partial


def test_facts_are_near_the_counts(manifest):
    # Another version of FreeType may draw a few characters alike.
    counts = dataset_facts("glyphs").counts
    assert manifest.num_classes == pytest.approx(counts["classes"], rel=0.02)
    assert len(manifest) == pytest.approx(counts["images"], rel=0.02)


def test_scripts_train_or_test(manifest):
    for number, script in enumerate(glyphs.SCRIPTS):
        rows = manifest.group == number
        trains = script in glyphs.TRAIN_SCRIPTS
        assert set(manifest.split[rows]) == {"train" if trains else "test"}
        assert len(np.unique(manifest.labels[rows])) > 20
        if script != "Symbols":
            names = np.array(manifest.class_names)[manifest.labels[rows]]
            words = {name.split()[1] for name in names.tolist()}
            assert words == {script.upper()}
    names = manifest.part("test").class_names
    assert "U+042F CYRILLIC CAPITAL LETTER YA" in names
    assert not set(names) & set(manifest.part("train").class_names)


def test_letters_that_look_alike_are_one_class(manifest):
    codes = {name.split()[0] for name in manifest.class_names}
    latin, greek, cyrillic, accented = "U+0041", "U+0391", "U+0410", "U+00C1"
    assert codes & {latin, greek, cyrillic, accented} == {latin}


def test_every_image_differs_and_none_is_blank(manifest):
    flat = manifest.images.reshape(len(manifest), -1)
    assert len(np.unique(flat, axis=0)) == len(flat)
    ink = (flat > 64).sum(axis=1)
    assert ink.min() > 20 and ink.max() < 0.9 * flat.shape[1]


def test_several_fonts_draw_each_class(manifest):
    fonts = [str(one).split("-", 1)[1] for one in manifest.ids]
    for label in range(manifest.num_classes):
        rows = np.flatnonzero(manifest.labels == label)
        assert len({fonts[row] for row in rows}) >= glyphs.FEWEST_FONTS


def test_every_process_draws_the_same(manifest):
    digest = hashlib.sha256(manifest.images).hexdigest()
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    told = subprocess.run(
        [sys.executable, "-c", PRINTS_CHECKSUMS],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [manifest.checksum(), digest]


def test_drawing_is_fast():
    started = time.process_time()
    glyphs._draw.__wrapped__()
    assert time.process_time() - started < SLOWEST


def test_who_changes_the_images_changes_a_copy(manifest):
    read("glyphs").images[:] = 0
    assert np.array_equal(read("glyphs").images, manifest.images)


def test_other_fonts_draw_fewer_characters(monkeypatch):
    monkeypatch.setattr(glyphs, "_draw", glyphs._draw.__wrapped__)
    monkeypatch.setattr(glyphs, "FONTS", glyphs.FONTS[:8])
    fewer = read("glyphs")
    assert fewer.num_classes > 100 and not fewer.partial


def test_missing_fonts_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(glyphs, "_draw", glyphs._draw.__wrapped__)
    monkeypatch.setattr(matplotlib, "get_data_path", lambda: str(tmp_path))
    with pytest.raises(UsageError, match="0 of 16 fonts in .*Install"):
        read("glyphs")
