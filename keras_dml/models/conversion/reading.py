"""Reads checkpoints of PyTorch and TensorFlow as numpy arrays."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_dml.errors import RunError, UsageError

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
        raise UsageError(f"There is no file {path}.")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
    except Exception as error:
        raise _unreadable(path, error) from error
    return _read_torch(path)


def _read_safetensors(path):
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise RunError(
            f"Reading {path.name} needs the package safetensors: pip install "
            "safetensors. Without it, an .npz file of the same weights will "
            "do."
        ) from error
    try:
        return load_file(path)
    except Exception as error:
        raise _unreadable(path, error) from error


def _read_torch(path):
    try:
        import torch
    except ImportError as error:
        raise RunError(
            f"Reading {path.name} needs PyTorch: pip install torch, or "
            "keras-dml[backends]. Without it, a .safetensors or .npz file of "
            "the same weights will do."
        ) from error
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise _unreadable(path, error) from error
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
            "with .index behind it."
        )
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        return {
            name: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
        }
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path, error):
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return UsageError(
        f"{path} does not load as a checkpoint: {reason}. Download it again, "
        "or pass another file."
    )
