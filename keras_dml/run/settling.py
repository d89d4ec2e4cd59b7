"""Settles what a configuration leaves to the data and the network."""

import contextlib

import numpy as np

from keras_dml.config import RunConfig
from keras_dml.config.data_sections import DataConfig
from keras_dml.data import readers
from keras_dml.data.image_file import open_image
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.models import Backbone, get_backbone
from keras_dml.run.data import RunData

# By how much convolutional networks shrink an image.
STRIDE = 32
# Smaller images leave a pretrained network too few positions to learn from.
LEAST_TRAIN_SIZE = 128


def settle(config: RunConfig, data: RunData) -> RunConfig:
    """Fills in open settings: image sizes, channels, flip and weights.

    Args:
        config: The configuration, with `None` or `auto` for open settings.
        data: The images.

    Returns:
        A configuration without open settings and with absolute paths. Saving
        it and running it again, from any working directory, gives the same
        run. Only `epochs` and `evaluation.every` stay open until the pace of
        training is known.
    """
    backbone = get_backbone(config.model.backbone)
    several = has_several_sizes(backbone)
    weights = config.model.weights
    if weights == "auto":
        weights = backbone.pretrained
    settings = config.data
    natural = settings.natural_size or natural_size(data.train, backbone)
    size = settings.image_size or _image_size(natural, backbone, settings)
    channels = settings.channels
    if channels is None:
        gray = (
            data.train.images is not None
            and data.train.images.shape[-1] == 1
            and not backbone.rgb
        )
        channels = 1 if gray else 3
    flip = config.augmentation.flip
    if config.distillation is not None:
        teacher = readers.whole_path(config.distillation.teacher)
        config = config.changed(distillation={"teacher": teacher})
    return config.changed(
        data={
            "source": readers.whole_source(settings.source),
            "data_dir": readers.whole_path(settings.data_dir),
            "natural_size": min(natural, size) if several else size,
            "image_size": size,
            "train_size": settings.train_size
            or (_train_size(size, settings) if several else size),
            "channels": channels,
        },
        model={"weights": readers.whole_weights(weights)},
        sampling={"triplets": readers.whole_path(config.sampling.triplets)},
        augmentation={
            "flip": True if flip is None else flip,
            "resize": config.augmentation.resize or size,
        },
    )


def has_several_sizes(backbone: Backbone) -> bool:
    """Whether a network also takes images of other sizes than it was made for.

    Args:
        backbone: The network.
    """
    return backbone.any_size and not backbone.fixed_size


def natural_size(manifest: Manifest, backbone: Backbone) -> int:
    """Returns the smaller of the image size of the backbone and of the data.

    It is at least the smallest size that the backbone accepts.
    """
    if manifest.images is not None:
        shorter = min(manifest.images.shape[1:3])
    else:
        shorter = _typical_shorter_side(manifest.paths)
    return max(min(shorter, backbone.image_size), backbone.min_image_size)


def _image_size(natural: int, backbone: Backbone, settings: DataConfig) -> int:
    """Returns the natural size, enlarged to a multiple of the stride."""
    enlarged = int(natural * settings.enlarge) // STRIDE * STRIDE
    return max(natural, min(enlarged, backbone.image_size))


def _train_size(size: int, settings: DataConfig) -> int:
    """Returns the side of training images; a smaller one fits the stride."""
    if settings.train_share == 1:
        return size
    smaller = round(size * settings.train_share / STRIDE) * STRIDE
    return min(size, max(smaller, LEAST_TRAIN_SIZE))


def _typical_shorter_side(paths: np.ndarray) -> int:
    """Returns the median shorter side of 50 evenly spread files."""
    rows = np.linspace(0, len(paths) - 1, min(len(paths), 50)).astype(int)
    sides = []
    for path in paths[rows]:
        # A training names those that are no images. Pillow raises many kinds
        # of errors.
        with contextlib.suppress(Exception), open_image(path) as image:
            sides.append(min(image.size))
    if not sides:
        raise UsageError(
            f"None of {len(rows)} images can be opened, such as {path}."
        )
    return int(np.median(sides))
