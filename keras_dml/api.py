"""The main interface: `fit` trains an embedder, and `Run` uses it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from keras_dml import distribute
from keras_dml.brief import Brief
from keras_dml.checks import in_interval, known_options
from keras_dml.config import RunConfig, flags_of, resolve
from keras_dml.config.resolve import again
from keras_dml.console import logger, showing_log
from keras_dml.data import readers
from keras_dml.embed.local import Embedded, embed_source
from keras_dml.errors import UsageError
from keras_dml.evaluation.measured import Measured
from keras_dml.export import (
    DEFAULT_FORMATS,
    ExportResult,
    export_run,
    exporter,
)
from keras_dml.fit_options import FitOptions, PathLike
from keras_dml.push import push_run
from keras_dml.report import write_report
from keras_dml.run.conclusion import (
    conclusion,
    gained,
    has_trained,
    is_kept,
    result_rows,
    tested,
)
from keras_dml.run.evaluate import evaluate_run
from keras_dml.run.final import FOLDER as FINAL
from keras_dml.run.final import fit_final
from keras_dml.run.fit import fit as fit_config
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import TrainedRun
from keras_dml.search.result import SearchResult
from keras_dml.search.search import search_run


class Run(Brief, TrainedRun):
    """A finished run: holds its results and uses its embedder.

    Args:
        path: The run folder.
        data_dir: The folder of the run's data set, if it was moved. Defaults
            to `None`, the folder that the run used.

    Attributes:
        folder: Paths of the run's files.
        config: The configuration, without open settings.
        metrics: The content of `metrics.json`: values in [0, 1] before
            (`"off_the_shelf"`, `"before"`) and after training (`"after"`).
        history: The epochs in `history.csv`.
        embedder: The trained `keras.Model` that maps images to embeddings.

    Raises:
        UsageError: If the folder holds no run, or the run is not finished.

    Example:

    ```python
    run = Run("runs/photos")
    print(run)
    result = run.search("query.jpg", k=5)
    ```
    """

    def evaluate(self, **options: Any) -> Measured:
        """Measures the embedder; see `evaluate_run` for the options."""
        return evaluate_run(self, **options)

    def search(
        self, images: PathLike | Sequence[PathLike], **options: Any
    ) -> SearchResult:
        """Finds the images nearest to `images`; see `search_run`."""
        if isinstance(images, str | os.PathLike):
            images = [images]
        return search_run(self, images, **options)

    def embed(
        self, source: PathLike, output: PathLike, **options: Any
    ) -> Embedded:
        """Embeds all images of `source`; see `embed_source`."""
        return embed_source(self, os.fspath(source), output, **options)

    def export(self, *formats: str, **options: Any) -> ExportResult:
        """Exports the embedder; see `export_run`.

        Args:
            *formats: Any of `"saved_model"`, `"litert"` and `"onnx"`.
                Defaults to the first two.
            **options: Arguments of `export_run` and of `ExportOptions`.
        """
        return export_run(self, formats or DEFAULT_FORMATS, **options)

    def report(self, **options: Any) -> Path:
        """Writes `report.html` and returns its path."""
        return write_report(self, **options)

    def push(self, repository: str, **options: Any) -> str:
        """Uploads the run to the Hugging Face Hub; see `push_run`."""
        return push_run(self, repository, **options)

    def tested(self) -> str:
        """Returns the data, the recipe and the test images as text."""
        return tested(self.metrics)

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per metric: before and after training, the gain."""
        return result_rows(self.metrics)

    def conclusion(self) -> list[str]:
        """Returns what a person should conclude, in sentences."""
        return conclusion(self.metrics)

    @property
    def rising(self) -> bool:
        """Whether validation was best at the end, so that longer may help."""
        if self.kept:
            return False
        return self.history.rises(f"val_{self.config.evaluation.monitor}")

    @property
    def kept(self) -> bool:
        """Whether the pretrained network was kept, and training discarded."""
        return is_kept(self.metrics)

    @property
    def trained(self) -> bool:
        """Whether the saved embedder holds what the run trained."""
        return has_trained(self.metrics)

    @property
    def gained(self) -> bool:
        """Whether the gain in MAP@R is more than chance."""
        return gained(self.metrics)

    @property
    def final(self) -> "Run | None":
        """The run that trained on all classes, or `None`."""
        path = self.folder.path / FINAL
        return Run(path, self.data_dir) if RunFolder(path).finished else None

    def _brief_title(self) -> str:
        return f"Run {self.folder.path}: {self.tested()}"

    _brief_rows = rows


