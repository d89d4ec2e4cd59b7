"""One run: data, models, training, evaluation, export, the run folder."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import keras

from keras_dml import distribute
from keras_dml.config import RunConfig, load_recipe
from keras_dml.console import logger, logging_to
from keras_dml.data.manifest import Manifest
from keras_dml.evaluation import RetrievalResult
from keras_dml.files import replacing
from keras_dml.models import load_embedder, pooled_features
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.data import (
    RunData,
    load_run_data,
    sampling_warnings,
    settle,
    stage_data,
)
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import embed, evaluate, measure, raw_pixels
from keras_dml.run.phases import (
    Models,
    StageTrainer,
    build_models,
    check_stages,
)
from keras_dml.run.results import run_metrics
from keras_dml.run.state import RunState


def fit(
    config: RunConfig, output: str | Path, *, resume: bool = False
) -> dict[str, Any]:
    """Trains, measures, saves and exports one embedder.

    Args:
        config: The configuration, as `keras_dml.config.resolve` returns it.
        output: The run folder. It is made once the data have been read.
        resume: Whether to go on with a run that was interrupted. A run that
            does not exist is started, a finished one left alone. Defaults to
            `False`.

    Returns:
        The content of `metrics.json`.

    Raises:
        UsageError: If configuration, data and folder do not go together.
        RunError: If the training fails.

    Example:

    ```python
    from keras_dml.config import resolve
    from keras_dml.train import fit

    metrics = fit(resolve("norm_softmax", "digits"), "runs/digits")
    print(metrics["after"]["recall@1"])
    ```
    """
    folder = RunFolder(output)
    folder.check_free(resume)
    if folder.exists:
        folder.check_same(config)
        if folder.finished:
            logger.info("%s is finished.", folder.path)
            return folder.read_metrics()
        config = folder.load_config()
    strategy = distribute.get_strategy(config.strategy, config.devices)
    with logging_to():
        data = load_run_data(config)
    config = settle(config, data)
    check_stages(config, data.train)
    folder.create(config)
    scope = nullcontext() if strategy is None else strategy.scope()
    with logging_to(folder.log), scope:
        return _Run(config, data, folder).run()


def evaluate_run(
    run: str | Path,
    *,
    source: str | None = None,
    data_dir: str | Path | None = None,
    k: Sequence[int] | None = None,
    clustering: bool = False,
) -> RetrievalResult:
    """Measures the embedder of a finished run.

    Args:
        run: The run folder.
        source: Other data than the run's own; their test classes are
            measured. Defaults to `None`, the run's own.
        data_dir: Where the data are. Defaults to `None`, where they were.
        k: Ranks of Recall@K. Defaults to `None`, those of the run.
        clustering: Whether to cluster as well. Defaults to `False`.
    """
    folder = RunFolder.open(run)
    folder.read_metrics()
    config = _with_data(folder.load_config(), source, data_dir)
    changes: dict[str, Any] = {"clustering": clustering}
    if k is not None:
        changes["k"] = list(k)
    config = config.model_copy(
        update={"evaluation": config.evaluation.model_copy(update=changes)}
    )
    data = load_run_data(config)
    return measure(load_embedder(folder.embedder), data.test, config)


def export_run(
    run: str | Path,
    formats: Sequence[str],
    *,
    output: str | Path | None = None,
    data_dir: str | Path | None = None,
    force: bool = False,
) -> list[dict[str, str]]:
    """Exports the embedder of a finished run and checks each artefact.

    Args:
        run: The run folder.
        formats: Any of `saved_model` and `litert`.
        output: Folder of the artefacts. Defaults to `None`, `RUN/export`.
        data_dir: Where the data are. Defaults to `None`, where they were.
        force: Whether to replace a folder that is not an export. Defaults to
            `False`.

    Returns:
        One row per artefact: sizes, cosines and retrieval beside the
        embedder's own.
    """
    folder = RunFolder.open(run)
    metrics = folder.read_metrics()
    config = _with_data(folder.load_config(), None, data_dir)
    data = load_run_data(config)
    return _export(
        load_embedder(folder.embedder),
        data.test,
        config,
        metrics,
        formats,
        Path(output) if output else folder.export,
        force,
    )


def _with_data(
    config: RunConfig, source: str | None, data_dir: str | Path | None
) -> RunConfig:
    """The configuration with other data, whose classes are split anew."""
    changes: dict[str, Any] = {}
    if source is not None:
        changes = {
            "source": source,
            "data_dir": None,
            "train_classes": None,
            "test_classes": None,
        }
    if data_dir is not None:
        changes["data_dir"] = str(data_dir)
    return config.model_copy(
        update={"data": config.data.model_copy(update=changes)}
    )


class _Run:
    """The steps of one run, from fresh or from its last checkpoint."""

    def __init__(
        self, config: RunConfig, data: RunData, folder: RunFolder
    ) -> None:
        self.config = config
        self.data = data
        self.folder = folder
        self.state = RunState()
        if folder.last_checkpoint.is_file():
            saved = load_checkpoint(folder.last_checkpoint).state
            self.state = RunState(**saved)
            logger.info(
                "Going on after epoch %d of stage %s.",
                self.state.epoch,
                config.stages[self.state.stage].name,
            )

    def run(self) -> dict[str, Any]:
        self._warn_about_section()
        models: Models | None = None
        for number, stage in enumerate(self.config.stages):
            if number < self.state.stage:
                continue
            data = stage_data(self.data.train, stage, self.config)
            for warning in sampling_warnings(data.fit, self.config):
                logger.warning(warning)
            models = build_models(self.config, data.fit.num_classes)
            if not self.state.baselines:
                self._measure_baselines(models)
            if self._starts_stage():
                self._assign_class_means(models, data.fit)
            StageTrainer(
                self.config, stage, data, models, self.folder, self.state
            ).run()
            if number + 1 < len(self.config.stages):
                self.state.next_stage()
        assert models is not None
        return self._finish(models)

    def _starts_stage(self) -> bool:
        return self.state.phase == 0 and self.state.epoch == 0

    def _measure_baselines(self, models: Models) -> None:
        """What the run has to beat: raw features, and the untrained head."""
        test = self.data.test
        if self.config.model.weights == "none":
            features = evaluate(
                raw_pixels(test, self.config), test, self.config
            )
        else:
            features = measure(
                pooled_features(models.embedder), test, self.config
            )
        before = measure(models.embedder, test, self.config)
        self.state.baselines = {
            "pretrained": features.metrics,
            "before": before.metrics,
        }

    def _assign_class_means(self, models: Models, fit: Manifest) -> None:
        if self.config.model.proxies.class_means:
            head = keras.Model(
                models.embedder.input, models.embedder.get_layer("head").output
            )
            models.trainer.get_layer("proxies").assign_class_means(
                embed(head, fit, self.config), fit.labels
            )

    def _finish(self, models: Models) -> dict[str, Any]:
        """Measures, saves and exports; `metrics.json` comes last."""
        after = measure(models.embedder, self.data.test, self.config)
        with replacing(self.folder.embedder) as temporary:
            models.embedder.save(temporary)
        metrics = run_metrics(self.config, self.data, self.state, after)
        _export(
            models.embedder,
            self.data.test,
            self.config,
            metrics,
            ("saved_model", "litert"),
            self.folder.export,
        )
        self.folder.write_metrics(metrics)
        return metrics

    def _warn_about_section(self) -> None:
        config = self.config
        if config.section == "default":
            return
        paper = load_recipe(config.recipe.partition(":")[0]).backbone
        if paper and paper != config.model.backbone:
            logger.warning(
                "The settings of `%s` for `%s` were found with %s; you train "
                "%s. They may not fit: compare with the recipe's defaults, "
                "`--recipe %s:default`.",
                config.recipe,
                config.section,
                paper,
                config.model.backbone,
                config.recipe.partition(":")[0],
            )
