"""`keras-dml evaluate`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_dml.cli.options import DataDir, IndexKind, Json, parse_ranks
from keras_dml.cli.printing import print_evaluation
from keras_dml.console import logging_to
from keras_dml.errors import UsageError


def evaluate(
    run: Annotated[
        Path | None, typer.Argument(help="The run folder.", show_default=False)
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Measure the vectors of an .npz or .parquet file, or of a "
            "folder of `keras-dml embed`, instead of a run's."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Other data than the run's own."),
    ] = None,
    data_dir: DataDir = None,
    index: IndexKind = "exact",
    k: Annotated[
        str | None, typer.Option(help="Ranks of Recall@K, such as 1,2,4,8.")
    ] = None,
    clustering: Annotated[
        bool, typer.Option("--clustering", help="Also cluster, for NMI.")
    ] = False,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="Also 95 % intervals over classes."),
    ] = False,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="Also every class, the worst first."),
    ] = False,
    rerank: Annotated[
        str,
        typer.Option(
            help="Also after re-ranking: query_expansion or k_reciprocal."
        ),
    ] = "none",
    as_json: Json = False,
) -> None:
    """Measure the retrieval of a trained embedder, or of any embeddings."""
    if (run is None) == (embeddings is None):
        raise UsageError(
            "`evaluate` needs either a run folder or `--embeddings FILE`. "
            f"Received: {'neither' if run is None else 'both'}."
        )
    choices: dict[str, Any] = {
        "index": index,
        "clustering": clustering,
        "intervals": intervals,
        "per_class": per_class,
        "rerank": rerank,
    }
    if k is not None:
        choices["k"] = parse_ranks(k)
    if run is not None:
        from keras_dml.api import Run

        with logging_to():
            measured = Run(run).evaluate(
                source=source, data_dir=data_dir, **choices
            )
    else:
        if source is not None or data_dir is not None:
            raise UsageError(
                "`--source` and `--data-dir` belong to a run. Received: "
                "`--embeddings`, which brings its own data."
            )
        from keras_dml.evaluation import evaluate as evaluate_vectors

        measured = evaluate_vectors(embeddings, **choices)
    if as_json:
        print(json.dumps(measured.flat()))
    else:
        print_evaluation(measured)