def fit(
    source: PathLike | None = None,
    *,
    recipe: str | None = None,
    backbone: str | None = None,
    weights: PathLike | None = None,
    config: PathLike | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seed: int | None = None,
    output: PathLike | None = None,
    resume: bool = False,
    **options: Unpack[FitOptions],
) -> Run:
    """Trains an embedder, measures it on unseen classes, and exports it.

    Args:
        source: A data set's name, a folder with one sub-folder per class, a
            CSV file (path,label[,split]), or `"tfds:NAME"`. Defaults to
            `None`, which needs `config`.
        recipe: `"NAME"` or `"FILE.yaml"`, optionally with `":PRESET"` or
            `":PRESET+PRESET"`. Defaults to `"proxy_anchor"` with a pretrained
            network, else `"norm_softmax"`.
        backbone: A network's name, see `keras-dml backbones`. Defaults to
            `None`, which is that of the data set.
        weights: `"imagenet"`, `"preset"`, `"none"` or a file. Defaults to
            `None`, the published weights of the backbone, if it has any.
        config: A run folder or its `config.yaml`, to train this run again. If
            its images were moved, give their new `source`. Defaults to
            `None`.
        settings: Any other settings, `key=value`, such as
            `stages.main.train.epochs=20`. In Python also a mapping of dotted
            keys to values. Defaults to none.
        seed: Seed of everything random. Defaults to `None`, which is 0, or
            that of a run that is trained again.
        output: The run folder. Defaults to `runs/SOURCE-RECIPE-SEED`.
        resume: Whether to continue an interrupted run. Defaults to `False`.
        **options: How long and how large to train, see `TrainingOptions`;
            outputs, files and devices, see `FitOptions`.

    Returns:
        `Run`.

    Raises:
        TypeError: If there is no such option.
        UsageError: If the arguments, the data or the folder do not fit each
            other.
        RunError: If the training fails.
        KeyboardInterrupt: On Ctrl-C, after the step; `resume=True` goes on.

    Example:

    ```python
    run = fit("photos", backbone="mobilenet_v2", output="runs/photos")
    print(run.metrics["after"]["recall@1"])
    ```
    """
    known_options(options, FitOptions, "`fit`")
    arguments = {"backbone": backbone, "weights": weights, "seed": seed}
    flags = flags_of({**arguments, **options})
    resolved = _resolve(source, recipe, config, flags, settings)
    _check_data_dir(options.get("data_dir"), resolved.data.source)
    folder = Path(output) if output else _default_output(resolved)
    export = exporter() if options.get("export", True) else None
    timeout = options.get("peer_timeout", distribute.PEER_TIMEOUT)
    verbose = options.get("verbose", False)
    metrics = fit_config(
        resolved,
        folder,
        resume=resume,
        peer_timeout=in_interval("peer_timeout", timeout, 0, 1e6),
        export=export if resolved.final == "measured" else None,
        verbose=verbose,
    )
    run = Run.just_trained(folder, resolved, metrics)
    # A report embeds images, which only works if all workers take part.
    wanted = options.get("report", True) and distribute.num_workers() == 1
    if wanted and not RunFolder(folder).report.is_file():
        with showing_log():
            logger.info("Writing the page of the run ...")
            run.report()
    if resolved.final == "all":
        fit_final(
            run.folder,
            metrics,
            resolved,
            peer_timeout=timeout,
            export=export,
            verbose=verbose,
        )
    return run


def _resolve(
    source: PathLike | None,
    recipe: str | None,
    config: PathLike | None,
    flags: Mapping[str, Any],
    settings: Mapping[str, Any] | Sequence[str],
) -> RunConfig:
    """Returns the configuration of a recipe, or of an earlier run."""
    name = None if source is None else os.fspath(source)
    if config is None:
        if name is None:
            raise UsageError(
                "`fit` needs the `source` of the images, or the `config` of a "
                "run. Received: neither."
            )
        return resolve(recipe, name, flags=flags, overrides=settings)
    if recipe is not None:
        raise UsageError(
            "`config` says everything that a recipe says. Received: "
            f"recipe={recipe!r} as well. Leave one of them out."
        )
    path = RunFolder(config).record if Path(config).is_dir() else Path(config)
    if not path.is_file():
        raise UsageError(
            "`config` must be a run folder or its `config.yaml`. Received: "
            f"{str(config)!r}, where there is none."
        )
    return again(path, name, flags=flags, overrides=settings)


def _check_data_dir(data_dir: PathLike | None, source: str) -> None:
    """Raises if a folder is named that nothing would be read from."""
    if data_dir is not None and not readers.is_named(source):
        raise UsageError(
            "`data_dir` is the folder of a data set that has a name. Received: "
            f"{str(data_dir)!r}, and images from {source}. Leave `data_dir` "
            "out, or give the place of the images as `source`."
        )


def _default_output(config: RunConfig) -> Path:
    """Returns `runs/SOURCE-RECIPE-SEED`, with characters valid in a path."""
    place = Path(config.data.source)
    name = config.data.source
    if place.exists():
        # A path such as `.` has no name, but its place has one.
        place = Path(os.path.abspath(place))
        name = place.name if place.is_dir() else place.stem
    label = Path(config.recipe.removesuffix(".yaml")).name
    plain = f"{name}-{label}-{config.seed}".replace(":", "_").replace("+", "_")
    return Path("runs") / plain.replace("/", "_")
