"""Checks image files before they are used, and explains why one fails."""

import contextlib
import dataclasses
import logging
import os
import re
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
from PIL import UnidentifiedImageError

from keras_dml.data.decoding import MAX_SCANS, decode, traced_decode
from keras_dml.data.fixed_parallelism import fixed_parallelism
from keras_dml.data.image_file import MAX_PIXELS, reason_unopened
from keras_dml.data.manifest import Manifest
from keras_dml.errors import RunError, UsageError
from keras_dml.files import readable
from keras_dml.wording import percent

logger = logging.getLogger(__name__)

MAX_NAMED = 5
VERIFY_BATCH = 256
_told: set[tuple[str, str]] = set()
# Hashes of the files, as they are, that this process has decoded.
_decoded: set[int | None] = set()
# Reading a file that vanished or changed raises these.
_BROKEN = (
    tf.errors.NotFoundError,
    tf.errors.InvalidArgumentError,
    tf.errors.FailedPreconditionError,
    tf.errors.UnknownError,
    FileNotFoundError,
    UnidentifiedImageError,
)
# Matches the messages of TensorFlow, `decode` and Pillow.
_TOO_LARGE = re.compile(r"(?:too many pixels\D+|Image size \()(\d+)")


@dataclasses.dataclass(frozen=True)
class Verification:
    """The result of checking all files.

    Args:
        rows: int64 array, the rows of the manifest whose file decodes.
        bad: Tuple of pairs of a path and the reason why it does not decode.
    """

    rows: np.ndarray
    bad: tuple[tuple[str, str], ...]


def verify(
    manifest: Manifest,
    progress: Callable[[int, int], None] | None = None,
    again: bool = False,
) -> Verification:
    """Decodes every file once, as training will.

    A file that this process has decoded, and that has the same size and time
    of change, is not decoded again: a run reads its images several times.

    Args:
        manifest: `Manifest`. If it has `images` instead of files, all rows
            are good.
        progress: Function of (files done, total files), called after each
            batch of good files and at the end. Defaults to `None`.
        again: Boolean, whether to decode all files again. Defaults to `False`.

    Returns:
        `Verification`.
    """
    if manifest.paths is None:
        return Verification(np.arange(len(manifest)), ())
    total = len(manifest)
    good = np.zeros(total, dtype=bool)
    paths = manifest.paths.tolist()
    whole = [row for row in range(total) if not reason_unopened(paths[row])]
    keys = {row: _key(paths[row]) for row in whole}
    if not again:
        known = [row for row in whole if keys[row] in _decoded]
        good[known] = True
        whole = [row for row in whole if not good[row]]
    names = [os.fsencode(paths[row]) for row in whole]
    rows_and_paths = (np.array(whole, np.int64), np.array(names, bytes))

    @tf.autograph.experimental.do_not_convert
    def decode_row(row, path):
        return row, _shape_of(path)

    dataset = tf.data.Dataset.from_tensor_slices(rows_and_paths).map(
        decode_row, num_parallel_calls=tf.data.AUTOTUNE
    )
    dataset = dataset.ignore_errors(log_warning=False).batch(VERIFY_BATCH)
    for rows, _ in fixed_parallelism(dataset).as_numpy_iterator():
        good[rows] = True
        if progress is not None:
            progress(int(rows[-1]) + 1, total)
    if progress is not None:
        progress(total, total)
    reasons = {row: reason_refused(paths[row]) for row in np.flatnonzero(~good)}
    # A disk that was busy may give at the second attempt what it kept back.
    good[[row for row, reason in reasons.items() if not reason]] = True
    bad = tuple(
        (readable(paths[row]), why) for row, why in reasons.items() if why
    )
    for row, key in keys.items():
        if good[row] and key is not None:
            _decoded.add(key)
        else:
            _decoded.discard(key)
    return Verification(np.flatnonzero(good), bad)


