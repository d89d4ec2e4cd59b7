"""Starts one training of a plan in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from keras_dml.config import RunConfig, dump_run_config
from keras_dml.files import write_text


def start_run(
    config: RunConfig, folder: Path, log: Path, threads: int | None = None
) -> subprocess.Popen:
    """Starts a training, or goes on with one that was interrupted.

    A process for each: what one does to memory, seeds or the machine's
    devices, or its crash, leaves the others alone. It stops by itself, saved,
    when its starter is gone.

    Args:
        config: The configuration of the run.
        folder: The run folder.
        log: File to which all output is appended.
        threads: How many cores it may use. Defaults to `None`, all.

    Returns:
        The process. Exit codes: 0 finished, 143 stopped by SIGTERM and saved,
        74 the disk is full, 2 a wrong setting, 1 anything else.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    settings = log.with_suffix(".yaml")
    write_text(settings, dump_run_config(config))
    environment = {
        **os.environ,
        "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", "ignore"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    if threads is not None:
        environment["TF_NUM_INTRAOP_THREADS"] = str(threads)
        environment["TF_NUM_INTEROP_THREADS"] = str(threads)
        environment["OMP_NUM_THREADS"] = str(threads)
    with open(log, "ab") as output:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "keras_dml.comparison.job",
                str(settings),
                str(folder),
            ],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
        )
