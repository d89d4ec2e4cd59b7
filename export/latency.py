"""How long calls take on this machine, side by side."""

import time
from collections.abc import Callable, Mapping

import numpy as np

FEWEST_ROUNDS = 3
MOST_ROUNDS = 100


def latencies(
    calls: Mapping[str, Callable[[], object]], seconds: float = 1.0
) -> dict[str, float]:
    """Median time of each call, the calls taken in turns.

    So whatever else the machine does falls on all of them alike. Each is
    called once before, to warm up.

    Args:
        calls: Dict of name to function.
        seconds: About how long to measure, per call. At least 3 rounds and at
            most 100 are measured. Defaults to `1.0`.

    Returns:
        Dict of name to milliseconds.

    Example:

    >>> sorted(latencies({"a": lambda: 1, "b": lambda: 2}, seconds=0.01))
    ['a', 'b']
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    for done in range(MOST_ROUNDS):
        passed = time.perf_counter() - start
        if done >= FEWEST_ROUNDS and passed > seconds * len(calls):
            break
        for name, call in calls.items():
            before = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - before)
    return {name: 1e3 * float(np.median(row)) for name, row in times.items()}
