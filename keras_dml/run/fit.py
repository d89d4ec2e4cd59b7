"""Trains one run, from a configuration to a finished run folder."""

import contextlib
import logging
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data import large_photos, verification
from keras_dml.distribute import workers
from keras_dml.distribute.strategies import PEER_TIMEOUT
from keras_dml.errors import UsageError
from keras_dml.models import get_backbone
from keras_dml.models.weights import check_weights
from keras_dml.run.agreement import (
    check_same_data,
    check_same_settings,
    create_run,
    keeping_log_on_chief,
    open_run,
    quiet_unless_chief,
    showing_log_on_chief,
    with_own_paths,
)
from keras_dml.run.data import RunData, load_run_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.overview import overview
from keras_dml.run.preemption import heeding
from keras_dml.run.replica_checks import check_settings
from keras_dml.run.request import Request
from keras_dml.run.settling import settle
from keras_dml.run.stage_checks import check_stages
from keras_dml.run.teacher import with_teacher
from keras_dml.run.training import Training
from keras_dml.wording import source_title


def fit(
    config: RunConfig,
    output: str | Path,
    *,
    resume: bool = False,
    peer_timeout: float = PEER_TIMEOUT,
    export: Callable[..., object] | None = None,
    measured: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> dict[str, Any]:
    """Trains, measures and saves one embedder.

    With several workers, each of them calls it with the same arguments; the
    chief reads and writes the run folder for all.

    Args:
        config: The configuration, as `keras_dml.config.resolve` returns it.
        output: The run folder. It is made after the data have been read.
        resume: Whether to continue an interrupted run. If no run exists, one
            is started; a finished run stays unchanged. Defaults to `False`.
        peer_timeout: Seconds to wait for a worker that does not answer, or a
            step that does not end. Then the process ends with exit code 75.
            Defaults to `120.0`.
        export: Function, such as `keras_dml.export.exporter()`. The chief
            calls it with the embedder, its `RunData`, the configuration, the
            metrics and the run folder before the run is finished. Defaults to
            `None`.
        measured: Metrics of a run that left classes out. Its results replace
            those of this run, whose test images train. Defaults to `None`.
        verbose: Whether to show what else `log.txt` holds: the optimizers and
            every metric of an epoch. Defaults to `False`.

    Returns:
        The content of `metrics.json`.

    Raises:
        UsageError: If configuration, data, folder or workers do not fit each
            other, the backend of Keras does not train, or the test images
            would train without a measured run.
        PreemptedError: On SIGTERM, after the run has been saved.
        KeyboardInterrupt: On Ctrl-C, after the run has been saved; at once if
            it is pressed again.
        PeerLostError: If another worker is lost.
        RunError: If the training fails.

    Example:

    ```python
    from keras_dml.config import resolve
    from keras_dml.run.fit import fit

    metrics = fit(resolve("norm_softmax", "digits"), "runs/digits")
    print(metrics["after"]["recall@1"])
    ```
    """
    distribute.get_backend()
    strategy = distribute.get_strategy(
        config.strategy,
        config.devices,
        policy=config.model.policy,
        peer_timeout=peer_timeout,
    )
    folder = RunFolder(output)
    with (
        heeding(signal.SIGTERM, signal.SIGINT) as preemption,
        workers.losing_peers(),
        quiet_unless_chief(),
        contextlib.closing(folder),
    ):
        request = Request(
            resume, export, measured, verbose, preemption=preemption
        )
        metrics = _fit(config, folder, strategy, request)
        # The other workers wait here while the chief measures and exports.
        metrics = distribute.broadcast(metrics)
        workers.finish()
    return metrics


def _fit(
    config: RunConfig, folder: RunFolder, strategy: Any, request: Request
) -> dict[str, Any] | None:
    """Trains a run. Returns `None` on all workers except the chief."""
    resume = request.resume
    check_same_settings(config)
    stored = distribute.together(lambda: open_run(folder, config, resume))
    stored = distribute.broadcast(stored)
    if stored is not None:
        config = with_own_paths(stored, config)
    if distribute.broadcast(folder.finished):
        with showing_log_on_chief():
            logger.info("%s is finished; nothing is trained.", folder.path)
        return folder.read_metrics() if distribute.is_chief() else None
    if config.data.all_classes and request.measured is None:
        raise UsageError(
            "`data.all_classes` must be false: with it the test images train, "
            "and what they measure is no result. Received: true. Set `final` "
            "to `all`, which trains on every class after a measured training."
        )
    check_settings(config, strategy.num_replicas_in_sync)
    level = logging.DEBUG if request.verbose else logging.INFO
    # What is said of the images comes before there is a folder.
    with keeping_log_on_chief() as append_to, showing_log_on_chief(level):
        data = _read(config, request)
        with (
            verification.naming_broken(data.train, data.test),
            large_photos.keeping(),
        ):
            training = _begin(config, data, folder, strategy, request)
            append_to(folder.log)
            return training.run()


def _read(config: RunConfig, request: Request) -> RunData:
    """Reads the images of a run, and what a teacher makes of them."""
    source = source_title(config.data.source)
    logger.info("Reading the images of %s ...", source)
    with request.timing.part("read"):
        data = distribute.together(lambda: load_run_data(config))
    if config.distillation is not None:
        with request.timing.part("features"):
            data = with_teacher(data, config)
    check_same_data(data)
    return data


def _check_weights(config: RunConfig) -> None:
    name = config.model.backbone
    check_weights(name, config.model.weights, get_backbone(name))


def _begin(
    config: RunConfig,
    data: RunData,
    folder: RunFolder,
    strategy: Any,
    request: Request,
) -> Training:
    """Checks a run and builds its models, then makes its folder."""
    replicas = strategy.num_replicas_in_sync
    settled = settle(config, data)
    check_stages(settled, data, replicas)
    # What one worker lacks, the others would wait for.
    distribute.together(lambda: _check_weights(settled))
    training = Training(settled, data, folder, strategy, request)
    if config.data.image_size is None:
        size, former = training.affordable_size(), settled.data.image_size
        if size != former:
            logger.warning(
                "Images have %d pixels instead of %d, for embedding those "
                "would take most of the %g minutes. More `minutes` keep them "
                "large, and so does an `image_size`.",
                size,
                former,
                config.minutes,
            )
            settled = settle(config.changed(data={"image_size": size}), data)
            training = Training(settled, data, folder, strategy, request)
    distribute.together(lambda: create_run(folder, settled, request.resume))
    logger.info(overview(settled, data, folder, replicas))
    return training
