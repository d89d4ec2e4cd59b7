"""Gathers what a page shows, and writes it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_dml.config import dump_run_config
from keras_dml.console import track
from keras_dml.errors import UsageError
from keras_dml.files import write_text
from keras_dml.report import parts
from keras_dml.report.page import render
from keras_dml.report.projector import write_projector
from keras_dml.report.thumbnails import Thumbnails
from keras_dml.run.trained_run import TrainedRun

FILE = "report.html"
SECTIONS = (
    ("result", "Result"),
    ("training", "Training"),
    ("queries", "What queries find"),
    ("worst", "Worst queries"),
    ("classes", "Classes"),
    ("similarities", "Similarities"),
    ("health", "Health"),
    ("map", "Map"),
    ("configuration", "Configuration"),
)


def write_report(
    run: str | Path, *, data_dir: str | Path | None = None
) -> Path:
    """Writes `RUN/report.html`, one page without any other file.

    The same embeddings go to `RUN/tensorboard` for TensorBoard's projector.

    Args:
        run: Folder of a finished run.
        data_dir: Where the data are. Defaults to `None`, where they were.

    Returns:
        The page's path.

    Raises:
        UsageError: If the run is not finished or its images are not there.

    Example:

    ```python
    print(write_report("runs/shoes"))
    ```
    """
    trained = TrainedRun(run, data_dir)
    folder = trained.folder
    test = trained.part("test")
    assert test is not None
    if test.images is None:
        raise UsageError(
            f"The report of {folder.path} shows images, and they are not "
            "where they were. Name their place by `--data-dir`."
        )
    embeddings, images = test.embeddings, Thumbnails(test.images)
    seed = trained.config.seed
    normalize = trained.config.evaluation.normalize
    steps: list[Callable[[], dict[str, Any]]] = [
        lambda: parts.result(trained.metrics),
        lambda: parts.training(trained),
        lambda: parts.retrieval(embeddings, images, normalize, seed),
        lambda: parts.similarities(embeddings, normalize, seed),
        lambda: parts.thresholds(trained),
        lambda: parts.health(embeddings, normalize),
        lambda: parts.embedding_map(embeddings, images, normalize, seed),
    ]
    values: dict[str, Any] = {}
    for step in track(steps, "report", len(steps)):
        values.update(step())
    write_projector(folder.tensorboard, embeddings, images, seed)
    page = render(
        title=f"{Path(trained.config.data.source).name}, "
        f"{trained.config.recipe}, seed {seed}",
        sections=SECTIONS,
        metrics=trained.metrics,
        config=dump_run_config(trained.config),
        tensorboard=str(folder.tensorboard),
        **values,
    )
    path = folder.path / FILE
    write_text(path, page)
    return path
