"""Processes that take turns: the two sides of a comparison.

A request is the name of a method and its arguments as JSON. An answer is one
line of JSON. This module imports nothing but numpy, because the sides run in
environments of their own.
"""

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def answer(side):
    """Answers with what the methods of `side` return until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    # What a library prints must not look like an answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        method, arguments, options = json.loads(line)
        returned = getattr(side, method)(*arguments, **options)
        print(json.dumps(returned), file=answers, flush=True)


class Steps:
    """Answers about single training steps, each of a case and a mode.

    Args:
        make_step: Function of a case, a mode and the arrays that returns a
            step: a function of nothing that runs forward and backward, and
            returns the loss and its gradients.
        peak_growth: Function of a step that returns the bytes it holds at
            most beyond those held before it, or `None` if it cannot tell.
        to_numpy: Function of an array of the side that returns it as numpy's.
    """

    def __init__(self, make_step, peak_growth, to_numpy):
        arrays = np.load(sys.argv[1])
        self.step = functools.cache(functools.partial(make_step, arrays=arrays))
        self.peak_growth = peak_growth
        self.to_numpy = to_numpy

    def check(self, case, mode):
        """The norms of loss and gradients."""
        parts = self.step(case, mode)()
        return [float(np.linalg.norm(self.to_numpy(part))) for part in parts]

    def memory(self, case, mode):
        step = self.step(case, mode)
        step()
        return self.peak_growth(step)

    def time(self, case, mode, seconds):
        return _times(self.step(case, mode), seconds)


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

    def ask(self, method, *arguments, **options):
        request = method, arguments, options
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
