"""Reads the safetensors format, which is a header and plain numbers."""

import json
import struct
from pathlib import Path

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
MAX_HEADER_BYTES = 100_000_000


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a `.safetensors` file, by name.

    Args:
        path: The file.

    Raises:
        ValueError: The file is damaged, or has a dtype that numpy has not.
    """
    content = path.read_bytes()
    if len(content) < 8:
        raise ValueError("it ends before its header")
    (size,) = struct.unpack("<Q", content[:8])
    if size > min(MAX_HEADER_BYTES, len(content) - 8):
        raise ValueError("it ends before its header does")
    header = json.loads(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError("its header names no arrays")
    header.pop("__metadata__", None)
    values = content[8 + size :]
    return {name: _array(name, one, values) for name, one in header.items()}


def _array(name, entry, values):
    try:
        dtype, shape = entry["dtype"], entry["shape"]
        begin, end = entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its header does not describe {name}") from error
    if dtype not in DTYPES:
        raise ValueError(
            f"{name} has the dtype {dtype}; known are {', '.join(DTYPES)}"
        )
    if not 0 <= begin <= end <= len(values):
        raise ValueError(f"it ends before {name} does")
    array = np.frombuffer(values[begin:end], dtype=DTYPES[dtype])
    return array.reshape(shape)
