"""Processes that take turns: the two sides of a comparison.

A request is `{"do": "check" | "time" | "memory", "case": name, "mode": name}`
as JSON, for `"time"` with the `"seconds"` it should take. An answer is one
line of JSON. This module imports nothing but numpy, because the sides run in
environments of their own.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def serve(make_step, peak_growth):
    """Answers until the input ends.

    Args:
        make_step: Function of a case, a mode and the arrays that returns a
            step: a function of nothing that runs forward and backward, and
            returns the loss and its gradients.
        peak_growth: Function of a step that returns the bytes it holds at
            most beyond those held before it, or `None` if it cannot tell.
    """
    answers = os.fdopen(os.dup(1), "w")
    # What a library prints must not look like an answer.
    os.dup2(2, 1)
    arrays = np.load(sys.argv[1])
    steps = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = request["case"], request["mode"]
        if key not in steps:
            steps[key] = make_step(*key, arrays)
        answer = _answer(steps[key], request, peak_growth)
        print(json.dumps(answer), file=answers, flush=True)


def _answer(step, request, peak_growth):
    if request["do"] == "check":
        return [float(np.linalg.norm(part)) for part in step()]
    if request["do"] == "memory":
        step()
        return peak_growth(step)
    return _times(step, request["seconds"])


def _times(step, seconds, at_least=4):
    """Wall and processor seconds of each step, the first a warm-up."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        wall, processor = time.perf_counter(), time.process_time()
        step()
        times.append(
            (time.perf_counter() - wall, time.process_time() - processor)
        )
    return times


class Side:
    """A process that answers one request at a time, as its parent sees it."""

    def __init__(self, python, script, arrays, threads, **environment):
        environment = {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "OMP_NUM_THREADS": str(threads),
            **environment,
        }
        self.process = subprocess.Popen(
            [python, Path(__file__).parent / script, arrays],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, do, case, mode, **arguments):
        request = {"do": do, "case": case, "mode": mode, **arguments}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"The process ended on the request {request}.")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
