"""One run: data, models, training, evaluation, export, the run folder."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.distribute import workers
from keras_dml.distribute.strategies import PEER_TIMEOUT
from keras_dml.embeddings import Measured, evaluate_embeddings
from keras_dml.embeddings.evaluate import check_choices
from keras_dml.errors import UsageError
from keras_dml.run.agreement import check_same_data, check_same_settings
from keras_dml.run.chief import (
    create_run,
    logging_on_chief,
    open_run,
    quiet_unless_chief,
)
from keras_dml.run.compiling import check_replicas
from keras_dml.run.data import load_run_data, settle
from keras_dml.run.folder import RunFolder
from keras_dml.run.one_run import Run
from keras_dml.run.phases import check_stages
from keras_dml.run.preemption import Preemption, heeding_sigterm
from keras_dml.run.replica_checks import check_optimizers
from keras_dml.run.trained_run import TrainedRun


def fit(
    config: RunConfig,
    output: str | Path,
    *,
    resume: bool = False,
    peer_timeout: float = PEER_TIMEOUT,
    formats: Sequence[str] = ("saved_model", "litert"),
) -> dict[str, Any]:
    """Trains, measures, saves and exports one embedder.

    Of several workers each calls it, with the same arguments; the first one
    reads and writes the run folder for all.

    Args:
        config: The configuration, as `keras_dml.config.resolve` returns it.
        output: The run folder. It is made once the data have been read.
        resume: Whether to go on with a run that was interrupted. A run that
            does not exist is started, a finished one left alone. Defaults to
            `False`.
        peer_timeout: Seconds after which a worker that does not answer, or a
            step that does not end, ends the process with exit code 75.
            Defaults to `120.0`.
        formats: What to export at the end, see `export_run`; `()` for
            nothing. Defaults to `("saved_model", "litert")`.

    Returns:
        The content of `metrics.json`.

    Raises:
        UsageError: If configuration, data, folder and workers do not go
            together.
        PreemptedError: On SIGTERM, when the run has been saved.
        PeerLostError: If another worker is gone.
        RunError: If the training fails.

    Example:

    ```python
    from keras_dml.config import resolve
    from keras_dml.run.fit import fit

    metrics = fit(resolve("norm_softmax", "digits"), "runs/digits")
    print(metrics["after"]["recall@1"])
    ```
    """
    strategy = distribute.get_strategy(
        config.strategy,
        config.devices,
        policy=config.model.policy,
        peer_timeout=peer_timeout,
    )
    folder = RunFolder(output)
    with (
        heeding_sigterm() as preemption,
        workers.losing_peers(),
        quiet_unless_chief(),
        contextlib.closing(folder),
    ):
        metrics = _fit(config, folder, strategy, resume, preemption, formats)
        # The others wait for the chief, which measures and exports.
        metrics = distribute.broadcast(metrics)
        workers.finish()
    return metrics


def _fit(
    config: RunConfig,
    folder: RunFolder,
    strategy: Any,
    resume: bool,
    preemption: Preemption,
    formats: Sequence[str],
) -> dict[str, Any] | None:
    """One run; `None` on all workers but the chief."""
    replicas = strategy.num_replicas_in_sync
    check_same_settings(config)
    stored = distribute.together(lambda: open_run(folder, config, resume))
    stored = distribute.broadcast(stored)
    if stored is not None:
        config = RunConfig.model_validate(stored)
    if distribute.broadcast(folder.finished):
        logger.info("%s is finished.", folder.path)
        return folder.read_metrics() if distribute.is_chief() else None
    _check_replicas(config, replicas)
    with logging_on_chief():
        data = distribute.together(lambda: load_run_data(config))
    check_same_data(data)
    config = settle(config, data)
    check_stages(config, data, replicas)
    run = Run(config, data, folder, strategy, preemption, formats)
    distribute.together(lambda: create_run(folder, config, resume))
    with logging_on_chief(folder.log):
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
    check_replicas(config.loss, replicas)
    check_optimizers(config.optimizer, replicas)
