"""The commands that call a function of the library and print its result."""

import contextlib
import dataclasses
import importlib
import json
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_dml.cli.next_steps import command_line
from keras_dml.cli.options import Json, options_of
from keras_dml.cli.printing import say
from keras_dml.cli.results import (
    print_answers,
    print_artifacts,
    print_comparison,
    print_evaluation,
    print_run,
)
from keras_dml.console import logger, showing_log, without_native_output
from keras_dml.errors import RunError, UsageError, reason_of


@contextlib.contextmanager
def _starting_tensorflow() -> Iterator[None]:
    """Shows log lines, and first why nothing else shows for some seconds."""
    with showing_log():
        logger.info("Starting TensorFlow ...")
        # TensorFlow 2.21 writes there what it was built with.
        with without_native_output():
            # TensorFlow imports it as well, and would say less.
            _import_keras()
            importlib.import_module("tensorflow")
        yield


def _import_keras() -> None:
    """Imports Keras, and raises if it cannot have the backend it is told."""
    try:
        importlib.import_module("keras")
    except (ImportError, ValueError) as error:
        raise UsageError(
            "Keras must be able to load its backend, which KERAS_BACKEND or "
            f"~/.keras/keras.json names. Received: {reason_of(error)}. Install "
            "it, such as with pip install jax or torch, or set "
            "KERAS_BACKEND=tensorflow."
        ) from error


@options_of(
    "keras_dml.api:fit",
    "keras_dml.fit_options:TrainingOptions",
    "keras_dml.fit_options:FitOptions",
    names={"settings": "--set"},
)
def fit(*, as_json: Json = False, **options: Any) -> None:
    """Train an embedder, measure it on unseen classes, export it."""
    with _starting_tensorflow():
        from keras_dml import api, distribute

    try:
        run = api.fit(**options)
    except KeyboardInterrupt:
        _tell_how_to_go_on()
        raise
    if not distribute.is_chief():
        return
    if as_json:
        metrics = run.folder.read_metrics()
        print(json.dumps({"run": str(run.folder.path), **metrics}))
    else:
        print_run(run)


def _tell_how_to_go_on() -> None:
    resume = [] if "--resume" in sys.argv else ["--resume"]
    again = command_line("keras-dml", *sys.argv[1:], *resume)
    with showing_log():
        logger.info("To go on:\n%s", again)


def _given_without(option: str, *flags: str) -> list[str]:
    """Returns the words of the running command without some of them.

    Args:
        option: An option that takes a value.
        flags: Options that take none.
    """
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == option:
            next(words, None)
        elif word not in flags and not word.startswith(f"{option}="):
            kept.append(word)
    return kept


@options_of("keras_dml.run.evaluate:evaluate_run")
def evaluate(
    *,
    run: Annotated[
        Path | None,
        typer.Argument(
            help="The run folder.", metavar="RUN", show_default=False
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Measure the vectors of an .npz or .parquet file, or of a "
            "folder of `keras-dml embed`, instead of a run's.",
        ),
    ] = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Measure the retrieval of a trained embedder, or of any embeddings."""
    if (run is None) == (embeddings is None):
        raise UsageError(
            "`evaluate` needs either a run folder or `--embeddings FILE`. "
            f"Received: {'neither' if run is None else 'both'}."
        )
    if run is not None:
        with _starting_tensorflow():
            from keras_dml.run.evaluate import evaluate_run

            measured = evaluate_run(run, **options)
    else:
        if {"source", "data_dir"} & {*options}:
            raise UsageError(
                "`--source` and `--data-dir` belong to a run. Received: "
                "`--embeddings`, which brings its own data."
            )
        from keras_dml.evaluation import evaluate as evaluate_vectors

        measured = evaluate_vectors(embeddings, **options)
    if as_json:
        print(json.dumps(measured.flat()))
    else:
        print_evaluation(measured)


@options_of("keras_dml.search.search:search_run")
def search(
    *,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also draw the answers, as a PNG file."
        ),
    ] = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Find the images nearest to others, and say which are near enough."""
    with _starting_tensorflow():
        from keras_dml.search.picture import check_picture, draw_answers
        from keras_dml.search.search import search_run

        if picture is not None:
            check_picture(picture)
        result = search_run(**options)
    if picture is not None:
        draw_answers(result, picture)
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    print_answers(result)
    if picture is not None:
        say(f"Picture: {picture}")


@options_of(
    "keras_dml.embed.local:embed_source",
    names={"output": "--output", "file_format": "--format"},
)
def embed(
    *,
    fail_on_bad: Annotated[
        bool,
        typer.Option(
            "--fail-on-bad",
            help="Exit with 1 if an image cannot be read.",
        ),
    ] = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Embed all images of a folder, with their ids, into files."""
    try:
        with _starting_tensorflow():
            from keras_dml.embed.local import embed_source

            done = embed_source(**options)
    except KeyboardInterrupt:
        _tell_how_to_go_on()
        raise
    if as_json:
        print(json.dumps(dataclasses.asdict(done)))
    else:
        rate = ""
        if done.seconds:
            rate = f" ({done.images_per_second:,.0f} images/s)"
        say(
            f"Embedded {done.rows:,} of {done.images:,} images{rate}, "
            f"{done.dim} numbers each: {done.output}"
        )
        if done.bad:
            say(f"Skipped {done.bad:,} images, listed in {done.bad_list}")
    if fail_on_bad and done.bad:
        raise RunError(
            f"{done.bad} of {done.images} images cannot be read; "
            f"{done.bad_list} names them and says why."
        )


@options_of("keras_dml.report.page:write_report")
def report(
    *,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.")
    ] = False,
    **options: Any,
) -> None:
    """Write one page that shows what a run learned."""
    with _starting_tensorflow():
        from keras_dml.report import write_report

        page = write_report(**options)
    say(f"Report: {page}")
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        raise RunError(
            f"No browser was found to open {page}. The environment variable "
            "BROWSER names one."
        )


@options_of(
    "keras_dml.comparison.compare:compare",
    "keras_dml.comparison.plans:PlanOptions",
    names={"plan": "PLAN|SOURCE", "output": "--output"},
)
def compare(*, as_json: Json = False, **options: Any) -> None:
    """Train and compare recipes fairly: seeds, intervals, tables, figures.

    Start the same command again to go on where it was stopped.
    """
    with _starting_tensorflow():
        from keras_dml.comparison.compare import compare as compare_runs

        result = compare_runs(**options)
    if as_json:
        print(json.dumps(result.summary()))
    else:
        again = _given_without("--seeds", "--no-estimate")
        print_comparison(result, again)
    if result.failed:
        names = ", ".join(result.failed)
        raise RunError(
            f"{len(result.failed)} of {len(result.runs)} runs failed: "
            f"{names}. The rest is in the report; start the same command "
            "again to try them anew."
        )


@options_of(
    "keras_dml.export.runs:export_run",
    "keras_dml.export.options:ExportOptions",
    # A run brings these.
    without=("options", "calibration", "resize", "squash", "metadata"),
    names={"formats": "--format", "references": "--with-references"},
)
def export(**options: Any) -> None:
    """Export a trained embedder and compare it with the original."""
    with _starting_tensorflow():
        from keras_dml.export import export_run

        result = export_run(**options)
    print_artifacts(result, options)


@options_of(
    "keras_dml.push.push:push_run",
    names={"repository": "OWNER/NAME", "license_name": "--license"},
)
def push(**options: Any) -> None:
    """Upload a run to the Hugging Face Hub, with a card of its results."""
    with _starting_tensorflow():
        from keras_dml.push import push_run

        address = push_run(**options)
    say(f"Pushed: {address}")
