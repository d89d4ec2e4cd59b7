"""Damages bytes at random, as disks, transfers and fuzzers do."""

import numpy as np


def mutated(content: bytes, seed: int) -> bytes:
    """Returns the content with one to four random changes.

    The same seed gives the same changes.
    """
    rng = np.random.default_rng(seed)
    for _ in range(rng.integers(1, 5)):
        content = rng.choice(CHANGES)(content, rng)
    return content


def flipped(content: bytes, seed: int) -> bytes:
    """Returns the content with one to eight bits flipped."""
    return _flip(content, np.random.default_rng(seed))


def _span(content, rng):
    start, stop = np.sort(rng.integers(0, len(content) + 1, 2)).tolist()
    return start, min(stop, start + 64)


def _flip(content, rng):
    changed = bytearray(content)
    for place in rng.integers(0, len(content), rng.integers(1, 9)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(content, rng):
    return content[: max(1, int(rng.integers(len(content) + 1)))]


def _leave_out(content, rng):
    start, stop = _span(content, rng)
    return content[:start] + content[stop:] or b"\0"


def _repeat(content, rng):
    start, stop = _span(content, rng)
    return content[:stop] + content[start:stop] * 3 + content[stop:]


def _overwrite(content, rng):
    start, stop = _span(content, rng)
    value = b"\0\xff9-["[rng.integers(5)]
    return content[:start] + bytes([value]) * (stop - start) + content[stop:]


CHANGES = [_flip, _cut, _leave_out, _repeat, _overwrite]
