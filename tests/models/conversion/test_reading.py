"""Checkpoint files: formats, damage, and files that would run code."""

import json
import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.models.conversion.reading import read_checkpoint

ENTRIES = {
    "conv.weight": np.arange(24, dtype="float32").reshape(2, 3, 2, 2),
    "bn.running_mean": np.array([0.5, -1.0], "float16"),
    "bn.num_batches_tracked": np.array(7, "int64"),
}
NAMES = {"float32": "F32", "float16": "F16", "int64": "I64"}


def safetensors(entries, **changes):
    header, values = {"__metadata__": {"format": "pt"}}, b""
    for name, value in entries.items():
        end = len(values) + value.nbytes
        header[name] = {
            "dtype": NAMES[value.dtype.name],
            "shape": list(value.shape),
            "data_offsets": [len(values), end],
            **changes,
        }
        values += value.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + values


def assert_same(received, expected):
    assert set(received) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(received[name], value)


def test_safetensors_need_no_torch(tmp_path, monkeypatch):
    pytest.importorskip("safetensors")
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "public.safetensors"
    path.write_bytes(safetensors(ENTRIES))
    assert_same(read_checkpoint(path, "torch"), ENTRIES)


def test_without_safetensors_the_error_names_the_ways_out(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    path = tmp_path / "public.safetensors"
    path.write_bytes(safetensors(ENTRIES))
    with pytest.raises(RunError, match=r"pip install safetensors.*\.npz"):
        read_checkpoint(path, "torch")


def test_npz_needs_no_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    np.savez(tmp_path / "public.npz", **ENTRIES)
    assert_same(read_checkpoint(tmp_path / "public.npz", "torch"), ENTRIES)


def test_without_torch_the_error_names_the_ways_out(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "public.pth").write_bytes(b"")
    with pytest.raises(RunError, match=r"pip install torch.*\.safetensors"):
        read_checkpoint(tmp_path / "public.pth", "torch")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        struct.pack("<Q", 10**12) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{,",
        safetensors(ENTRIES)[:-1],
        safetensors(ENTRIES, dtype="BF16"),
        safetensors(ENTRIES, shape=[5]),
        safetensors(ENTRIES, data_offsets=[-8, 4]),
        safetensors(ENTRIES, data_offsets="ab"),
    ],
)
def test_damaged_safetensors_are_refused(content, tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "public.safetensors"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="public.safetensors does not load"):
        read_checkpoint(path, "torch")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="There is no file .*public.pth"):
        read_checkpoint(tmp_path / "public.pth", "torch")


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_code_in_a_file_is_not_run(tmp_path):
    torch = pytest.importorskip("torch")
    witness = tmp_path / "witness"
    with open(tmp_path / "plain.pth", "wb") as file:
        pickle.dump({"conv.weight": Touch(witness)}, file)
    torch.save({"conv.weight": Touch(witness)}, tmp_path / "saved.pth")
    np.savez(tmp_path / "arrays.npz", a=np.array([Touch(witness)], object))
    for name in ("plain.pth", "saved.pth", "arrays.npz"):
        with pytest.raises(UsageError, match=f"{name} does not load"):
            read_checkpoint(tmp_path / name, "torch")
    assert not witness.exists()


@pytest.mark.parametrize("nested", [None, "state_dict", "model_state_dict"])
@pytest.mark.parametrize("legacy", [False, True])
def test_torch_files_old_and_new(nested, legacy, tmp_path):
    torch = pytest.importorskip("torch")
    state = {name: torch.from_numpy(one) for name, one in ENTRIES.items()}
    state["conv.weight"] = torch.nn.Parameter(state["conv.weight"])
    torch.save(
        {"epoch": 3, nested: state} if nested else state,
        tmp_path / "public.pth",
        _use_new_zipfile_serialization=not legacy,
    )
    received = read_checkpoint(tmp_path / "public.pth", "torch")
    assert_same(received, ENTRIES)


def test_a_file_without_a_state_dict_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"epoch": 3}, tmp_path / "public.pth")
    with pytest.raises(UsageError, match=r"no state_dict.*torch\.save"):
        read_checkpoint(tmp_path / "public.pth", "torch")
