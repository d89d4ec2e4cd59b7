"""Runs commands in forked processes, and lets a fault strike at a write.

`Server` starts `python -m tests.forking`. That imports everything once, which
is most of the time of a short command, and then forks for each request that it
reads, a line of JSON with

    arguments   words after `keras-dml`
    folder      where writes are counted
    fault       one of `FAULTS`, or null
    disk        what is full from then on, if the fault is "full"
    write       the number of the write at which the fault strikes, from 1
    seconds     after which SIGALRM ends the process
    out, err    paths of the files for what the command prints
    trace       path of the file for one line a write

It answers each with a line of JSON: the exit code, negative for a signal.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib.figure  # noqa: F401
import numpy as np
import sklearn.cluster  # noqa: F401

import keras_dml.api  # noqa: F401
from keras_dml import cli
from keras_dml.distribute import workers  # noqa: F401
from tests import zygote
from tests.disks import fill

ROOT = Path(__file__).resolve().parents[1]
# No command takes as long, on a busy machine too, unless it hangs.
LONGEST = 900.0
FAULTS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "interrupt": signal.SIGINT,
    "stop": signal.SIGSTOP,
    # Not a signal: the disk has no room for a byte more, nor for a name.
    "full": None,
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# What changes a folder, by the names of Python's audit events. Only the first
# two need room on a disk.
GROWING = ("open", "os.mkdir")
CHANGES = (*GROWING, "os.rename", "os.remove", "os.rmdir", "os.truncate")


class Server:
    """Commands in processes that are forked from one that imported all.

    Args:
        folder: Where files of the server go.
        hashing: Integer, the seed that orders the sets of its commands.
            Defaults to `1`.
    """

    def __init__(self, folder, hashing=1):
        self.paths = {name: folder / name for name in ("out", "err", "trace")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hashing)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, place, words, fault=None, write=0, seconds=LONGEST):
        """Returns the `Outcome` of a command."""
        request = {
            "arguments": list(map(str, words)),
            "folder": str(place),
            "fault": fault,
            "disk": str(place.parent),
            "write": write,
            "seconds": seconds,
            **{name: str(path) for name, path in self.paths.items()},
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())
        printed = {
            name: path.read_text(errors="replace")
            for name, path in self.paths.items()
        }
        writes = printed.pop("trace").splitlines()
        return Outcome(code, writes=writes, **printed)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The exit code of a command, what it printed, and its writes by line."""

    code: int
    out: str
    err: str
    writes: list[str]

    @property
    def end(self):
        return self.code, self.out[-1000:], self.err[-2000:]


def strike_at(request, trace):
    """Counts the changes below a folder; the fault comes before one of them."""
    folder = os.path.abspath(request["folder"])
    struck = os.getpid()
    count = 0

    def is_below(path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        path = os.path.abspath(os.fsdecode(path))
        return path == folder or path.startswith(folder + os.sep)

    def watch(event, arguments):
        nonlocal count
        if event not in CHANGES or os.getpid() != struck:
            return
        if not is_below(arguments[0]):
            return
        if event == "open" and not arguments[2] & WRITING:
            return
        count += 1
        os.write(trace, f"{event} {os.fsdecode(arguments[0])}\n".encode())
        if request["fault"] is None or count != request["write"]:
            return
        if request["fault"] == "full":
            fill(request["disk"])
        else:
            os.kill(os.getpid(), FAULTS[request["fault"]])

    sys.addaudithook(watch)


def become(request):
    """Turns this process into the command of a request."""
    os.setsid()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(request["out"], flags), 1)
    os.dup2(os.open(request["err"], flags), 2)
    trace = os.open(request["trace"], flags)
    strike_at(request, trace)
    # Nobody handles this signal: it ends a process at once, wherever it is.
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    # The state of this generator was forked too, and would draw the same for
    # every command.
    np.random.seed()
    zygote.fork_trainings()
    sys.argv = ["keras-dml", *request["arguments"]]


def wait_for(process):
    """Waits for the end of a process; one that was stopped goes on."""
    while True:
        _, status = os.waitpid(process, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.kill(process, signal.SIGCONT)


def main():
    zygote.start()
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            become(request)
            cli.main()
            return
        print(json.dumps(wait_for(process)), flush=True)


if __name__ == "__main__":
    main()
