"""Reports whether a data set is complete, and which files to fetch where."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

from keras_dml.brief import Brief
from keras_dml.data import readers
from keras_dml.data.facts import DatasetFacts, SourceFile, dataset_facts
from keras_dml.data.readers.published import count, first_of
from keras_dml.errors import RunError, UsageError

# A file of these states need not be fetched again.
_USABLE = ("ok", "no published checksum")


@dataclasses.dataclass(frozen=True, repr=False)
class Check(Brief):
    """The result of `prepare`.

    Args:
        name: String, the source to train on: the data set, or `tfds:NAME`
            when it was downloaded.
        data_dir: String, the folder that was searched.
        complete: Boolean, whether the data set can be used as it is.
        problem: String that says what is missing; empty if complete.
        counts: Dictionary of the numbers of images and classes found.
        archives: Dictionary that maps each published file in the folder to
            `"ok"`, `"wrong size"`, `"wrong checksum"` or `"no published
            checksum"`.
        missing: Tuple of `SourceFile`, the published files to fetch; empty
            if complete.
        advice: Tuple of sentences on what to do.
    """

    name: str
    data_dir: str
    complete: bool
    problem: str
    counts: dict[str, int]
    archives: dict[str, str]
    missing: tuple[SourceFile, ...]
    advice: tuple[str, ...]


def prepare(
    name: str,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Check:
    """Checks a data set's layout and counts, and checksums of its archives.

    Args:
        name: A data set's name, see `keras-dml datasets`, or `tfds:NAME`.
        data_dir: Path of the data set's folder or of the one above it.
            Defaults to `None`.
        download: Whether to download a missing set with tensorflow-datasets
            if its builder works. Defaults to `False`.
        progress: Function that is called with a sentence about each step.
            Defaults to `None`.

    Returns:
        `Check`.

    Raises:
        UsageError: If the name is unknown, or `download=True` and the set has
            no working download.
        RunError: If the download fails.
    """
    say = progress or (lambda sentence: None)
    if not readers.is_named(name):
        readers.read(name, data_dir)
        raise UsageError(
            "`prepare` takes the name of a data set. Received: "
            f"{name!r}, a folder or file, which can be used as it is."
        )
    facts = dataset_facts(name)
    if download:
        name = _download(name, facts, data_dir, say)
    say(f"Reading {name}")
    problem, manifest = "", None
    try:
        manifest = readers.read(name, data_dir, download=False)
    except UsageError as error:
        # It asks for the command that is running.
        problem = str(error).partition(" Run `keras-dml prepare")[0]
        with contextlib.suppress(UsageError):
            manifest = readers.read(
                name, data_dir, allow_partial=True, download=False
            )
    archives = _check_archives(facts, data_dir, say)
    missing = facts.missing(
        {name for name, state in archives.items() if state in _USABLE}
    )
    return Check(
        name=name,
        data_dir="" if data_dir is None else str(data_dir),
        complete=not problem,
        problem=problem,
        counts={} if manifest is None else count(manifest),
        archives=archives,
        missing=missing if problem else (),
        advice=_advice(facts, name) if problem else (),
    )


def _download(name, facts: DatasetFacts, data_dir, say) -> str:
    """Downloads a set; returns the source to read it from, `tfds:NAME`."""
    builder = facts.tfds_name if facts.tfds_downloads else None
    if name.startswith("tfds:"):
        builder = name.removeprefix("tfds:")
    if builder is None and not facts.files:
        return name
    if builder is None:
        raise UsageError(
            f"`{name}` cannot be downloaded by keras-dml. Received: "
            f"download=True. Fetch its files from {facts.homepage}; without "
            "download they are listed with sizes and checksums."
        )
    say(f"Downloading tfds:{builder}")
    readers.load_builder(builder, data_dir, download=True)
    return f"tfds:{builder}"


def _check_archives(facts, data_dir, say):
    """Checks the published files that lie in the folder."""
    if data_dir is None or not Path(data_dir).is_dir():
        return {}
    folders = [Path(data_dir), *(Path(data_dir) / f for f in facts.folders)]
    results = {}
    for file in facts.files:
        path = first_of(*(folder / file.name for folder in folders))
        if path is not None:
            say(f"Checking {path}")
            results[file.name] = check_file(path, file)
    return results


def check_file(path, file: SourceFile) -> str:
    """Compares a file with its published size and checksum.

    Args:
        path: Path.
        file: `SourceFile`.

    Returns:
        `"ok"`, `"wrong size"`, `"wrong checksum"` or `"no published
        checksum"`.

    Raises:
        RunError: If the file cannot be read.
    """
    path = Path(path)
    if file.size is not None and path.stat().st_size != file.size:
        return "wrong size"
    algorithm = "sha256" if file.sha256 else "md5"
    expected = file.sha256 or file.md5
    if expected is None:
        return "no published checksum"
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, algorithm).hexdigest()
    except OSError as error:
        raise RunError(f"{path} could not be read: {error}") from error
    return "ok" if digest == expected else "wrong checksum"


def _advice(facts, name):
    """Returns sentences on how to complete a set."""
    advice = []
    if facts.files:
        advice.append(
            f"Fetch the files from {facts.homepage} and unpack them so that "
            f"the folder holds {', '.join(facts.layout)}."
        )
    if name.startswith("tfds:"):
        advice.append("Let tensorflow-datasets download it: set `download`.")
    elif facts.tfds_downloads:
        advice.append(
            f"Or let tensorflow-datasets download it, with `download`, and use "
            f"tfds:{facts.tfds_name} as the source."
        )
    return tuple(advice)
