"""What a command leaves behind, without what differs from call to call."""

import csv
import io
import json
import zipfile
from pathlib import Path

import h5py
import numpy as np
from ai_edge_litert.interpreter import Interpreter

# Parts of the names of what a clock says, and the size of a graph, whose ops
# are named anew.
TIMES = ("seconds", "_ms", "created", "started", "finished", "megabytes")
# What only people read, and what names its own time or process.
LEFT_OUT = (".lock", "log.txt", "*.log", "events.out.*", "estimate.json")


def results(folder: Path) -> dict:
    """Returns what each file below a folder says, by its name.

    A page or a report is there or not. Of a SavedModel the variables count,
    and of a LiteRT or ONNX file its answer, since graphs name their ops anew.
    """
    return {
        str(path.relative_to(folder)): _said(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(map(path.match, LEFT_OUT))
    }


def printed_results(text: str, folder: Path) -> object:
    """Returns the JSON that a command printed, or `None` if it printed none.

    Paths below the folder lose its name.
    """
    if not text.startswith("{"):
        return None
    return _timeless(json.loads(text.replace(str(folder), "")))


def _said(path):
    match path.suffix:
        case ".json":
            return _timeless(json.loads(path.read_text()))
        case ".csv":
            with open(path, newline="") as file:
                return [_timeless(row) for row in csv.DictReader(file)]
        case ".npz":
            with np.load(path) as arrays:
                return {name: _member(name, arrays[name]) for name in arrays}
        case ".keras":
            with zipfile.ZipFile(path) as archive:
                weights = archive.read("model.weights.h5")
            return _weights(weights)
        case ".h5":
            return _weights(path.read_bytes())
        case ".tflite":
            return _answer(path)
        case ".onnx":
            return _answer_of_onnx(path)
        # Of a tuning's record, `trials.csv` holds the trials.
        case ".html" | ".md" | ".pb" | ".index" | ".sqlite3":
            return "there"
    return path.read_bytes()


def _timeless(value):
    if isinstance(value, dict):
        return {
            key: _timeless(part)
            for key, part in value.items()
            if not any(word in key for word in TIMES)
        }
    if isinstance(value, list):
        return [_timeless(part) for part in value]
    return value


def _member(name, values):
    # What a checkpoint knows beside its arrays.
    if name == "document":
        return _timeless(json.loads(str(values)))
    return _array(values)


def _array(values):
    return values.dtype.str, values.shape, values.tobytes()


def _answer(path):
    network = Interpreter(str(path))
    network.allocate_tensors()
    (image,), (rows,) = (
        network.get_input_details(),
        network.get_output_details(),
    )
    pixels = np.random.default_rng(0).integers(0, 256, image["shape"])
    network.set_tensor(image["index"], pixels.astype(image["dtype"]))
    network.invoke()
    return _array(network.get_tensor(rows["index"]))


def _answer_of_onnx(path):
    import onnxruntime

    network = onnxruntime.InferenceSession(path)
    (image,) = network.get_inputs()
    shape = [size if isinstance(size, int) else 1 for size in image.shape]
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    kind = {"tensor(uint8)": np.uint8}.get(image.type, np.float32)
    (rows,) = network.run(None, {image.name: pixels.astype(kind)})
    return _array(rows)


def _weights(content):
    found = {}

    def keep(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = _array(item[()])

    with h5py.File(io.BytesIO(content)) as file:
        file.visititems(keep)
    return found
