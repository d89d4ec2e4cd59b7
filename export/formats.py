"""The base class of all export formats, and their registry.

To add a format, write a module of this package with a subclass of `Format`.
The package imports it, and the subclass adds itself to `FORMATS`.
"""

import abc
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np

from keras_dml.checks import one_of, require
from keras_dml.errors import UsageError
from keras_dml.export import on_tensorflow
from keras_dml.export.artifact import (
    MANIFEST,
    read_manifest,
    replacing_folder,
)
from keras_dml.export.options import ExportOptions
from keras_dml.files import write_json

FORMATS: dict[str, "Format"] = {}


@dataclasses.dataclass(frozen=True)
class Runner:
    """Functions that embed images, and search, with an artifact.

    Attributes:
        prepare: Function of float32 images `(n, height, width, channels)`
            with values in 0..255 that converts them to the input of `embed`,
            such as uint8.
        embed: Function of a batch of prepared images that returns float32
            embeddings.
        search: Function of embeddings `(n, dim)` and `k` that returns ids and
            scores `(n, k)`; `None` if the artifact has no index.
    """

    prepare: Callable[[np.ndarray], np.ndarray]
    embed: Callable[[np.ndarray], np.ndarray]
    search: (
        Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]] | None
    ) = None


class Format(abc.ABC):
    """One kind of artifact: defines its options, and writes and opens it.

    Attributes:
        name: Its name in the argument `formats`, and the name of its folder.
            The model in it is a file `embedder.SUFFIX`, or the folder.
        title: Its name in messages.
        runs_on: Where it runs, in messages. Defaults to `""`.
        options: The fields of `ExportOptions` that only this format uses.
        notes: Files that keras-dml writes next to the model, on references,
            and that clients may leave out.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    runs_on: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ()
    notes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        FORMATS[cls.name] = cls()

    def check(self, options: ExportOptions) -> None:  # noqa: B027
        """Raises, before any work, if the options cannot be exported.

        Raises:
            UsageError: If the options contradict each other, or a package is
                missing.
        """

    def artifacts(self, options: ExportOptions) -> dict[str, ExportOptions]:
        """Returns a dict of the names of the artifacts to their options."""
        return {self.name: options}

    @abc.abstractmethod
    def write(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes the files of an artifact.

        Args:
            embedder: Model of square images with values in 0..255.
            folder: An empty folder.
            options: `ExportOptions`, as `artifacts` returns them.

        Returns:
            The manifest, see `make_manifest`.

        Raises:
            RunError: If the format cannot express the model.
        """

    @abc.abstractmethod
    def open(
        self, folder: Path, manifest: Mapping[str, Any], threads: int
    ) -> Runner:
        """Opens an artifact as a client would.

        Args:
            folder: The artifact.
            manifest: Its manifest.
            threads: Number of threads to use, if the runtime allows a choice.
        """

    def make(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> Path:
        """Writes an artifact with its manifest into a new folder.

        Raises:
            UsageError: If Keras runs on another backend than TensorFlow.
        """
        if not on_tensorflow.is_here():
            raise UsageError(
                f"{self.title} is exported from the TensorFlow backend of "
                f"Keras. Received: backend {keras.backend.backend()!r}. Save "
                "the embedder and export it with KERAS_BACKEND=tensorflow; "
                "`export_run` does so with a run."
            )
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
        """Writes one artifact, completely or not at all, without comparing it.

        Args:
            embedder: Model of square images with values in 0..255.
            path: The folder to write.
            options: `ExportOptions`, or `None` for the defaults.
            changes: Arguments of `ExportOptions` that override `options`.

        Returns:
            The folder.

        Raises:
            UsageError: If the options ask for several artifacts.
        """
        options = ExportOptions.of(options, changes)
        choose_formats(self.name, options)
        self.check(options)
        artifacts = [*self.artifacts(options).values()]
        if len(artifacts) != 1:
            raise UsageError(
                f"One artifact is written to {path}. Received: options for "
                f"{len(artifacts)}. Use `export_embedder` for several."
            )
        with replacing_folder(Path(path), options.force) as folder:
            self.make(embedder, folder, artifacts[0])
        return Path(path)


def choose_formats(
    names: str | Sequence[str], options: ExportOptions
) -> list[Format]:
    """Returns the formats with these names.

    Args:
        names: One name or several.
        options: `ExportOptions` to write them with.

    Raises:
        UsageError: If there is no name, a name is unknown, or an option
            belongs to a format that is not among them.
    """
    names = [names] if isinstance(names, str) else [*dict.fromkeys(names)]
    require(names, "formats", f"one or more of {', '.join(FORMATS)}", names)
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


def open_artifact(folder: str | Path, threads: int | None = None) -> Runner:
    """Opens an artifact of any format.

    Args:
        folder: An exported folder.
        threads: Number of threads that LiteRT and ONNX Runtime use.
            TensorFlow has one setting for the whole process. Defaults to
            `None`, the number of processors of the machine.

    Raises:
        RunError: If the folder is not an artifact of keras-dml.

    Example:

    ```python
    runner = open_artifact("export/litert-int8")
    embeddings = runner.embed(runner.prepare(images))
    ```
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    threads = threads or os.cpu_count() or 1
    one_of("format", manifest["format"], FORMATS)
    return FORMATS[manifest["format"]].open(folder, manifest, threads)


def as_float32(images: np.ndarray) -> np.ndarray:
    """Converts images to float32; the `Runner.prepare` of most artifacts."""
    return np.asarray(images, dtype="float32")
