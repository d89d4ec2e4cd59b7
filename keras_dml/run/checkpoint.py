"""Saves the exact state of a run: every variable, and values for JSON.

The weight files of Keras leave out the state of random layers and, with
`MultiOptimizer` under `tf.train.Checkpoint`, the optimizer slots. A run needs
all of them to continue bit for bit.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from keras import ops

from keras_dml import distribute
from keras_dml.errors import RunError, reason_of
from keras_dml.files import replacing
from keras_dml.npz import open_npz

_DOCUMENT = "document"
_ADVICE = "Restore it, or choose another `output`."


@dataclass(frozen=True)
class Checkpoint:
    """Holds the variables of a checkpoint by group, and its state.

    Attributes:
        values: Per group, one array per variable in the order of saving.
        paths: Per group, the path of each variable.
        state: JSON-able dict.
    """

    values: dict[str, list[np.ndarray]]
    paths: dict[str, list[str]]
    state: dict[str, Any]

    def restore(self, group: str, variables: Sequence[Any]) -> None:
        """Assigns the values of a group to corresponding variables.

        Raises:
            RunError: If number, names or shapes differ from what was saved.
        """
        paths = [variable.path for variable in variables]
        if paths != self.paths.get(group):
            saved = self.paths.get(group, [])
            different = sorted(set(paths) ^ set(saved))[:4]
            raise RunError(
                f"The checkpoint does not fit the {group}: it holds "
                f"{len(saved)} variables, {len(paths)} were expected; "
                f"different: {different or 'only their order'}. The run was "
                "started with another configuration or another version. "
                f"{_ADVICE}"
            )
        for variable, value in zip(variables, self.values[group], strict=True):
            if tuple(variable.shape) != value.shape:
                raise RunError(
                    f"The checkpoint does not fit the {group}: variable "
                    f"{variable.path} has shape {tuple(variable.shape)}, "
                    f"saved was {value.shape}. {_ADVICE}"
                )
            try:
                variable.assign(value)
            except (TypeError, ValueError) as error:
                raise RunError(
                    f"The checkpoint does not fit the {group}: variable "
                    f"{variable.path} is {variable.dtype}, saved was "
                    f"{value.dtype}. {_ADVICE}"
                ) from error


def save_checkpoint(
    path: Path,
    groups: Mapping[str, Sequence[Any]],
    state: Mapping[str, Any] | None = None,
) -> None:
    """Writes variables and state to one file, in one step.

    All workers must call it, because reading the variable of a metric sums it
    over the workers. Only the chief writes.

    Args:
        path: The file to write or replace.
        groups: Keras variables by group, such as `model` and `optimizer`, in
            the order in which rebuilding makes them.
        state: JSON-able dict. Defaults to `None`, an empty dict.
    """
    document = {
        "paths": {
            group: [variable.path for variable in variables]
            for group, variables in groups.items()
        },
        "state": dict(state or {}),
    }
    arrays = {
        f"{group}/{number}": ops.convert_to_numpy(variable)
        for group, variables in groups.items()
        for number, variable in enumerate(variables)
    }
    if not distribute.is_chief():
        return
    arrays[_DOCUMENT] = np.array(json.dumps(document))
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint.

    All workers must call it; the chief reads the file for all.

    Raises:
        RunError: If the file is missing, damaged or not a checkpoint.
    """
    if distribute.num_workers() > 1:
        payload = distribute.together(lambda: _payload(path))
        content = distribute.gather_bytes(payload)[0]
        return _read(io.BytesIO(content), path)
    try:
        with open(path, "rb") as file:
            return _read(file, path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _payload(path: Path) -> bytes:
    if not distribute.is_chief():
        return b""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _read(file: IO[bytes], path: Path) -> Checkpoint:
    try:
        with open_npz(file) as stored:
            document = json.loads(str(stored[_DOCUMENT]))
            paths = {
                group: [str(one) for one in names]
                for group, names in document["paths"].items()
            }
            values = {
                group: [stored[f"{group}/{n}"] for n in range(len(names))]
                for group, names in paths.items()
            }
            return Checkpoint(values, paths, dict(document["state"]))
    # Damaged bytes raise errors of many kinds in NumPy, zipfile and zlib.
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(
        f"{path} is not a readable checkpoint: {reason_of(error)}. {_ADVICE}"
    )
