"""Times of calls, taken in turns."""

import time

from keras_dml.export.latencies import latencies


def test_the_slower_call_takes_longer():
    times = latencies(
        {"slow": lambda: time.sleep(0.02), "fast": lambda: time.sleep(0.002)},
        seconds=0.05,
    )
    assert list(times) == ["slow", "fast"]
    assert times["slow"] > 20
    assert 2 < times["fast"] < times["slow"]


def test_calls_take_turns_after_a_warm_up():
    calls = []
    latencies(
        {name: lambda name=name: calls.append(name) for name in "ab"},
        seconds=0.0,
    )
    # One call each to warm up, then the fewest rounds.
    assert calls == ["a", "b"] * 4
