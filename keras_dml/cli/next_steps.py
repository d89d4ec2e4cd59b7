"""What a person may do after a command, each with the command for it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_dml.wording import WIDTH

if TYPE_CHECKING:
    from keras_dml.api import Run
    from keras_dml.comparison.comparison import Comparison
    from keras_dml.export.exporting import ExportResult

# What it is good for, and the command, or a path to look at.
Step = tuple[str, str]

# What a further export of a run keeps: of any format, and of one alone.
_OF_ALL = {
    "data_dir": "--data-dir",
    "dim": "--dim",
    "max_false_match_rate": "--max-false-match-rate",
    "decision": "--decision",
    "max_drop": "--max-drop",
}
_OF_LITERT = {
    "dynamic_batch": "--dynamic-batch",
    "references": "--with-references",
}
_OF_SAVED_MODEL = {"max_pixels": "--max-pixels"}


def command_line(*words: object) -> str:
    """Joins the words of a command; a long one goes on in a further line.

    An option stays beside its value.
    """
    lines, parts = ["   "], list(map(shlex.quote, map(str, words)))
    for part, before, after in zip(
        parts, ["", *parts], [*parts[1:], "--"], strict=False
    ):
        option = part.startswith("--")
        beside = before.startswith("--") and not option
        value = [after] if option and not after.startswith("--") else []
        length = len(" ".join([part, *value]))
        if not beside and len(lines[-1]) + length > WIDTH - 3:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" {part}"
    return "\n".join(lines)


def from_scratch(run: "Run") -> bool:
    """Returns whether a run is compared with raw pixels."""
    return any("raw pixels" in row for row in run.rows())


def steps_after_fit(run: "Run") -> Iterator[Step]:
    """Yields what a person may do with a run, each with its command."""
    path = run.folder.path
    again = ("keras-dml", "fit", "--config", path)
    page = run.folder.report
    if page.is_file():
        yield "look at its page in a browser", f"    {page}"
    if run.rising or not run.gained or run.kept:
        minutes = run.config.minutes
        # Training in several stages has no one length to double.
        epochs = run.history.phases.count("main/train")
        longer: tuple[str, ...] = ()
        if minutes is not None:
            longer = ("--minutes", f"{2 * minutes:g}")
        elif epochs:
            longer = ("--epochs", f"{2 * epochs}")
        if longer:
            yield (
                "train again, twice as long, as validation still rose at the "
                "end"
                if run.rising
                else "train again, twice as long, as no gain is sure so far",
                command_line(*again, *longer, "--output", f"{path}-longer"),
            )
    if not run.gained and from_scratch(run):
        data = run.config.data
        folder = data.data_dir and _from_here(data.data_dir)
        given = ("--data-dir", folder) if folder else ()
        yield (
            "start from a pretrained network; `keras-dml backbones` lists them",
            command_line(
                *("keras-dml", "fit", _from_here(data.source), *given),
                *("--backbone", "mobilenet_v2"),
                *("--output", f"{path}-pretrained"),
            ),
        )
    yield (
        "find test images like a photo; `--gallery FOLDER` searches a folder",
        command_line("keras-dml", "search", path, "PHOTO.jpg"),
    )
    learned = run.gained and not run.kept
    if learned and run.final is None and not run.metrics["seen"]:
        yield (
            "train once more on all classes, into its folder `final`, and ship "
            "that",
            command_line(
                *again, "--output", path, "--resume", "--final", "all"
            ),
        )
    shipped = path if run.final is None else run.final.folder.path
    phone = ("--format", "litert", "--quantize", "int8")
    yield (
        "make a small file for phones, with 8-bit integers",
        command_line("keras-dml", "export", shipped, *phone),
    )


def steps_after_export(
    result: "ExportResult", options: Mapping[str, Any]
) -> Iterator[Step]:
    """Yields what a person may do with the artifacts of a run.

    Args:
        result: The artifacts.
        options: What the command was given, its run among them.
    """
    from keras_dml.export.gallery import is_source

    if options.get("with_index") and is_source(options.get("gallery")):
        # It is the folder of the gallery, not of the run.
        options = {**options, "data_dir": None}
    again = ("keras-dml", "export", options["run"], *_given(options, _OF_ALL))
    small = (*again, *_given(options, _OF_LITERT), "--output")
    litert = ("--format", "litert", "--quantize")
    output = result.folder
    names = [row["artifact"] for row in result[1:]]
    worse = any(name in result.worse for name in names if "int8" in name)
    if worse and "litert-float16" not in names:
        yield (
            "make it half as large instead, with 16-bit numbers",
            command_line(*small, f"{output}-float16", *litert, "float16"),
        )
    elif "litert" in names and "litert-int8" not in names:
        yield (
            "make the file for phones about a quarter as large, with 8-bit "
            "integers; the table will show what that costs",
            command_line(*small, f"{output}-int8", *litert, "int8"),
        )
    if "saved_model" in names and "index_recall@1" not in result[0]:
        yield (
            "let it answer with the nearest images and their labels",
            command_line(
                *(*again, *_given(options, _OF_SAVED_MODEL)),
                *("--output", f"{output}-index"),
                *("--format", "saved_model", "--with-index"),
            ),
        )


def _given(
    options: Mapping[str, Any], names: Mapping[str, str]
) -> Iterator[object]:
    """Yields the words of those options that a command was given."""
    for name, option in names.items():
        value = options.get(name)
        if value is None or value is False:
            continue
        yield option
        if value is not True:
            yield value


def steps_after_comparison(
    result: "Comparison", again: Sequence[str]
) -> Iterator[Step]:
    """Yields what a person may do with a comparison.

    Args:
        result: The comparison.
        again: The words of its command, without its seeds.
    """
    yield "look at the report in a browser", f"    {result.page}"
    if seeds := ",".join(map(str, result.further_seeds())):
        yield (
            "train with more seeds, to see if the ranking stays; finished runs "
            "are kept",
            command_line("keras-dml", *again, "--seeds", seeds),
        )
    if result.best is not None:
        yield (
            "find images like a photo, with a run of the leading arm",
            command_line("keras-dml", "search", result.best, "PHOTO.jpg"),
        )
        yield (
            "turn that run into files for servers and phones",
            command_line("keras-dml", "export", result.best),
        )


def _from_here(place: str) -> str:
    """Returns a path from the working directory, if it is below that."""
    from keras_dml.data.readers import is_named

    path, here = Path(place), Path.cwd()
    if not path.is_relative_to(here):
        return place
    relative = str(path.relative_to(here))
    # The name of a data set or an option would win over the folder.
    other = is_named(relative) or relative.startswith("-")
    return f"./{relative}" if other else relative
