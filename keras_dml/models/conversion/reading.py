"""Reads checkpoints of PyTorch and TensorFlow as numpy arrays."""

import contextlib
import importlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_dml.errors import RunError, UsageError
from keras_dml.npz import open_npz

# Keys under which training scripts store the weights.
NESTED = ("state_dict", "model_state_dict", "model")


def read_checkpoint(path: Path, framework: str) -> dict[str, np.ndarray]:
    """Reads the entries of a checkpoint, by name.

    Never runs code from the file.

    Args:
        path: For `"torch"`, a `.safetensors` or `.npz` file, or a file that
            `torch.save` wrote, which needs PyTorch. For `"tensorflow"`, a
            checkpoint that `tf.train.load_checkpoint` takes.
        framework: `"torch"` or `"tensorflow"`.

    Raises:
        UsageError: If the file is missing, damaged, or not a checkpoint.
        RunError: If the file needs PyTorch or safetensors, and the package is
            not installed.
    """
    if framework == "tensorflow":
        return _read_tensorflow(path)
    if not path.is_file():
        raise UsageError(
            f"There is no file {path}. Give a `.safetensors` or `.npz` file, "
            "or one that `torch.save` wrote."
        )
    if path.suffix == ".safetensors":
        reader = _imported(path, "safetensors.numpy", "safetensors")
        with _loading(path):
            return reader.load_file(path)
    if path.suffix == ".npz":
        with _loading(path), open(path, "rb") as stream:
            arrays = dict(open_npz(stream))
            if not all(isinstance(one, np.ndarray) for one in arrays.values()):
                raise ValueError("it holds something that is no array")
            return arrays
    return _read_torch(path)


def _imported(path, module, packages):
    """Returns the module that reads a file; says which packages have it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RunError(
            f"Reading {path.name} needs `pip install {packages}`. "
            "Without it, a file of the same weights of another kind will do: "
            ".safetensors or .npz."
        ) from error


@contextlib.contextmanager
def _loading(path):
    """Turns every error of a library that reads a file into one of the user."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise UsageError(
            f"{path} does not load as a checkpoint: {reason}. Download it "
            "again, or pass another file."
        ) from error


def _read_torch(path):
    torch = _imported(path, "torch", "torch` or `keras-dml[backends]")
    with _loading(path):
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    for name in NESTED:
        if isinstance(loaded, Mapping) and isinstance(
            loaded.get(name), Mapping
        ):
            loaded = loaded[name]
    if not isinstance(loaded, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in loaded.values()
    ):
        raise UsageError(
            f"{path} holds no state_dict, which is a dictionary of tensors. "
            "Save one with torch.save(model.state_dict(), FILE)."
        )
    return {
        str(key): value.detach().to(torch.float32).numpy()
        for key, value in loaded.items()
    }


def _read_tensorflow(path):
    import tensorflow as tf

    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not prefix.is_file() and not Path(f"{prefix}.index").is_file():
        raise UsageError(
            f"There is no checkpoint {path}: no such file, and no such file "
            "with .index behind it. Give the name without `.index` and "
            "`.data-...`, as `tf.train.load_checkpoint` takes it."
        )
    with _loading(path):
        reader = tf.train.load_checkpoint(str(prefix))
        names = reader.get_variable_to_shape_map()
        return {name: reader.get_tensor(name) for name in names}
