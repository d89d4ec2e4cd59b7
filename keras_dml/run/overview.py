"""Says before a training what it is about to do, and with what."""

import os
from pathlib import Path

from keras_dml import distribute
from keras_dml.config import RunConfig, StageConfig
from keras_dml.data.made_classes import upright
from keras_dml.data.manifest import Manifest
from keras_dml.run.data import RunData, StageData, stage_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.interpolation import unvalidated_share
from keras_dml.run.refit import may_refit
from keras_dml.wording import listed, percent, source_title, titled

NVIDIA = Path("/proc/driver/nvidia/gpus")
# Windows lends this library of its driver to the Linux inside it.
WSL = Path("/usr/lib/wsl/lib/libcuda.so.1")


def overview(
    config: RunConfig, data: RunData, folder: RunFolder, replicas: int = 1
) -> str:
    """Returns a few lines on the images, the network and the device.

    Args:
        config: The settled configuration.
        data: The images of the run.
        folder: The run folder.
        replicas: Number of replicas that train. Defaults to `1`.
    """
    lines = [("Images", images_read(config, data))]
    for stage in config.stages:
        name = f" ({stage.name})" if len(config.stages) > 1 else ""
        parts = stage_data(data, stage, config)
        lines.append((f"Train{name}", _amount(parts.fit)))
        validates = _validates(parts, stage, config, data.train)
        lines.append((f"Validate{name}", validates))
    if may_refit(config, parts):
        everything = _amount(data.train)
        refit = (
            f"{everything}, those that train and those that validate: unless "
            "the training is discarded, it is repeated on all of them"
        )
        lines.append(("Refit", refit))
    lines += [
        ("Test", _tests(config, data, parts)),
        ("Recipe", _recipe(config)),
        ("Size", _sizes(config)),
        ("Network", _network(config)),
        ("Device", device(replicas)),
        ("Folder", str(folder.path)),
    ]
    return titled(lines)


def images_read(config: RunConfig, data: RunData) -> str:
    """Returns how many images of which data a run reads.

    Args:
        config: The configuration.
        data: The images of the run.
    """
    images, classes = len(data.train), data.train.num_classes
    if not config.data.all_classes:
        images += len(data.test)
        classes += 0 if data.seen else data.test.num_classes
    source = source_title(config.data.source)
    text = f"{images:,} in {classes:,} classes, from {source}"
    if data.skipped:
        text += f"; {data.skipped:,} left out as unreadable"
    if data.test.has_label_sets:
        text += "; several labels an image"
    if data.partial:
        text += "; the data set is incomplete"
    return text


def device(replicas: int = 1) -> str:
    """Returns the name of the device that trains.

    Args:
        replicas: Number of replicas. Defaults to `1`.
    """
    backend = distribute.get_backend()
    gpus = backend.accelerators()[: max(1, replicas)]
    by = "" if backend.title == "TensorFlow" else f", by {backend.title}"
    several = f", {replicas} replicas" if replicas > 1 else ""
    if not gpus:
        return f"CPU only, {os.cpu_count()} cores{several}{by}{_unused_gpu()}"
    named = listed(f"GPU {place}: {name}" for place, name in enumerate(gpus))
    return named + by


def _unused_gpu() -> str:
    """Says how to use a GPU that the backend does not see."""
    driven = NVIDIA.is_dir() and any(NVIDIA.iterdir())
    if not driven and not WSL.exists():
        return ""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f". CUDA_VISIBLE_DEVICES={hidden!r} hides the GPU: unset it"
    backend = distribute.get_backend()
    return (
        f". {backend.title} does not see the GPU of this machine: install its "
        f"libraries with pip install '{backend.for_gpus}'"
    )


def _amount(images: Manifest) -> str:
    turns, images = images.turn is not None, upright(images)
    turned = "; turned by quarters they are further classes" if turns else ""
    if images.num_classes == len(images):
        return f"{len(images):,} images, each a class{turned}"
    return f"{len(images):,} images of {images.num_classes:,} classes{turned}"


def _tests(config: RunConfig, data: RunData, last: StageData) -> str:
    if config.data.all_classes:
        return "nothing, for every class trains: the earlier results stand"
    seen = "not trained on: they measure how it does on new classes"
    if data.seen:
        validates = last.held_out == "classes"
        but = " but for those that validate" if validates else ""
        seen = f"all seen in training{but}: they measure the result"
    return f"{_amount(data.test)}, {seen}"


def _recipe(config: RunConfig) -> str:
    name = config.recipe.partition(":")[0]
    return (
        f"{config.recipe}, the method of training; `keras-dml recipes {name}` "
        "explains it"
    )


def _validates(
    parts: StageData, stage: StageConfig, config: RunConfig, train: Manifest
) -> str:
    """Returns which of the training images validate, or why none does."""
    if parts.validation is not None:
        use = "show how well it goes; the last epoch is kept"
        if config.evaluation.interpolate:
            use = "choose how much of the training to keep"
        elif config.evaluation.select == "best":
            use = "choose the epoch to keep"
        kind = {
            "classes": f", not trained on: they {use}",
            "images": "; other images of these classes train",
            "test": ", the test images: results are optimistic",
        }
        amount = _amount(parts.validation)
        spared = len(train) - len(upright(parts.fit))
        by_class = parts.held_out == "classes" and stage.classes == "fit"
        if by_class and spared > len(parts.validation):
            amount = amount.replace(" images", f" of {spared:,} images", 1)
        return amount + kind[parts.held_out]
    number = upright(parts.fit).num_classes
    views = config.sampling.kind == "views"
    why = "too few classes have two images of their own to leave some out"
    if views or number < config.data.validation_from:
        why = (
            f"{'the' if views else number} classes are too few to leave some "
            f"out (`data.validation_from` is {config.data.validation_from})"
        )
    if stage.classes == "all":
        why = f"the stage `{stage.name}` trains on all classes"
    elif config.data.all_classes:
        why = "every class trains"
    elif config.data.validation == "none":
        why = "`data.validation` is `none`"
    return f"nothing: {why}. {_kept(config)} is kept"


def _kept(config: RunConfig) -> str:
    """Returns which network is kept where nothing validates."""
    shares = config.evaluation.interpolate
    share = unvalidated_share(shares) if shares else 1.0
    if share == 1:
        return "The network of the last epoch"
    if share == 0:
        return "The network of before the first step"
    return f"{percent(share)} of the way to the network of the last epoch"


def _sizes(config: RunConfig) -> str:
    size, train_size = config.data.image_shape[0], config.data.train_shape[0]
    smaller = f", {train_size} in training" if train_size != size else ""
    return f"photos become squares of {size} x {size} pixels{smaller}"


def _network(config: RunConfig) -> str:
    weights = config.model.weights
    origin = {
        "none": "trained from scratch",
        "imagenet": "its ImageNet weights from Keras",
        "preset": "its weights from keras-hub",
    }.get(weights, f"weights of {Path(weights).name}")
    text = (
        f"{config.model.backbone}, {origin}; it turns a photo into "
        f"{config.model.dim} numbers, its embedding; training brings those of "
        "like photos together"
    )
    if config.model.prefixes:
        sizes = listed(str(size) for size in config.model.prefixes)
        text += f". The first {sizes} numbers shall work alone"
    return text
