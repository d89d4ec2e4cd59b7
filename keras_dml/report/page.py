"""Writes the report page of a run."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from keras_dml.config import RunConfig, dump_run_config
from keras_dml.console import track
from keras_dml.data.verification import naming_broken
from keras_dml.errors import UsageError
from keras_dml.files import write_text
from keras_dml.report import sections
from keras_dml.report.projector import write_projector
from keras_dml.report.thumbnails import Thumbnails
from keras_dml.run.trained_run import TrainedRun
from keras_dml.wording import metric_meaning, metric_title, source_title

TEMPLATES = Path(__file__).parent / "templates"
# What to read first, within a minute, and then what explains it.
FIRST = (
    ("result", "Verdict"),
    ("worst", "Worst queries"),
    ("confusions", "Confusions"),
    ("map", "Map"),
)
DETAILS = (
    ("queries", "What queries find"),
    ("classes", "Classes"),
    ("training", "Training"),
    ("similarities", "Similarities"),
    ("health", "Health"),
    ("configuration", "Configuration"),
)
_STEPS = (
    sections.result,
    sections.training,
    sections.queries_and_classes,
    sections.similarities,
    sections.thresholds,
    sections.health,
    sections.embedding_map,
)


def write_report(
    run: TrainedRun | str | Path, *, data_dir: str | Path | None = None
) -> Path:
    """Writes `RUN/report.html`, one page that needs no other file.

    It also writes the embeddings to `RUN/tensorboard` for TensorBoard's
    projector.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        data_dir: Folder that holds the data set's files. Defaults to `None`,
            the folder that the run used.

    Returns:
        The page's path.

    Raises:
        UsageError: If the run is not finished or its images are missing.

    Example:

    ```python
    print(write_report("runs/shoes"))
    ```
    """
    trained = TrainedRun.of(run, data_dir)
    folder = trained.folder
    test = trained.part("test")
    assert test is not None
    if test.images is None:
        raise UsageError(
            f"The report of {folder.path} shows images, which are no longer "
            "where the run found them. `data_dir` names their folder."
        )
    config = trained.config
    material = sections.Material(
        trained,
        test.embeddings,
        Thumbnails(test.images),
        config.evaluation.normalize,
        config.seed,
    )
    values: dict[str, Any] = {}
    with naming_broken(test.images):
        for step in track(_STEPS, "report", len(_STEPS)):
            values |= step(material)
        write_projector(
            folder.tensorboard,
            material.embeddings,
            material.images,
            config.seed,
        )
    page = render(
        title=page_title(config),
        first=FIRST,
        details=DETAILS,
        metrics=trained.metrics,
        config=dump_run_config(config),
        tensorboard=shlex.quote(str(folder.tensorboard)),
        **values,
    )
    write_text(folder.report, page)
    return folder.report


def page_title(config: RunConfig) -> str:
    """Returns the title of the page of a run."""
    source = source_title(config.data.source)
    return f"{source}, {config.recipe}, seed {config.seed}"


def render(**values: Any) -> str:
    """Returns the page as HTML; all values are escaped.

    Args:
        **values: The variables of `templates/page.html`; a missing one raises
            an error.
    """
    environment = make_environment(
        TEMPLATES,
        share=lambda value: "-" if value is None else f"{value:.3f}",
        gain="{:+.3f}".format,
        count="{:,}".format,
        meaning=metric_meaning,
        title_of=metric_title,
    )
    return environment.get_template("page.html").render(
        style=_file("style.css"), script=_file("sort.js"), **values
    )


def make_environment(
    *folders: Path, **filters: Callable[..., Any]
) -> jinja2.Environment:
    """Returns the environment of the templates in some folders.

    Args:
        *folders: The folders, in the order in which they are searched.
        **filters: The filters by name, further to `code`.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": with_code, **filters}
    return environment


def with_code(text: str) -> markupsafe.Markup:
    """Escapes text; what stands between backticks becomes code."""
    safe = str(markupsafe.escape(text))
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", safe))


def _file(name: str) -> markupsafe.Markup:
    """Reads a file of the package, which needs no escaping."""
    return markupsafe.Markup((TEMPLATES / name).read_text(encoding="utf-8"))
