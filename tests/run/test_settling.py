import struct

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data import Manifest
from keras_dml.errors import UsageError
from keras_dml.models import get_backbone
from keras_dml.run.data import RunData
from keras_dml.run.settling import natural_size, settle
from tests.images import PNG, png_chunk


def png(*sides):
    """The start of a file: its header, with only the sides that are given."""
    header = struct.pack(f">{len(sides)}I", *sides)
    header += b"\x08\x02\0\0\0" if len(sides) == 2 else b""
    return PNG + png_chunk(b"IHDR", header) + b"\0\0\0\0IDAT"


@pytest.mark.parametrize(
    "damaged",
    [b"", png(20_000, 20_000), png(8)],
    ids=["empty", "huge", "half a header"],
)
def test_damaged_and_huge_files_have_no_size(tmp_path, damaged):
    """`config SOURCE` looks at headers, before any file is checked."""
    for row, contents in enumerate([damaged, png(90, 70), damaged]):
        (tmp_path / f"{row}.png").write_bytes(contents)
    paths = [str(tmp_path / f"{row}.png") for row in range(3)]
    images = Manifest("photos", [0, 0, 1], "ab", list("abc"), paths=paths)
    backbone = get_backbone("resnet50")
    assert natural_size(images, backbone) == 70
    with pytest.raises(UsageError, match="None of 2 images can be opened"):
        natural_size(images.select([0, 2]), backbone)


def test_paths_are_whole_also_of_a_folder_named_as_a_data_set(
    tmp_path, monkeypatch
):
    """From elsewhere, such a run found neither its images nor its triplets."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cub200").mkdir()
    (tmp_path / "triplets.csv").touch()
    image = np.zeros((1, 8, 8, 3), np.uint8)
    train = Manifest("cub200", [0], "a", ["a"], images=image)
    config = resolve(
        "triplet",
        "cub200",
        overrides={
            "data.data_dir": "cub200",
            "sampling": {"kind": "triplets", "triplets": "triplets.csv"},
        },
    )
    data = RunData(train, train, seen=False, partial=False, skipped=0)
    settled = settle(config, data)
    assert settled.data.source == "cub200"
    assert settled.data.data_dir == str(tmp_path / "cub200")
    assert settled.sampling.triplets == str(tmp_path / "triplets.csv")
