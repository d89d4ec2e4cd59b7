"""How long calls take on this machine."""

import time
from collections.abc import Callable, Mapping

import numpy as np

TIMED_BATCHES = (1, 32)
FEWEST_ROUNDS = 3
MOST_ROUNDS = 30


def latencies(
    calls: Mapping[str, Callable[[], object]], seconds: float = 0.5
) -> dict[str, float]:
    """Measures the median time of each call, in turns.

    The turns spread the other load of the machine evenly over all calls. Each
    function is called once before, to warm up.

    Args:
        calls: Dict of name to function.
        seconds: Approximate time to measure, per call. At least 3 and at most
            30 rounds are measured. Defaults to `0.5`.

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
