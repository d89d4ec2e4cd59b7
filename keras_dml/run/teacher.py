"""The embeddings of a teacher that a training imitates."""

import dataclasses
from pathlib import Path

import numpy as np

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.errors import UsageError
from keras_dml.run.data import RunData
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import TrainedRun


def with_teacher(data: RunData, config: RunConfig) -> RunData:
    """Returns the images of a run, with a teacher's embeddings to train with.

    A run that is the teacher embeds the images of the source once, and keeps
    them in its folder.

    Args:
        data: The images of the run.
        config: The configuration, with a teacher.

    Raises:
        UsageError: If the teacher is neither a finished run nor embeddings, or
            lacks an image that trains, be it in the final training.
    """
    assert config.distillation is not None
    teacher = config.distillation.teacher
    images, ids = "training image", data.train.ids
    if config.final == "all":
        images += ", and of every test image for `final='all'`"
        ids = np.concatenate([ids, data.test.ids])
    rows = _rows(_embeddings(teacher, config), ids, teacher, images)
    train = dataclasses.replace(data.train, teacher=rows[: len(data.train)])
    return dataclasses.replace(data, train=train)


def _embeddings(teacher: str, config: RunConfig) -> EmbeddingSet:
    path = Path(teacher)
    if RunFolder(path).exists:
        if distribute.num_workers() > 1:
            raise UsageError(
                "`teacher` must be a file of embeddings where several workers "
                f"train. Received: the run folder {teacher}. Embed the images "
                "with it first."
            )
        logger.info("Embedding the images with the teacher, once ...")
        source, folder = config.data.source, config.data.data_dir
        images = TrainedRun(path).part("all", source, folder)
        assert images is not None
        return images.embeddings
    if not path.exists():
        raise UsageError(
            "`teacher` must be a run folder, or embeddings of the training "
            f"images as `keras-dml embed` writes them. Received: {teacher}, "
            "which does not exist."
        )
    return load_embeddings(path, need_labels=False)


def _rows(
    found: EmbeddingSet, ids: np.ndarray, teacher: str, images: str
) -> np.ndarray:
    """Returns the embeddings of images, in their order."""
    places = {one: row for row, one in enumerate(found.ids.tolist())}
    missing = [one for one in ids.tolist() if one not in places]
    if missing:
        raise UsageError(
            f"`teacher` must hold an embedding of every {images}. "
            f"Received: {teacher}, which lacks {len(missing):,} of "
            f"{len(ids):,}, such as {missing[0]}; its first id is "
            f"{found.ids[0]}. Embed all images of the same source with the "
            "teacher."
        )
    return found.embeddings[[places[one] for one in ids.tolist()]]
