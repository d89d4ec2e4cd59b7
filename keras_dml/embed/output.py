"""The folder or the file that embeddings are written to."""

import os
import shutil
from pathlib import Path
from typing import Any

from keras_dml.embeddings.files import FILE_FORMATS, check_format
from keras_dml.embeddings.merging import merge_shards, merged_manifest
from keras_dml.embeddings.shard_folder import BAD, ShardFolder, write_bad
from keras_dml.errors import UsageError


class Output:
    """A folder of shards, or one file that shards are merged into.

    The shards of a file lie in a hidden folder next to it until they are
    merged.

    Args:
        path: A folder, or a file whose name ends in `.npz` or `.parquet`.
        file_format: `"npz"` or `"parquet"`. Defaults to `None`, the format of
            the file name, or `"npz"` for a folder.

    Raises:
        UsageError: If the format is unknown or is not that of the file name.
    """

    def __init__(
        self, path: str | os.PathLike[str], file_format: str | None = None
    ) -> None:
        self.path = Path(path)
        name = self.path.name
        ending = self.path.suffix.removeprefix(".").lower()
        self.is_file = ending in FILE_FORMATS
        self.format = file_format or (
            ending if self.is_file else FILE_FORMATS[0]
        )
        if self.is_file and self.format != ending:
            raise UsageError(
                "`file_format` and the name of `output` must agree. Received: "
                f"{file_format} and {path}. Leave `file_format` out."
            )
        check_format(self.format)
        self.shards = ShardFolder(self.path)
        self.bad_list = self.path / BAD
        if self.is_file:
            self.shards = ShardFolder(self.path.with_name(f".{name}.shards"))
            self.bad_list = self.path.with_name(f"{name}.bad.csv")

    @property
    def merged(self) -> bool:
        """Whether the file exists, so that nothing is left to embed."""
        return self.is_file and self.path.exists()

    def manifest(self) -> dict[str, Any] | None:
        """Reads the settings of the embeddings; `None` without any."""
        if self.merged:
            return merged_manifest(self.path)
        return self.shards.manifest() if self.shards.exists else None

    def check_free(self, resume: bool) -> None:
        """Raises if nothing may be written here.

        Args:
            resume: Boolean, whether to continue embeddings that exist.

        Raises:
            UsageError: If the output holds something else, or embeddings that
                are not to be continued.
        """
        self.shards.check_free()
        begun = self.manifest() is not None
        if self.merged and not begun:
            raise UsageError(
                f"{self.path} exists and was not written by `embed`. Choose "
                "another `output`."
            )
        if begun and not resume:
            raise UsageError(
                f"{self.path} already holds embeddings, or a part of them. "
                "Pass `resume=True` to go on, or choose another `output`."
            )

    def finish(self) -> dict[str, Any]:
        """Counts the embeddings, and merges the shards of a file.

        Returns:
            The manifest, with `rows` and `bad`.
        """
        manifest = self.shards.finish()
        if self.is_file:
            write_bad(self.bad_list, self.shards.read_bad())
            if manifest["rows"]:
                merge_shards(self.shards, self.path)
            self.delete_shards()
        return manifest

    def delete_shards(self) -> None:
        """Deletes the shards of a file."""
        shutil.rmtree(self.shards.path, ignore_errors=True)
