import numpy as np
import pytest

from keras_dml.data.readers import read
from keras_dml.errors import UsageError
from tests.data.stand_ins import linked_names, write_empty_files, write_sop


def test_the_full_set(tmp_path):
    names = linked_names(tmp_path, [f"kind{i}_final" for i in range(121)], 1000)
    train = names[:59551], np.arange(59551) % 11318 + 1
    test = names[59551:120053], np.arange(60502) % 11316 + 11319
    write_sop(tmp_path, train, test)
    manifest = read("sop", tmp_path)
    counts = [
        (len(part), part.num_classes)
        for part in (manifest.part("train"), manifest.part("test"))
    ]
    assert counts == [(59551, 11318), (60502, 11316)]
    assert manifest.labels[59551] == 11318
    assert manifest.part("test").labels[0] == 0
    assert set(manifest.group) == set(range(12))
    assert manifest.ids[0] == "kind0_final/0.jpg"


def test_missing_images_and_lists(tmp_path):
    files = write_empty_files(tmp_path / "chair_final", 3)
    names = [f"chair_final/{file}" for file in [*files, "9.jpg"]]
    write_sop(tmp_path, (names[:2], [1, 2]), (names[2:], [11319, 11319]))
    with pytest.raises(UsageError, match="1 of 4 images are missing from"):
        read("sop", tmp_path)
    manifest = read("sop", tmp_path, allow_partial=True)
    assert manifest.labels.tolist() == [0, 1, 11318]
    (tmp_path / "Ebay_test.txt").unlink()
    with pytest.raises(UsageError, match="Ebay_test.txt must be at"):
        read("sop", tmp_path)
