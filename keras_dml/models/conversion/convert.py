"""Converts a public checkpoint to a weights file of Keras."""

import errno
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from keras_dml.checks import one_of
from keras_dml.errors import UsageError
from keras_dml.files import is_full_disk, replacing
from keras_dml.models.backbones import get_backbone
from keras_dml.models.conversion.fitting import LAYOUTS, fit_checkpoint
from keras_dml.models.conversion.reading import read_checkpoint

SUFFIX = ".weights.h5"
# Bytes of a value, and of what HDF5 notes on an array.
VALUE, HEADER = 4, 4096


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion.

    Attributes:
        path: The written file.
        parameters: Number of values in the file.
        left_out: Entries of the checkpoint that are not for the backbone.
    """

    path: Path
    parameters: int
    left_out: list[str]


def convert_weights(
    checkpoint: str | Path,
    network: str,
    output: str | Path,
    force: bool = False,
) -> Conversion:
    """Writes the weights of a public checkpoint to a file that Keras reads.

    Every entry must match a variable and every variable an entry, except for
    entries of the classifier, which the file leaves out.

    Args:
        checkpoint: A public checkpoint: `.pth`, `.safetensors` or `.npz` of
            PyTorch, or for `inception_v1` `.ckpt` of TensorFlow.
        network: `"bn_inception"`, `"googlenet"`, `"inception_v1"` or
            `"resnet50_v1_5"`.
        output: The file to write, `NAME.weights.h5`. Pass it as `weights` of
            the same backbone.
        force: Whether to replace `output`. Defaults to `False`.

    Raises:
        UsageError: If `network` is unknown, if `checkpoint` is missing or does
            not fit, or if `output` exists, has another suffix or cannot be
            written.
        RunError: If the package that reads the file is not installed.

    Example:

    ```python
    convert_weights(
        "googlenet-1378be20.pth", "googlenet", "googlenet.weights.h5"
    )
    ```
    """
    layout = LAYOUTS[one_of("network", network, LAYOUTS)]
    output = Path(os.path.expanduser(output))
    if not output.name.endswith(SUFFIX):
        raise UsageError(f"`output` must end in {SUFFIX}. Received: {output}")
    if output.exists() and not force:
        raise UsageError(
            f"`output` is there already: {output}. Pass `force=True` to "
            "replace it, or another name."
        )
    entries = read_checkpoint(
        Path(os.path.expanduser(checkpoint)), layout.framework
    )
    backbone = get_backbone(network)
    side = backbone.min_image_size
    model = backbone.builder(input_shape=(side, side, 3), weights=None)
    left_out = fit_checkpoint(model, entries, layout)
    _save(model, output)
    return Conversion(output, model.count_params(), left_out)


def _save(model, output):
    """Writes the whole file or nothing."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        _check_room(output.parent, model)
        with replacing(output) as temporary:
            model.save_weights(temporary)
    except OSError as error:
        if is_full_disk(error):
            raise
        raise UsageError(
            f"`output` cannot be written: {error}. Pass another path."
        ) from error


def _check_room(folder, model):
    """Raises if the weights do not fit: HDF5 would print a traceback."""
    sizes = [math.prod(weight.shape) for weight in model.weights]
    # Each of them has a header.
    needed = sum(VALUE * size + HEADER for size in sizes)
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
