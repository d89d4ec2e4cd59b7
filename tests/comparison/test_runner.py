import os
import signal
import threading
import time

import pytest

from keras_dml.comparison.job import DISK_FULL
from keras_dml.comparison.runner import Runner
from keras_dml.errors import RunError
from tests.comparison.scripted import Scripts, some_jobs

WAIT = "import time; time.sleep(60)"


def names(jobs):
    return [job.run for job in jobs]


@pytest.mark.parametrize("processes", [1, 3])
def test_every_run_is_trained_once(tmp_path, processes):
    jobs, start, done = some_jobs(5), Scripts(), []
    runner = Runner(
        tmp_path, processes, lambda job, seconds: done.append(job.run), start
    )
    runner.run(jobs)
    assert sorted(start.started) == sorted(done) == sorted(names(jobs))
    assert all(runner.run_folder(job).finished for job in jobs)
    assert not runner.failed


def test_runs_that_end_together_are_told_one_after_the_other(tmp_path):
    """Who hears of them writes one file."""
    inside, most = 0, 0

    def on_done(job, seconds):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.05)
        inside -= 1

    Runner(tmp_path, 4, on_done, Scripts()).run(some_jobs(8))
    assert most == 1


def test_a_failure_to_write_is_not_taken_for_a_full_disk(tmp_path):
    def on_done(job, seconds):
        raise PermissionError(13, "Permission denied", "results.csv")

    with pytest.raises(RunError, match="Permission denied.*results.csv") as e:
        Runner(tmp_path, 1, on_done, Scripts()).run(some_jobs(2))
    assert "free some space" not in str(e.value)


def test_what_is_finished_is_not_trained_again(tmp_path):
    jobs = some_jobs(4)
    Runner(tmp_path, start=Scripts()).run(jobs[:2])
    start, seconds = Scripts(), {}
    Runner(
        tmp_path, 1, lambda job, took: seconds.update({job.run: took}), start
    ).run(jobs)
    assert start.started == names(jobs[2:])
    assert [seconds[name] for name in names(jobs[:2])] == [0.0, 0.0]


def test_equal_runs_are_trained_once(tmp_path):
    (job,) = some_jobs(1)
    start = Scripts()
    Runner(tmp_path, start=start).run([job, job])
    assert start.started == [job.run]


def test_a_failed_run_is_reported_and_stops_no_other(tmp_path):
    jobs = some_jobs(3)
    fails = "import sys; print('Error: The loss is nan.'); sys.exit(1)"
    start = Scripts(Scripts.FINISH, fails, Scripts.FINISH)
    runner = Runner(tmp_path, start=start)
    runner.run(jobs)
    assert runner.failed == {jobs[1].run: "The loss is nan."}
    assert runner.run_folder(jobs[2]).finished


def test_a_killed_run_says_by_what(tmp_path):
    (job,) = some_jobs(1)
    kills = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    runner = Runner(tmp_path, start=Scripts(kills))
    runner.run([job])
    assert runner.failed == {job.run: "killed by SIGKILL"}


def test_a_silent_failure_has_its_exit_code(tmp_path):
    (job,) = some_jobs(1)
    runner = Runner(tmp_path, start=Scripts("raise SystemExit(7)"))
    runner.run([job])
    assert runner.failed == {job.run: "exit 7"}


def test_a_full_disk_stops_the_plan_and_keeps_what_is_finished(tmp_path):
    jobs = some_jobs(4)
    full = f"raise SystemExit({DISK_FULL})"
    start = Scripts(Scripts.FINISH, full)
    runner = Runner(tmp_path, start=start)
    with pytest.raises(RunError, match="The disk is full, in the run digits"):
        runner.run(jobs)
    assert len(start.started) == 2
    assert runner.run_folder(jobs[0]).finished


def test_a_log_that_cannot_be_written_stops_the_plan(tmp_path):
    def start(*arguments):
        raise OSError(28, "No space left on device", "run.log")

    with pytest.raises(RunError, match="No space left on device"):
        Runner(tmp_path, 2, start=start).run(some_jobs(3))


def test_cores_are_shared_out(tmp_path):
    start = Scripts()
    Runner(tmp_path, 2, start=start).run(some_jobs(2))
    assert start.threads == [max(1, os.cpu_count() // 2)] * 2
    alone = Scripts()
    Runner(tmp_path / "one", 1, start=alone).run(some_jobs(1))
    assert alone.threads == [None]


@pytest.fixture
def interruptible():
    """Ctrl-C as in a shell; a process in its background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_trainings_and_waits_for_them(tmp_path, number):
    jobs, start, ended = some_jobs(4), Scripts(WAIT), []

    class Slow(Runner):
        """What a thread does after its process has ended takes a while."""

        def _train(self, job):
            super()._train(job)
            time.sleep(0.3)
            ended.append(job.run)

    runner = Slow(tmp_path, 2, start=start)

    def interrupt():
        while len(runner._running) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        runner.run(jobs)
    assert time.perf_counter() - started < 30
    assert len(start.started) == len(ended) == 2
    assert not runner._running
    assert not runner.failed
