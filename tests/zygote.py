"""Starts commands as forks of a process that has imported all they need.

Imports are most of the time of a short command. Nothing of this package is
imported before the fork, and TensorFlow has not started any thread: so a fork
differs from `python -m MODULE` in its time only.
"""

import atexit
import functools
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = (
    "tensorflow",
    "keras",
    "matplotlib.figure",
    "PIL.Image",
    "scipy.stats",
    "sklearn.cluster",
    "typer",
)
# More than the arguments and the environment of a command.
LARGEST = 2**20


class Forked:
    """What `subprocess.Popen` is for `python -m MODULE WORDS`.

    Args:
        module: The module that runs.
        *words: Its arguments.
        cwd: The folder that it runs in. Defaults to the current one.
        env: Its environment. Defaults to that of this process.
        stdin, stdout, stderr: Files. They default to those of this process.
            `stdin` may be `subprocess.PIPE`.

    Attributes:
        stdin: The pipe, or `None`.
        pid: The process, the leader of a session of its own.
        returncode: Its exit code, negative for a signal; `None` while it runs.
    """

    def __init__(
        self,
        module,
        *words,
        cwd=None,
        env=None,
        stdin=None,
        stdout=None,
        stderr=None,
    ):
        if env and env.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
            raise ValueError("Keras has its backend already.")
        reader, writer = os.pipe()
        self.stdin = None
        if stdin == subprocess.PIPE:
            read, write = os.pipe()
            stdin, self.stdin = os.fdopen(read), os.fdopen(write, "wb")
        request = {
            "module": module,
            "words": list(map(str, words)),
            "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
        }
        streams = [
            default if file is None else file.fileno()
            for default, file in enumerate((stdin, stdout, stderr))
        ]
        socket.send_fds(
            _zygote(), [json.dumps(request).encode()], [writer, *streams]
        )
        os.close(writer)
        if self.stdin is not None:
            stdin.close()
        self._answers = os.fdopen(reader)
        self.pid = int(self._answers.readline())
        os.set_blocking(reader, False)
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            line = self._answers.readline()
            if line:
                self.returncode = int(line)
                self._answers.close()
        return self.returncode

    def wait(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.02)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _popen(arguments, **options):
    python, flag, *words = arguments
    assert (python, flag) == (sys.executable, "-m"), arguments
    return Forked(*words, **options)


# Takes the place of `subprocess` in a module that starts this package.
FORKING = types.SimpleNamespace(
    Popen=_popen,
    PIPE=subprocess.PIPE,
    TimeoutExpired=subprocess.TimeoutExpired,
)


def run(module, *words, together=False, **options):
    """Runs a module to its end, as `subprocess.run` does.

    `together` is whether the errors are a part of the output.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        files = {"stdout": out, "stderr": out if together else err}
        with open(os.devnull) as nothing:
            process = Forked(module, *words, stdin=nothing, **files, **options)
        code = process.wait()
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode("utf-8", "replace"))
    return subprocess.CompletedProcess(module, code, *printed)


def start():
    """Starts the zygote now; forks of this process share it."""
    _zygote()


def fork_trainings():
    """Lets this process start trainings as forks too."""
    from keras_dml.run import processes

    processes.subprocess = FORKING


@functools.cache
def _zygote():
    """Starts the zygote of this process, and returns the socket to it."""
    own, other = _socket_pair()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.zygote", str(other.fileno())],
        pass_fds=[other.fileno()],
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        # As commands set it before they import TensorFlow.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    other.close()

    starter = os.getpid()

    def end():
        if os.getpid() == starter:
            own.close()
            process.wait()

    atexit.register(end)
    return own


def _socket_pair():
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
    return own, other


def _become(request, streams):
    """Turns this process into the one of a request."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Those of Python are of the files that were there before.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode = "w" if number else "r"
        lines = number == 2 or os.isatty(number)
        file = open(number, mode, 1 if lines else -1, closefd=False)  # noqa: SIM115
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if "PYTHONWARNINGS" in os.environ:
        warnings.simplefilter(os.environ["PYTHONWARNINGS"])
    time.tzset()
    # As `python -m` has it; this package need not be installed.
    sys.path[:1] = [request["cwd"], str(ROOT)]
    sys.argv = [request["module"], *request["words"]]


def _keep(answers):
    """Starts a process, and tells its number and how it ended; forks twice.

    Returns in the new process only.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        os.close(answers)
        os.setsid()
        return
    os.write(answers, f"{process}\n".encode())
    _, status = os.waitpid(process, 0)
    os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _serve(requests):
    """Returns the module that this process, a fork, is to run; or `None`.

    Also the forks ask for processes, by a socket that they share.
    """
    # Nobody waits for those that keep the processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    inner, outer = _socket_pair()
    while True:
        asked, *_ = select.select([requests, inner], [], [])
        message, streams, _, _ = socket.recv_fds(asked[0], LARGEST, 4)
        if not message:
            return None
        if os.fork() == 0:
            requests.close()
            inner.close()
            _keep(streams[0])
            _become(json.loads(message), streams[1:])
            # This module is `__main__` here; others import it by its name.
            known = importlib.import_module("tests.zygote")
            known._zygote = lambda: outer
            known.fork_trainings()
            return sys.argv[0]
        for stream in streams:
            os.close(stream)


def _main():
    requests = socket.socket(fileno=int(sys.argv[1]))
    for name in HEAVY:
        importlib.import_module(name)
    return _serve(requests)


if __name__ == "__main__":
    module = _main()
    if module is not None:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
