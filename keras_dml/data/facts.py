"""Reads the facts of each data set from `configs/datasets/<name>.yaml`."""

import dataclasses
import functools
import importlib.resources
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

DEFAULT = "default"


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """One published file of a data set.

    Args:
        name: String, the file's name.
        url: String, the page or address that publishes it.
        size: Integer, its size in bytes. Defaults to `None`, unknown.
        md5: String, its MD5 in hexadecimal. Defaults to `None`.
        sha256: String, its SHA-256 in hexadecimal. Defaults to `None`.
        either: String, the name of the alternative it belongs to: the files
            of one alternative are enough. Defaults to `None`.
    """

    name: str
    url: str
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None
    either: str | None = None


@dataclasses.dataclass(frozen=True)
class DatasetFacts:
    """Counts, files and usual settings of a data set.

    Args:
        name: String.
        title: String, its name in papers.
        homepage: String.
        paper: String, the publication that introduced it.
        folders: Tuple of the usual names of its folder.
        layout: Tuple of the files and folders that its folder holds.
        counts: Mapping of what is counted ("images", "train_images",
            "train_classes", "test_images", "test_classes", ...) to integers;
            empty when nothing is known.
        recall_k: Tuple of integers, the values of K that papers report.
        image_size: Integer, the default side of its square images.
        channels: 1 or 3.
        flip: Boolean, whether a mirrored image keeps its class.
        backbone: String, the network to use if neither recipe nor caller
            names one.
        tfds_name: String, its tensorflow-datasets builder, or `None`.
        tfds_downloads: Boolean, whether that builder's download works.
        tfds_unused: Tuple of that builder's splits that repeat images of
            other splits.
        files: Tuple of `SourceFile`.
        tfds_inverted: Boolean, whether that builder's images must be inverted
            to match those of the reader. Defaults to `False`.
        quarter_turns: Boolean, whether classes turned by quarters train as
            further classes. Defaults to `False`.
    """

    name: str
    title: str
    homepage: str
    paper: str
    folders: tuple[str, ...]
    layout: tuple[str, ...]
    counts: Mapping[str, int]
    recall_k: tuple[int, ...]
    image_size: int
    channels: int
    flip: bool
    backbone: str
    tfds_name: str | None
    tfds_downloads: bool
    tfds_unused: tuple[str, ...]
    files: tuple[SourceFile, ...]
    tfds_inverted: bool = False
    quarter_turns: bool = False

    def missing(self, present: Collection[str]) -> tuple[SourceFile, ...]:
        """Returns the files to fetch; of alternatives those nearest to whole.

        Args:
            present: Names of the files that are there.
        """
        alternatives: dict[str | None, list[bool]] = {}
        for file in self.files:
            alternatives.setdefault(file.either, []).append(
                file.name in present
            )
        always = alternatives.pop(None, [])
        wanted: set[str | None] = {None} if always else set()
        if alternatives:
            share = {key: sum(a) / len(a) for key, a in alternatives.items()}
            wanted.add(max(share, key=share.__getitem__))
        return tuple(
            file
            for file in self.files
            if file.either in wanted and file.name not in present
        )


def known_datasets() -> list[str]:
    """Returns the sorted names of all data sets that have a YAML file."""
    files = (entry.name for entry in _folder().iterdir())
    names = {Path(one).stem for one in files if one.endswith(".yaml")}
    return sorted(names - {DEFAULT})


@functools.cache
def dataset_facts(name: str) -> DatasetFacts:
    """Returns the facts of a data set, or those of `default` if unknown.

    Args:
        name: String, a data set's name, a folder, a CSV file or `tfds:NAME`.

    Example:

    >>> dataset_facts("sop").recall_k
    (1, 10, 100, 1000)
    """
    if name not in known_datasets():
        name = _named_by_tfds(name) or DEFAULT
    content = yaml.safe_load((_folder() / f"{name}.yaml").read_text("utf-8"))
    files = tuple(SourceFile(**entry) for entry in content.pop("files"))
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in content.items()
    }
    return DatasetFacts(name=name, files=files, **values)


def _folder():
    return importlib.resources.files("keras_dml.configs") / "datasets"


def _named_by_tfds(source):
    """Returns the known data set that `tfds:NAME` stands for, or `None`."""
    builder = source.removeprefix("tfds:").partition("/")[0].partition(":")[0]
    if not source.startswith("tfds:"):
        return None
    for name in known_datasets():
        if dataset_facts(name).tfds_name == builder:
            return name
    return None
