"""Checks that a data set is all there, shared by the readers."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from keras_dml.data.facts import DatasetFacts
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError

MAX_NAMED = 3


def find_root(
    data_dir: str | os.PathLike | None,
    facts: DatasetFacts,
    markers: Sequence[str],
) -> Path:
    """The folder that holds a data set's list of images.

    Args:
        data_dir: Path, the data set's folder or the one above it.
        facts: `DatasetFacts`, which names the folder.
        markers: Files or folders of which one must be there, relative to
            the folder.

    Raises:
        UsageError: If no folder holds one of them.
    """
    name = facts.name
    if data_dir is None:
        raise UsageError(
            f"`{name}` is read from a folder. Received: no data folder. Give "
            f"the folder that holds {facts.layout[0]} with --data-dir; "
            f"`keras-dml prepare {name} --data-dir DIR` says where it is "
            "published."
        )
    above = Path(data_dir)
    if not above.is_dir():
        raise UsageError(
            "`data_dir` must be a folder. Received: "
            f"data_dir={str(data_dir)!r}, which does not exist."
        )
    for root in (above, *(above / folder for folder in facts.folders)):
        if any((root / marker).exists() for marker in markers):
            return root
    raise UsageError(
        f"`{name}` needs {' or '.join(markers)}. Received: "
        f"data_dir={str(data_dir)!r}, where neither it nor a sub-folder "
        f"{' or '.join(facts.folders)} has one. Run `keras-dml prepare "
        f"{name} --data-dir DIR` to see what is missing."
    )


def exist(root: Path, paths: Sequence[str]) -> np.ndarray:
    """Which files are there, relative to a folder: a Boolean array.

    Folders are listed once each: asking for 120,000 files one by one takes
    far longer on a network drive.
    """
    listings: dict[str, set[str]] = {}
    found = np.zeros(len(paths), dtype=bool)
    for row, path in enumerate(paths):
        folder, name = os.path.split(path)
        if folder not in listings:
            full = root / folder
            listings[folder] = set(os.listdir(full)) if full.is_dir() else set()
        found[row] = name in listings[folder]
    return found


def complete(
    manifest: Manifest,
    facts: DatasetFacts,
    found: np.ndarray,
    where: str,
    allow_partial: bool,
) -> Manifest:
    """Refuses an incomplete set, or goes on with what is there.

    Args:
        manifest: `Manifest` of all images that the set's list names.
        facts: `DatasetFacts` with the counts.
        found: Boolean array, which of the images are there.
        where: String, the place of the images, for the message.
        allow_partial: Boolean, whether to go on without the missing ones.

    Returns:
        `Manifest` of the images found; `partial` if some are missing.

    Raises:
        UsageError: If images are missing and `allow_partial` is `False`, or
            none is left.
    """
    problems = []
    missing = manifest.ids[~found]
    if len(missing):
        problems.append(
            f"{len(missing)} of {len(manifest)} images are missing from "
            f"{where}, first: {', '.join(missing[:MAX_NAMED])}"
        )
    problems += count_problems(manifest, facts.counts)
    if problems and not allow_partial:
        raise UsageError(
            f"`{facts.name}` is incomplete: {'; '.join(problems)}. Run "
            f"`keras-dml prepare {facts.name} --data-dir DIR`, or go on with "
            "what is there by --set data.allow_partial=true."
        )
    if not problems:
        return manifest
    if not found.any():
        raise UsageError(
            f"`{facts.name}` has no image at all in {where}. Received: "
            f"{len(manifest)} names and no file. Run `keras-dml prepare "
            f"{facts.name} --data-dir DIR`."
        )
    kept = manifest.select(np.flatnonzero(found))
    return dataclasses.replace(kept, partial=True)


def count_problems(
    manifest: Manifest, expected: Mapping[str, int]
) -> list[str]:
    """Sentences on counts that are not those of the published set."""
    counts = count(manifest)
    return [
        f"{counts[key]} {key.replace('_', ' ')} listed instead of {number}"
        for key, number in expected.items()
        if counts[key] != number
    ]


def count(manifest: Manifest) -> dict[str, int]:
    """Images and classes, in all and of each split and role."""
    counts = {"images": len(manifest), "classes": manifest.num_classes}
    for split in ("train", "test"):
        rows = manifest.split == split
        counts[f"{split}_images"] = int(rows.sum())
        counts[f"{split}_classes"] = len(np.unique(manifest.labels[rows]))
    for role in ("query", "gallery"):
        counts[f"{role}_images"] = int((manifest.role == role).sum())
    return counts
