"""The command line: parses, then calls the library.

Every import that loads Keras or TensorFlow happens inside a command, so that
`keras-dml --help` answers at once.
"""

import errno
import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from keras_dml.errors import RunError, UsageError
from keras_dml.printing import print_gain, print_rows, say

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

app = typer.Typer(
    name="keras-dml",
    help="Deep metric learning: train, measure and ship an image embedder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Source = Annotated[
    str,
    typer.Argument(
        help="A data set's name, a folder with one sub-folder per class, a "
        "CSV file (path,label[,split]), or tfds:NAME."
    ),
]
Run = Annotated[Path, typer.Argument(help="The run folder.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder that holds the data set's files.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


@app.command()
def fit(
    source: Source,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="NAME or FILE.yaml, with :PRESET or :PRESET+PRESET if wanted."
        ),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="See `keras-dml backbones`.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="imagenet, none, or a file.")
    ] = None,
    data_dir: DataDir = None,
    output_folder: Annotated[
        Path | None,
        typer.Option(
            "--output", help="Run folder [default: runs/SOURCE-RECIPE-SEED]."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    strategy: Annotated[
        str, typer.Option(help="auto, none, mirrored or multi_worker.")
    ] = "auto",
    devices: Annotated[
        str | None, typer.Option(help="For trying a strategy, e.g. cpu:2.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting: key=value, dotted key."),
    ] = None,
) -> None:
    """Train an embedder, measure it on unseen classes, export it."""
    from keras_dml.config import DEFAULT_RECIPE, resolve

    recipe = recipe or DEFAULT_RECIPE
    model = {"backbone": backbone, "weights": weights}
    config = resolve(
        recipe,
        source,
        flags={
            "seed": seed,
            "strategy": strategy,
            "devices": devices,
            "data": {"data_dir": str(data_dir) if data_dir else None},
            "model": {key: value for key, value in model.items() if value},
        },
        overrides=settings or [],
    )
    folder = output_folder or _default_output(source, recipe, seed)

    from keras_dml import train

    metrics = train.fit(config, folder, resume=resume)
    print_gain(metrics)
    say(f"Run folder: {folder}")


@app.command()
def evaluate(
    run: Run,
    source: Annotated[
        str | None,
        typer.Option(help="Other data than the run's own."),
    ] = None,
    data_dir: DataDir = None,
    k: Annotated[
        str | None, typer.Option(help="Ranks of Recall@K, such as 1,2,4,8.")
    ] = None,
    clustering: Annotated[
        bool, typer.Option("--clustering", help="Also cluster, for NMI.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the retrieval of a trained embedder."""
    from keras_dml import train

    result = train.evaluate_run(
        run,
        source=source,
        data_dir=data_dir,
        k=_ranks(k) if k else None,
        clustering=clustering,
    )
    if as_json:
        print(json.dumps(result.metrics))
        return
    print_rows(
        f"{result.num_queries:,} queries",
        [{"metric": k, "value": v} for k, v in result.metrics.items()],
    )


@app.command()
def export(
    run: Run,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="saved_model or litert [default: both]."),
    ] = None,
    output_folder: Annotated[
        Path | None, typer.Option("--output", help="Default: RUN/export.")
    ] = None,
    data_dir: DataDir = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is not an export.")
    ] = False,
) -> None:
    """Export a trained embedder and compare it with the original."""
    from keras_dml import train

    rows = train.export_run(
        run,
        formats or ["saved_model", "litert"],
        output=output_folder,
        data_dir=data_dir,
        force=force,
    )
    print_rows("Exported", rows)


@app.command()
def prepare(
    dataset: Annotated[str, typer.Argument(help="See `keras-dml datasets`.")],
    data_dir: Annotated[Path, typer.Option(help="Where it is, or shall be.")],
    download: Annotated[
        bool, typer.Option("--download", help="Through tensorflow-datasets.")
    ] = False,
) -> None:
    """Check a data set's files; say what is missing and where to get it."""
    from keras_dml.data.prepare import prepare as check

    report = check(dataset, data_dir, download=download)
    for count, value in report.counts.items():
        say(f"{count.replace('_', ' ')}: {value:,}")
    for archive, state in report.archives.items():
        say(f"{archive}: {state}")
    if report.complete:
        say(f"{report.name} is complete. Train on it with")
        say(f"keras-dml fit {report.name} --data-dir {data_dir}")
        return
    say(report.problem)
    for file in report.missing:
        size = f"{file.size:,} bytes" if file.size else "size not published"
        checksum = file.sha256 or file.md5 or "no published checksum"
        say(f"{file.name} ({size}, {checksum})\n  {file.url}")
    for sentence in report.advice:
        say(sentence)
    raise typer.Exit(2)


@app.command()
def recipes() -> None:
    """List the recipes: what each is and what its paper reports."""
    from keras_dml.config import load_recipe, recipe_names

    loaded = [load_recipe(name) for name in recipe_names()]
    print_rows(
        "Recipes",
        [
            {
                "name": one.name,
                "paper": one.paper,
                "reported": one.expected,
                "presets": " ".join(one.presets),
            }
            for one in loaded
        ],
    )


@app.command()
def datasets() -> None:
    """List the data sets that are known by name."""
    from keras_dml.config import dataset_facts, known_datasets

    known = [dataset_facts(name) for name in known_datasets()]
    print_rows(
        "Data sets",
        [
            {
                "name": one.name,
                "title": one.title,
                "published": one.paper,
                "images": f"{one.counts.get('images', 0):,}",
                "classes": f"{one.counts.get('classes', 0):,}",
                "recall at": ", ".join(map(str, one.recall_k)),
            }
            for one in known
        ],
    )


@app.command()
def backbones() -> None:
    """List the backbones."""
    from keras_dml.models import BACKBONES

    print_rows(
        "Backbones",
        [
            {
                "name": name,
                "paper": one.paper,
                "image size": str(one.image_size),
                "weights": one.pretrained,
            }
            for name, one in BACKBONES.items()
        ],
    )


def main() -> None:
    """Runs the command line: 0 done, 2 the caller's mistake, 1 the rest."""
    try:
        app()
    except UsageError as error:
        _fail(str(error), 2)
    except RunError as error:
        _fail(str(error), 1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _fail(
            f"The disk is full (writing {error.filename or 'a file'}). What "
            "was written before is whole: free some space and pass "
            "`--resume`.",
            1,
        )


def _fail(message: str, code: int) -> NoReturn:
    print(f"Error: {message}", file=sys.stderr)
    sys.exit(code)


def _default_output(source: str, recipe: str, seed: int) -> Path:
    """`runs/<source>-<recipe>-<seed>`, with names that a path may hold."""
    place = Path(source)
    name = place.stem if place.exists() else source
    label = Path(recipe.removesuffix(".yaml")).name
    plain = f"{name}-{label}-{seed}".replace(":", "_").replace("+", "_")
    return Path("runs") / plain.replace("/", "_")


def _ranks(text: str) -> list[int]:
    ranks = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) > 0 for part in ranks):
        raise UsageError(
            "`--k` must be positive integers joined by commas, such as "
            f"1,2,4,8. Received: {text!r}"
        )
    return [int(part) for part in ranks]
