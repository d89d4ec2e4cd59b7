"""What of a run is uploaded, under which names."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_dml.config import RunConfig, dump_run_config
from keras_dml.console import logger
from keras_dml.data import readers
from keras_dml.errors import UsageError
from keras_dml.export.artifact import REJECTED, ExportFolder, read_manifest
from keras_dml.export.gallery import holds_gallery
from keras_dml.push.card import model_card
from keras_dml.run.folder import PATHS
from keras_dml.run.trained_run import TrainedRun
from keras_dml.wording import without_folders

CARD = "README.md"
# `export`, and one for each further size of the embeddings.
EXPORTS = re.compile(r"(export(?:-\d+)?/[^/]+)/")
# Texts that an export takes from its run.
NAMES = ("recipe", "backbone")


def files_of(
    run: TrainedRun, repository: str, license_name: str | None
) -> dict[str, Path | bytes]:
    """Returns the content of each file of a repository, by its path there.

    Args:
        run: The run.
        repository: `"OWNER/NAME"`.
        license_name: The Hub's identifier of a license, or `None`.

    Raises:
        UsageError: If a file is a link out of the run, or an export names a
            folder of this machine.
    """
    folder, exports = run.folder, _exports(run)
    metrics = _public_names(run.metrics)
    config = _without_paths(run, metrics)
    card = model_card(config, metrics, repository, [*exports], license_name)
    files: dict[str, Path | bytes] = {
        CARD: card.encode(),
        folder.record.name: dump_run_config(config).encode(),
        folder.metrics.name: json.dumps(metrics, indent=2).encode(),
    }
    paths = [folder.embedder, *folder.path.glob("thresholds*.json")]
    if folder.history.is_file():
        paths.append(folder.history)
    for place in exports.values():
        paths += filter(Path.is_file, sorted(place.rglob("*")))
    for path in paths:
        place = path.resolve()
        if not place.is_relative_to(folder.path.resolve()):
            raise UsageError(
                f"{path} must be a file of the run. Received: a link to "
                f"{place}. Replace it by the file, or remove it."
            )
        files[path.relative_to(folder.path).as_posix()] = path
    return files


def stale(present: Iterable[str], files: Mapping[str, Any]) -> Iterator[str]:
    """Yields files of exports that an earlier push left and this one lacks.

    Args:
        present: The paths in the repository.
        files: What is uploaded, by path.
    """
    names = {*present}
    for name in sorted(names - files.keys()):
        export = EXPORTS.match(name)
        if export and f"{export[1]}/manifest.json" in names:
            yield name


def _exports(run: TrainedRun) -> dict[str, Path]:
    """Returns the exports that hold no gallery, by their paths in the run."""
    found = {}
    for place in sorted(run.folder.path.glob("export*/*")):
        name = place.relative_to(run.folder.path).as_posix()
        passing = place.name.startswith(".") or place.suffix == REJECTED
        if passing or not EXPORTS.match(f"{name}/"):
            continue
        if not ExportFolder(place).exists:
            continue
        manifest = read_manifest(place)
        if holds_gallery(place, manifest):
            logger.warning(
                "%s is left out: it holds the embeddings of a gallery.", place
            )
            continue
        if _public_names(manifest) != manifest:
            raise UsageError(
                f"{place} must not name a folder of this machine. Received: "
                f"{manifest['recipe']}, {manifest['backbone']}. Export the run "
                "again."
            )
        found[name] = place
    return found


def _public_names(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns facts of a run without the folders above its files."""
    names = {key: facts[key] for key in NAMES if key in facts}
    return {
        **facts,
        **{key: without_folders(name) for key, name in names.items()},
    }


def _without_paths(run: TrainedRun, metrics: Mapping[str, Any]) -> RunConfig:
    """Returns the settings without the folders above what they name."""
    config = run.folder.load_config()
    config = config.changed(
        recipe=metrics["recipe"], model={"backbone": metrics["backbone"]}
    )
    for key in PATHS:
        section, name = key.split(".")
        value = getattr(getattr(config, section), name, None)
        if value is None or readers.is_named(value):
            continue
        short = os.path.basename(value.rstrip("/"))
        if key == "data.source":
            # `.` had a name where the run trained.
            short = metrics["dataset"]
            if readers.is_named(short):
                short = f"./{short}"
        config = config.changed(**{section: {name: short}})
    return config