def _key(path: str) -> int | None:
    """Returns a hash of a file as it is; `None` if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    place = os.path.abspath(path)
    return hash((place, found.st_size, found.st_mtime_ns, found.st_ino))


@tf.function(input_signature=[tf.TensorSpec((), tf.string)], autograph=False)
def _shape_of(path):
    return tf.shape(traced_decode(tf.io.read_file(path)))


def drop_bad(
    manifest: Manifest,
    limit: float = 0.01,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
    """Leaves out the files that do not decode, if they are few.

    Logs each of them as a warning, once in a process: a run reads its images
    again to export itself and to draw its page.

    Args:
        manifest: `Manifest`.
        limit: Float in [0, 1], the largest part of the files that may be
            bad. Defaults to `0.01`.
        progress: As for `verify`. Defaults to `None`.

    Returns:
        `Manifest` of the good files.

    Raises:
        UsageError: If a larger part is bad.
    """
    verification = verify(manifest, progress)
    bad = verification.bad
    if not bad:
        return manifest
    if len(bad) > limit * len(manifest):
        named = "; ".join(f"{path} ({why})" for path, why in bad[:MAX_NAMED])
        raise UsageError(
            f"At most {percent(limit)} of the images of {manifest.name!r} may "
            f"be unreadable. Received: {len(bad)} of {len(manifest)} "
            f"unreadable, first: {named}. Repair, replace or delete them."
        )
    known = {(os.path.abspath(path), why) for path, why in bad}
    if not known <= _told:
        for path, why in bad:
            logger.warning("Left out %s: %s", path, why)
        if len(bad) > 1:
            logger.warning(
                "Left out %d unreadable of %d images.", len(bad), len(manifest)
            )
    _told.update(known)
    return manifest.select(verification.rows)


@contextlib.contextmanager
def naming_broken(*manifests: Manifest) -> Iterator[None]:
    """Names the images that break in the block.

    They were checked before, but may change or vanish while they are used.

    Raises:
        RunError: If reading an image failed; names the first.
    """
    try:
        yield
    except _BROKEN as error:
        checked = [verify(images, again=True) for images in manifests]
        bad = [one for images in checked for one in images.bad]
        if not bad:
            raise
        named = "; ".join(f"{path} ({why})" for path, why in bad[:MAX_NAMED])
        raise RunError(
            f"{len(bad)} images changed or vanished while they were used, "
            f"first: {named}. Restore them and start again; a training goes "
            "on with `resume=True`."
        ) from error


def reason_refused(path: str, max_pixels: int = MAX_PIXELS) -> str:
    """Says in a few words why a file does not decode; `""` if it does.

    Args:
        path: The file.
        max_pixels: As for `decode`. Defaults to 89,478,485.
    """
    problem = reason_unopened(path)
    if problem:
        return problem
    try:
        with open(path, "rb") as file:
            return why_refused(file.read(), max_pixels)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def why_refused(contents: bytes, max_pixels: int = MAX_PIXELS) -> str:
    """Says in a few words why the bytes of a file do not decode, or `""`.

    Args:
        contents: The bytes of the file.
        max_pixels: As for `decode`. Defaults to 89,478,485.
    """
    if not contents:
        return "the file is empty"
    try:
        # Not the traced one, which puts its nodes in front of the reason.
        decode(tf.constant(contents), max_pixels=max_pixels)
    except Exception as error:
        message = str(error)
        if "cannot identify image file" in message:
            return "it is not an image of a known format"
        if "too many scans" in message:
            return (
                f"it has more than {MAX_SCANS} scans, each of which goes over "
                "all pixels"
            )
        too_large = _TOO_LARGE.search(message)
        if too_large:
            return (
                f"it has {int(too_large[1]):,} pixels, more than the limit of "
                f"{max_pixels:,}"
            )
        last = str(getattr(error, "message", error)).split("}} ")[-1]
        first_line = last.strip().splitlines()[0]
        return first_line.partition(" [Op:")[0].removesuffix(".")
    return ""
