"""Small file systems in memory, which only an administrator may mount."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

KIB, MIB = 2**10, 2**20
# More files than any test makes, and no size of a disk.
MANY = 10_000
_LIBC = ctypes.CDLL(None, use_errno=True)
_REMOUNT = 32
_DETACH = 2


@contextlib.contextmanager
def disk(folder: Path, size: int = MIB) -> Iterator[Path]:
    """Makes a folder that is a disk; skips the test where none can be."""
    folder.mkdir(parents=True)
    try:
        _mount(folder, 0, f"size={size}")
    except OSError as error:
        pytest.skip(f"No disk can be mounted here: {error}")
    try:
        yield folder
    finally:
        _LIBC.umount2(os.fsencode(folder), _DETACH)


def resize(folder: Path, size: int, files: int = MANY) -> None:
    """Gives a disk `size` bytes, and room for `files` files and folders."""
    _mount(folder, _REMOUNT, f"size={size},nr_inodes={files}")


def fill(folder: Path) -> None:
    """Leaves no room on a disk: not for a byte, not for an empty file."""
    now = os.statvfs(folder)
    used = (now.f_blocks - now.f_bfree) * now.f_frsize
    # A size of zero would stand for no limit.
    resize(folder, max(used, now.f_frsize), now.f_files - now.f_ffree)


def _mount(folder, flags, options):
    words = (b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode())
    if _LIBC.mount(*words):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
