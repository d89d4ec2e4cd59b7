"""Checks that images that trained are neither tested nor validate later.

A folder of a class that comes or goes moves the halves that train and test, and
an image that goes moves the draw of those that validate.
"""

import hashlib
from collections.abc import Mapping

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.errors import RunError, UsageError
from keras_dml.run.data import RunData, stage_data

# What of the images of a run must stay as it was; each stage has its own
# validation, `"validation/STAGE"`.
TRAINING, TEST, VALIDATION = "training", "test", "validation"


def check_begun_with(
    begun: Mapping[str, str], data: RunData, config: RunConfig
) -> dict[str, str]:
    """Raises if a resumed run would train on what it has to test, for example.

    Args:
        begun: The result of this function when the run began, or an empty dict.
        data: The images of today.
        config: The configuration, which says what validates.

    Returns:
        The checksums of the training, the test and the validation classes, or
        of the images where the classes are the same. Of classes single images
        may be missing.

    Raises:
        RunError: If they are others.
    """
    parts = {
        TRAINING: (data.train, data.seen),
        TEST: (data.test, data.seen),
        **_validations(data, config),
    }
    found = {name: _checksum(*part) for name, part in parts.items()}
    for name, (part, images) in parts.items():
        if begun.get(name, found[name]) != found[name]:
            raise RunError(
                f"{_others(name, part, images)} Restore them, or choose "
                "another `output`."
            )
    if begun.keys() - found.keys():
        raise RunError(
            "What validated when the run began must validate still. Received: "
            "too few images of each class. Restore them, or choose another "
            "`output`."
        )
    return found


def check_measured_with(
    begun: Mapping[str, str], data: RunData, config: RunConfig, part: str
) -> None:
    """Raises if images that trained would be measured as others.

    Args:
        begun: The result of `check_begun_with` when the run began, or an empty
            dict.
        data: The images of today.
        config: The configuration.
        part: What is measured, `"test"` or `"validation"`.

    Raises:
        UsageError: If a folder has come or gone since, so that other classes
            train and test, or if other images would validate.
    """
    # Where all classes are seen, a test image may be a new one.
    checked = {} if data.seen else {TRAINING: (data.train, False)}
    if part == VALIDATION:
        last = config.changed(stages=config.stages[-1:])
        checked |= _validations(data, last)
    for name, (images, exact) in checked.items():
        if begun.get(name, found := _checksum(images, exact)) != found:
            raise UsageError(
                f"{_others(name, images, exact)} Restore them, or name other "
                "images: as the `source` of an evaluation, or as the `gallery` "
                "of a search."
            )


def _validations(
    data: RunData, config: RunConfig
) -> dict[str, tuple[Manifest, bool]]:
    """Returns what validates, and whether these are images of its classes."""
    found = {}
    for stage in config.stages:
        parts = stage_data(data, stage, config)
        if parts.validation is not None and parts.held_out != "test":
            kind = parts.held_out == "images"
            found[f"{VALIDATION}/{stage.name}"] = parts.validation, kind
    return found


def _others(name: str, part: Manifest, images: bool) -> str:
    what = f"{name.partition('/')[0]} {'images' if images else 'classes'}"
    return (
        f"The {what} must be those that the run began with. Received: others, "
        f"{len(part):,} images of {part.num_classes:,} classes."
    )


def _checksum(part: Manifest, images: bool) -> str:
    if images:
        return part.checksum()
    names = "\0".join(part.class_names)
    return hashlib.sha256(names.encode()).hexdigest()
