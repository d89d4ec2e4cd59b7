"""Measures the embedder of a finished run."""

from collections.abc import Sequence
from pathlib import Path

from keras_dml.console import logger
from keras_dml.evaluation import Measured, evaluate
from keras_dml.evaluation.index.registry import check_index
from keras_dml.evaluation.index.spaces import metric_of
from keras_dml.evaluation.measured import ranks_and_names
from keras_dml.evaluation.reranking.registry import as_reranking
from keras_dml.evaluation.retrieval import metric_names
from keras_dml.run.measure import clustering_arguments
from keras_dml.run.trained_run import TrainedRun


def evaluate_run(
    run: TrainedRun | str | Path,
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

    The run folder caches the embeddings, and they are reused as long as
    weights and images stay the same.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        source: Other data than the run's own, whose test classes are
            measured. Defaults to `None`, the run's data.
        data_dir: Folder that holds the data set's files. Defaults to `None`,
            the folder that the run used.
        k: Ranks of Recall@K, such as 1,2,4,8. Defaults to `None`, those of
            the run.
        index: `"exact"`, or `"scann"` (approximate) to measure ScaNN in
            addition to exact search. Defaults to `"exact"`.
        clustering: Whether to cluster as well, for NMI. Defaults to `False`.
        intervals: Whether to add 95 % intervals over classes. Defaults to
            `False`.
        per_class: Whether to add a table of classes, the worst first.
            Defaults to `False`.
        rerank: The re-ranking to measure as well: `"none"`,
            `"query_expansion"` or `"k_reciprocal"`. Defaults to `"none"`.

    Returns:
        `Measured`: the metrics, and the additional results requested.
    """
    trained = TrainedRun.of(run, data_dir if source is None else None)
    settings = trained.config.evaluation
    # Before the images are embedded.
    check_index(index)
    reranking = as_reranking(rerank)
    if reranking is not None:
        reranking.check_metric(metric_of(settings.normalize))
    if k is not None:
        metric_names(*ranks_and_names(k))
    if trained.metrics.get("final") and source is None:
        logger.warning(
            "%s has trained on every class, also on these: this says nothing "
            "of new classes. The run %s says it.",
            trained.folder.path,
            trained.folder.path.parent,
        )
    test = trained.part("test", source, data_dir)
    assert test is not None
    return evaluate(
        test.embeddings,
        k=settings.k if k is None else k,
        normalize=settings.normalize,
        index=index,
        clustering=clustering and clustering_arguments(trained.config),
        intervals=intervals,
        per_class=per_class,
        rerank=rerank,
    )
