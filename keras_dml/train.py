"""One run: data, models, training, evaluation, export, the run folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_dml import distribute
from keras_dml.config import RunConfig, load_recipe
from keras_dml.console import logger, logging_to
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import Measured, evaluate_embeddings
from keras_dml.embeddings.evaluate import check_choices
from keras_dml.errors import UsageError
from keras_dml.files import replacing
from keras_dml.models import load_embedder, pooled_features
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.compiling import check_replicas
from keras_dml.run.data import (
    RunData,
    StageData,
    load_run_data,
    sampling_warnings,
    settle,
    stage_data,
)
from keras_dml.run.exporting import export_compared
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import embed, evaluate, measure, raw_pixels
from keras_dml.run.models import Models, build_models
from keras_dml.run.phases import StageTrainer, check_stages
from keras_dml.run.results import run_metrics
from keras_dml.run.state import RunState
from keras_dml.run.trained_run import TrainedRun


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
    _check_replicas(config, strategy.num_replicas_in_sync)
    with logging_to():
        data = load_run_data(config)
    config = settle(config, data)
    check_stages(config, data.train)
    run = _Run(config, data, folder, strategy)
    folder.create(config)
    with logging_to(folder.log):
        return run.run()


def evaluate_run(
    run: str | Path,
    *,
    source: str | None = None,
    data_dir: str | Path | None = None,
    k: Sequence[int] | None = None,
    index: str = "exact",
    clustering: bool = False,
    intervals: bool = False,
    per_class: bool = False,
    rerank: str = "none",
) -> Measured:
    """Measures the embedder of a finished run.

    Embeddings are kept in the run folder and taken from there as long as
    weights and images stay the same.

    Args:
        run: The run folder.
        source: Other data than the run's own; their test classes are
            measured. Defaults to `None`, the run's own.
        data_dir: Where the data are. Defaults to `None`, where they were.
        k: Ranks of Recall@K. Defaults to `None`, those of the run.
        index: `"exact"`, or `"scann"` to measure it beside exact search.
            Defaults to `"exact"`.
        clustering: Whether to cluster as well. Defaults to `False`.
        intervals: Whether to add 95 % intervals. Defaults to `False`.
        per_class: Whether to add a table of classes. Defaults to `False`.
        rerank: `"none"`, `"query_expansion"` or `"k_reciprocal"`. Defaults to
            `"none"`.

    Returns:
        `Measured`: the metrics, and what was asked for beside them.
    """
    check_choices(index, rerank)
    trained = TrainedRun(run, data_dir if source is None else None)
    settings = trained.config.evaluation
    test = trained.part("test", source, data_dir)
    assert test is not None
    return evaluate_embeddings(
        test.embeddings,
        k=tuple(k or settings.k),
        normalize=settings.normalize,
        index=index,
        clustering=clustering,
        cluster_arguments={
            "init": settings.kmeans_init,
            "num_starts": settings.kmeans_starts,
        },
        intervals=intervals,
        per_class=per_class,
        rerank=rerank,
        seed=trained.config.seed,
    )


def _check_replicas(config: RunConfig, replicas: int) -> None:
    """Refuses what would go wrong silently on several devices."""
    if replicas > 1 and config.model.policy == "mixed_float16":
        raise UsageError(
            "`model.policy: mixed_float16` can destroy the weights on several "
            f"devices. Received: {replicas} devices. Use `mixed_bfloat16`, or "
            "`--strategy none`."
        )
    if config.sampling.batch_size % replicas:
        raise UsageError(
            f"`sampling.batch_size` must divide by the {replicas} devices. "
            f"Received: {config.sampling.batch_size}."
        )
    check_replicas(config.loss, replicas)


def warn_about_section(config: RunConfig) -> None:
    """Warns where a paper's settings meet another network than its own."""
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


class _Run:
    """The steps of one run, from fresh or from its last checkpoint.

    Making it builds the first models and so refuses weights that are missing
    or do not fit, before anything is written.
    """

    def __init__(
        self,
        config: RunConfig,
        data: RunData,
        folder: RunFolder,
        strategy: Any,
    ) -> None:
        self.config = config
        self.data = data
        self.folder = folder
        self.strategy = strategy
        self.state = RunState()
        if folder.last_checkpoint.is_file():
            saved = load_checkpoint(folder.last_checkpoint).state
            self.state = RunState(**saved)
        self.models = self._build(self._stage_data())

    def run(self) -> dict[str, Any]:
        warn_about_section(self.config)
        if self.state.history:
            logger.info("Going on after %d epochs.", len(self.state.history))
        while True:
            self._run_stage()
            if self.state.stage + 1 == len(self.config.stages):
                return self._finish()
            self.state.next_stage()
            self.models = self._build(self._stage_data())

    def _stage_data(self) -> StageData:
        stage = self.config.stages[self.state.stage]
        return stage_data(self.data.train, stage, self.config)

    def _build(self, data: StageData) -> Models:
        # Automatic names must not depend on what was built before: a resumed
        # run looks its variables up by name. Inside a strategy's scope this
        # would break the scope.
        keras.utils.clear_session(free_memory=False)
        with self.strategy.scope():
            return build_models(self.config, data.fit.num_classes)

    def _run_stage(self) -> None:
        data = self._stage_data()
        for warning in sampling_warnings(data.fit, self.config):
            logger.warning(warning)
        if not self.state.baselines:
            self._measure_baselines()
        if self.state.phase == 0 and self.state.epoch == 0:
            self._assign_class_means(data.fit)
        with self.strategy.scope():
            StageTrainer(
                self.config,
                self.config.stages[self.state.stage],
                data,
                self.models,
                self.folder,
                self.state,
            ).run()

    def _measure_baselines(self) -> None:
        """What the run has to beat: raw features, and the untrained head."""
        test = self.data.test
        if self.config.model.weights == "none":
            features = evaluate(
                raw_pixels(test, self.config), test, self.config
            )
        else:
            features = measure(
                pooled_features(self.models.embedder), test, self.config
            )
        before = measure(self.models.embedder, test, self.config)
        self.state.baselines = {
            "pretrained": features.metrics,
            "before": before.metrics,
        }

    def _assign_class_means(self, fit: Manifest) -> None:
        if self.config.model.proxies.class_means:
            embedder = self.models.embedder
            head = keras.Model(
                embedder.input, embedder.get_layer("head").output
            )
            self.models.trainer.get_layer("proxies").assign_class_means(
                embed(head, fit, self.config), fit.labels
            )

    def _finish(self) -> dict[str, Any]:
        """Measures, saves and exports; `metrics.json` comes last."""
        with replacing(self.folder.embedder) as temporary:
            self.models.embedder.save(temporary)
        # The file is what users get; it also belongs to no strategy.
        embedder = load_embedder(self.folder.embedder)
        after = measure(embedder, self.data.test, self.config)
        metrics = run_metrics(self.config, self.data, self.state, after)
        export_compared(
            embedder,
            self.data.test,
            self.config,
            metrics,
            ("saved_model", "litert"),
            self.folder.export,
        )
        self.folder.write_metrics(metrics)
        return metrics
