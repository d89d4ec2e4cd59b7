"""Writes embeddings to a folder as shards, one file after the other.

A shard holds the embeddings of a fixed range of images. It is written under a
temporary name and then renamed, so every existing shard is complete. After a
kill, `resume` makes the missing shards; no row is lost or repeated.
"""

import csv
import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.files import count_rows, save_embeddings
from keras_dml.errors import RunError, UsageError
from keras_dml.files import (
    check_fields,
    csv_text,
    load_json,
    write_json,
    write_text,
)
from keras_dml.naming import differences

BAD = "bad.csv"
Bad = tuple[str, str, str]


class _Manifest(BaseModel):
    """The fields that are read back; there are more."""

    model_config = ConfigDict(strict=True, extra="allow")

    format: Literal["npz", "parquet"]
    shard_size: PositiveInt
    num_images: NonNegativeInt
    labels: bool
    dim: PositiveInt
    weights_hash: str
    digests: list[str]
    finished: bool
    rows: NonNegativeInt = 0
    bad: NonNegativeInt = 0
    shard_rows: list[NonNegativeInt] = []

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        counts = len(self.shard_rows), sum(self.shard_rows)
        if self.finished and counts != (len(self.digests), self.rows):
            raise ValueError("its numbers of rows do not agree")
        return self


class ShardFolder(ClaimedFolder):
    """Manages shards of embeddings, a list of bad images and a manifest.

    Args:
        path: The folder, which `create` makes.
    """

    kind = "a folder of embeddings"
    record_name = "manifest.json"
    maker = "keras-dml embed"

    def manifest(self) -> dict[str, Any]:
        """Reads what was embedded, and with which settings.

        Raises:
            UsageError: If the folder holds no shards, or the file was changed.
        """
        if not self.exists:
            raise UsageError(
                f"{self.path} holds no embeddings: it has no "
                f"`{self.record_name}` of `keras-dml embed`. Name the folder "
                "that was its `output`."
            )
        return check_manifest(load_json(self.record), self.record)

    def create(self, settings: Mapping[str, Any]) -> None:
        """Makes the folder and writes the settings of all shards."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._write_manifest({**settings, "finished": False})

    def shard(self, number: int) -> Path:
        """Returns the file of a shard."""
        return self.path / f"shard-{number:05d}.{self._format}"

    def shards(self) -> list[Path]:
        """Returns the files of all shards, whether they exist or not."""
        count = len(self.manifest()["digests"])
        return [self.shard(number) for number in range(count)]

    def missing(self) -> list[int]:
        """Returns the numbers of the shards that are missing or damaged."""
        return [
            number
            for number, path in enumerate(self.shards())
            if count_rows(path) is None
        ]

    def write(
        self, number: int, rows: EmbeddingSet, bad: Sequence[Bad]
    ) -> None:
        """Lists the bad images of a shard, and then writes the shard."""
        if bad:
            known = {one[0] for one in bad}
            kept = [one for one in self.read_bad() if one[0] not in known]
            self.write_bad([*kept, *bad])
        save_embeddings(self.shard(number), rows)

    def read_bad(self) -> list[Bad]:
        """Reads id, path and reason of the images that were left out."""
        path = self.path / BAD
        if not path.is_file():
            return []
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file)
                return [(row["id"], row["path"], row["reason"]) for row in rows]
        except (OSError, UnicodeDecodeError, KeyError, csv.Error) as error:
            raise UsageError(
                f"{path} must be a table of the columns id, path and reason. "
                f"Received: {error}. Restore it, or embed into another "
                "`output`."
            ) from error

    def write_bad(self, bad: Iterable[Bad]) -> None:
        """Writes or replaces the list of bad images; deletes an empty one."""
        write_bad(self.path / BAD, bad)

    def finish(self) -> dict[str, Any]:
        """Counts all rows and marks the folder as finished.

        Returns:
            The manifest, with `rows`, `bad` and the rows of each shard.

        Raises:
            RunError: If some images are neither embedded nor listed as bad.
        """
        manifest = self.manifest()
        rows = [count_rows(path) for path in self.shards()]
        total = sum(count or 0 for count in rows)
        bad = len(self.read_bad())
        if None in rows or total + bad != manifest["num_images"]:
            raise RunError(
                f"{self.path} must account for {manifest['num_images']} "
                f"images. Received: {total} embedded and {bad} bad ones. Was "
                "it changed meanwhile? Embed again into another `output`."
            )
        manifest.update(finished=True, rows=total, bad=bad, shard_rows=rows)
        self._write_manifest(manifest)
        return manifest

    @functools.cached_property
    def _format(self) -> str:
        return self.manifest()["format"]

    def _write_manifest(self, content: Mapping[str, Any]) -> None:
        write_json(self.record, {"made_by": self.maker, **content})


def check_manifest(content: Any, path: Path) -> dict[str, Any]:
    """Returns the content of a manifest, if `keras-dml embed` wrote it.

    Args:
        content: The values.
        path: The file, for the error.

    Raises:
        UsageError: If a value is missing, of another type, or contradicts
            others.
    """
    what = "the manifest of `keras-dml embed`"
    return check_fields(content, _Manifest, path, what)


def check_same(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], place: Path
) -> None:
    """Raises if the images, weights or settings of a run have changed.

    Args:
        stored: The manifest of the existing output.
        wanted: The settings of the new run.
        place: The path of the output, for the error.

    Raises:
        UsageError: If they differ; the error lists the differences.
    """
    plain = wanted.keys() - {"digests", "source", "version"}
    changed = differences(
        {key: stored.get(key) for key in plain},
        {key: wanted[key] for key in plain},
    )
    if not changed and stored.get("digests") != wanted["digests"]:
        pairs = zip_longest(stored["digests"], wanted["digests"])
        first = [old == new for old, new in pairs].index(False)
        start = first * wanted["shard_size"]
        changed = [
            f"an image was added, removed or changed, from number {start} on "
            "in sorted order"
        ]
    if changed:
        raise UsageError(
            f"{place} was started with other images, weights or settings: "
            f"{'; '.join(changed)}. Restore them, or choose another "
            "`output`."
        )


def write_bad(path: Path, bad: Iterable[Bad]) -> None:
    """Writes or replaces a list of bad images; deletes an empty one."""
    rows = list(bad)
    if not rows:
        path.unlink(missing_ok=True)
        return
    write_text(path, csv_text([("id", "path", "reason"), *rows]))
