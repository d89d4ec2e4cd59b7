"""Several workers as real processes on the loopback address."""

import contextlib
import json
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

from tests.zygote import ROOT, Forked

# Two cores may be shared with much else.
PATIENCE = 600


def free_addresses(count):
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            for _ in range(count)
        ]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in servers]


def free_ports(count):
    """The first of some ports in a row that are free."""
    for first in range(23400, 32000, count):
        with ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("", port)))
            return first
    raise OSError("no free ports")


class Workers:
    """Starts workers; ends them with the block.

    Args:
        folder: Where each worker's output goes.
        commands: For each worker the arguments of `python -m`.
        environments: For each worker additional variables.
    """

    def __init__(self, folder: Path, commands, environments=None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        environments = environments or [{}] * len(commands)
        self.addresses = free_addresses(len(commands))
        self.files = [folder / f"{i}.txt" for i in range(len(commands))]
        self.processes = []
        for index, command in enumerate(commands):
            config = {
                "cluster": {"worker": self.addresses},
                "task": {"type": "worker", "index": index},
            }
            with open(self.files[index], "w") as file:
                self.processes.append(
                    Forked(
                        *command,
                        stdout=file,
                        stderr=file,
                        cwd=ROOT,
                        env={
                            **os.environ,
                            "TF_CONFIG": json.dumps(config),
                            # The tests' own chooses of devices is not theirs.
                            "CUDA_VISIBLE_DEVICES": "",
                            **environments[index],
                        },
                    )
                )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            process.kill()
            process.wait()

    def codes(self, which=None):
        """Exit codes of the workers, or of some, once they have ended."""
        end = time.monotonic() + PATIENCE
        chosen = self.processes if which is None else which
        return [
            one.wait(timeout=max(0.1, end - time.monotonic())) for one in chosen
        ]

    def output(self, index):
        """What a worker printed."""
        return self.files[index].read_text()
