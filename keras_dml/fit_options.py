"""The options of `keras_dml.fit` that are not its arguments.

The text beside a type names the setting, or settings, that the option sets;
`PLAN_KEYS` names those of a plan that options of `compare` set.
"""

import os
from collections.abc import Sequence
from typing import Annotated, TypedDict, get_type_hints

PathLike = str | os.PathLike[str]

PLAN_KEYS = {
    "protocol": "protocol.kind",
    "epochs": "budget.epochs",
    "steps_per_epoch": "budget.steps_per_epoch",
}


class TrainingOptions(TypedDict, total=False):
    """What most often changes.

    Attributes:
        minutes: Minutes that the whole command may take; the length of the
            training follows from the pace of this machine. Defaults to those
            of the recipe, 10 for a pretrained network.
        epochs: Number of epochs, instead of minutes. Defaults to those of
            the recipe.
        batch_size: Number of images of a training batch.
        embed_batch: Number of images that the network embeds at once, for
            large batches in little memory. Defaults to all of the batch.
        image_size: Side of the images in pixels. Defaults to that of the
            photos and the network.
        dim: Number of values of an embedding.
        matryoshka: Sizes of prefixes of the embedding that shall retrieve
            well alone, such as 32,64. Defaults to none.
        lr: Learning rate of network and head; the proxies keep theirs.
            Defaults to that of the recipe; with a pretrained network 3e-5 for
            600 steps, less for more and more for fewer.
        freeze: `"all"` to train the head alone, on features computed once;
            `"weights"` for the same on those of each step, where statistics
            of batch normalization move with `model.batch_norm=train`; or
            `"none"`.
        loss: Name of a loss that replaces that of the recipe, with its
            default arguments, and the batches and proxies of its own recipe.
        teacher: A run, or a file of embeddings of the training images, with
            `final` also of the test images, whose relations between images
            the embedder also learns. Defaults to none.
        final: `"all"` to train once more on every class, in `RUN/final`,
            after the run was measured. Defaults to `"measured"`, no more.
    """

    minutes: Annotated[float | None, "minutes"]
    epochs: Annotated[int | None, "stages.main.train.epochs"]
    batch_size: Annotated[int | None, "sampling.batch_size"]
    embed_batch: Annotated[int | None, "sampling.embed_batch"]
    image_size: Annotated[int | None, "data.image_size"]
    dim: Annotated[int | None, "model.dim"]
    matryoshka: Annotated[Sequence[int] | None, "model.matryoshka"]
    lr: Annotated[float | None, "optimizer.backbone.lr optimizer.head.lr"]
    freeze: Annotated[str | None, "stages.main.train.freeze"]
    loss: Annotated[str | None, "loss"]
    teacher: Annotated[PathLike | None, "distillation.teacher"]
    final: Annotated[str | None, "final"]


class FitOptions(TrainingOptions, total=False):
    """Outputs, files and devices.

    Attributes:
        report: Whether to write `report.html`. Defaults to `True`.
        export: Whether to export a SavedModel and LiteRT at the end, of the
            final training if there is one. Defaults to `True`.
        verbose: Whether to show what else `log.txt` holds: the optimizers
            and every metric of an epoch. Defaults to `False`.
        data_dir: Folder that holds the data set's files.
        train_classes: Text file that names the classes that train, one in a
            line; all others test. In Python also their names.
        strategy: `"auto"`, `"none"`, `"mirrored"` or `"multi_worker"`.
            Defaults to `"auto"`.
        devices: Kind and number of devices, such as `"cpu:2"`, to try a
            strategy.
        peer_timeout: Seconds to wait for a worker that does not answer.
            Defaults to 120.
    """

    report: bool
    export: bool
    verbose: bool
    data_dir: Annotated[PathLike | None, "data.data_dir"]
    train_classes: Annotated[
        PathLike | Sequence[str] | None, "data.train_classes"
    ]
    strategy: Annotated[str | None, "strategy"]
    devices: Annotated[str | None, "devices"]
    peer_timeout: float


def options_that_set() -> dict[str, str]:
    """Returns the setting, or settings, by the option that sets them."""
    hints = get_type_hints(FitOptions, include_extras=True)
    return {
        name: hint.__metadata__[0]
        for name, hint in hints.items()
        if hasattr(hint, "__metadata__")
    }
