"""What all export formats share, and the list of them.

A format is a subclass of `Format` in a module of this package. Nothing else
lists it: the package finds it, and everyone else asks the object.
"""

import abc
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np

from keras_dml.checks import one_of
from keras_dml.errors import UsageError
from keras_dml.export.artefact import (
    MANIFEST,
    read_manifest,
    replacing_folder,
)
from keras_dml.export.options import ExportOptions
from keras_dml.files import write_json

FORMATS: dict[str, "Format"] = {}


@dataclasses.dataclass(frozen=True)
class Runner:
    """How to embed images with an artefact.

    Attributes:
        prepare: Function of float32 images `(n, height, width, channels)`
            with values in 0..255; returns what `embed` takes, such as uint8.
        embed: Function of a batch of these; returns float32 embeddings.
        search: Function of embeddings `(n, dim)` and `k` that returns ids and
            scores `(n, k)`; `None` where there is no index.
    """

    prepare: Callable[[np.ndarray], np.ndarray]
    embed: Callable[[np.ndarray], np.ndarray]
    search: (
        Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]] | None
    ) = None


class Format(abc.ABC):
    """One kind of artefact: its options, how it is written and opened.

    Attributes:
        name: What `formats` calls it, and the name of its folder.
        title: What messages call it.
        options: The fields of `ExportOptions` that it alone understands.
        notes: Our files next to the model, which clients may leave out.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    notes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        FORMATS[cls.name] = cls()

    def check(self, options: ExportOptions) -> None:  # noqa: B027
        """Refuses what cannot be written, before any work.

        Raises:
            UsageError: The options do not go together, or a package is
                missing.
        """

    def artefacts(self, options: ExportOptions) -> dict[str, ExportOptions]:
        """The artefacts to write: dict of name to the options of each."""
        return {self.name: options}

    @abc.abstractmethod
    def write(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes the files of an artefact.

        Args:
            embedder: Model of square images with values in 0..255.
            folder: An empty folder.
            options: `ExportOptions`, as `artefacts` returns them.

        Returns:
            The manifest, see `make_manifest`.

        Raises:
            RunError: The format cannot express the model.
        """

    @abc.abstractmethod
    def open(
        self, folder: Path, manifest: Mapping[str, Any], threads: int
    ) -> Runner:
        """Opens an artefact as a client would.

        Args:
            folder: The artefact.
            manifest: Its manifest.
            threads: How many threads to use, where it can be chosen.
        """

    def make(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> Path:
        """Writes an artefact with its manifest into a new folder."""
        folder.mkdir(exist_ok=True)
        manifest = self.write(embedder, folder, options)
        write_json(folder / MANIFEST, manifest)
        return folder

    def export(
        self,
        embedder: keras.Model,
        path: str | Path,
        options: ExportOptions | None,
        changes: Mapping[str, Any],
    ) -> Path:
        """Writes one artefact, whole or not at all, without comparing it."""
        options = ExportOptions.of(options, changes)
        choose_formats(self.name, options)
        self.check(options)
        artefacts = [*self.artefacts(options).values()]
        if len(artefacts) != 1:
            raise UsageError(
                f"One artefact is written to {path}. Received: options for "
                f"{len(artefacts)}. Use `export_embedder` for several."
            )
        with replacing_folder(Path(path), options.force) as folder:
            self.make(embedder, folder, artefacts[0])
        return Path(path)


def choose_formats(
    names: str | Sequence[str], options: ExportOptions
) -> list[Format]:
    """The formats of these names.

    Args:
        names: One name or several.
        options: `ExportOptions` that they are written with.

    Raises:
        UsageError: A name is unknown, or an option belongs to a format that
            is not among them.
    """
    names = [names] if isinstance(names, str) else [*dict.fromkeys(names)]
    for name in names:
        one_of("format", name, FORMATS)
    defaults = ExportOptions()
    for owner in FORMATS.values():
        for option in owner.options if owner.name not in names else ():
            if getattr(options, option) != getattr(defaults, option):
                raise UsageError(
                    f"`{option}` is for {owner.title}. Received: formats "
                    f"{', '.join(names)}. Add the format `{owner.name}`."
                )
    return [FORMATS[name] for name in names]


def open_artefact(folder: str | Path, threads: int | None = None) -> Runner:
    """Opens an artefact of any format.

    Args:
        folder: An exported folder.
        threads: How many threads LiteRT and ONNX Runtime use. TensorFlow has
            one setting for the whole process. Defaults to `None`, as many as
            the machine has processors.

    Raises:
        RunError: The folder is not an artefact of ours.

    Example:

    ```python
    runner = open_artefact("export/litert-int8")
    embeddings = runner.embed(runner.prepare(images))
    ```
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    threads = threads or os.cpu_count() or 1
    return FORMATS[manifest["format"]].open(folder, manifest, threads)


def as_float32(images: np.ndarray) -> np.ndarray:
    """Images as most artefacts take them; for `Runner.prepare`."""
    return np.asarray(images, dtype="float32")
