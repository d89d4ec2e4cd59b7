import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.config.plans import parse_plan
from keras_dml.errors import PreemptedError, RunError, UsageError
from keras_dml.run.supervise import DISK_FULL
from tests.comparison.scripted import Scripts, some_jobs


def plan(**values):
    return parse_plan(
        {"title": "T", "sources": ["digits"], "recipes": ["ln"], **values}
    )


def test_another_plan_is_refused_and_a_larger_one_is_not(tmp_path, caplog):
    folder = PlanFolder(tmp_path / "plan")
    folder.open(plan(seeds=[0, 1]))
    folder.close()
    again = PlanFolder(tmp_path / "plan")
    assert again.grown(plan(seeds=[0, 1])).seeds == [0, 1]
    with pytest.raises(UsageError, match="`dims` was not given, received 8"):
        again.grown(plan(seeds=[0], dims=[8]))
    whole = again.grown(plan(seeds=[2]))
    assert whole.seeds == [0, 1, 2]
    with caplog.at_level("INFO"), again:
        again.open(whole)
    assert "plan: seed 2." in caplog.text
    assert PlanFolder(tmp_path / "plan").grown(plan()) == whole


def test_a_folder_that_only_knows_its_pace_is_free(tmp_path):
    (tmp_path / "estimate.json").write_text("[]")
    with PlanFolder(tmp_path) as folder:
        folder.open(plan())
    assert (tmp_path / "estimate.json").read_text() == "[]"
    assert (tmp_path / "plan.yaml").is_file()


def test_what_a_kill_leaves_of_a_pace_is_removed(tmp_path):
    left = tmp_path / ".estimate.0a1b2c3d.partial.json"
    left.write_text("[")
    os.utime(left, (0, 0))
    with PlanFolder(tmp_path) as folder:
        folder.open(plan())
    assert not left.exists()


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(UsageError, match="not the folder of a plan"):
        PlanFolder(tmp_path).open(plan())
    assert sorted(item.name for item in tmp_path.iterdir()) == ["letter.txt"]


@pytest.mark.slow
def test_two_commands_never_write_one_folder(tmp_path):
    script = (
        "import sys\n"
        "from keras_dml.config.plans import parse_plan\n"
        "from keras_dml.comparison.plan_folder import PlanFolder\n"
        "plan = {'title': 'T', 'sources': ['digits'], 'recipes': ['ln']}\n"
        "folder = PlanFolder(sys.argv[1])\n"
        "folder.open(parse_plan(plan))\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "plan")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(UsageError, match="Another process is writing"):
            PlanFolder(tmp_path / "plan").open(plan())
    finally:
        other.kill()
        other.communicate()
    # The lock ends with its holder, even a killed one.
    folder = PlanFolder(tmp_path / "plan")
    folder.open(plan())
    folder.close()


WAIT = "import time; time.sleep(60)"


def names(jobs):
    return [job.run for job in jobs]


@pytest.mark.parametrize("processes", [1, 3])
def test_every_run_is_trained_once(tmp_path, processes):
    jobs, start, done = some_jobs(5), Scripts(), []
    folder = PlanFolder(tmp_path)
    failed = folder.train(
        jobs, processes, lambda job, *_: done.append(job.run), start=start
    )
    assert sorted(start.started) == sorted(done) == sorted(names(jobs))
    assert all(folder.run(job).finished for job in jobs)
    assert not failed


def test_runs_that_end_together_are_told_one_after_the_other(tmp_path):
    """Who hears of them writes one file."""
    inside, most = 0, 0

    def on_done(job, seconds, failed):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.05)
        inside -= 1

    PlanFolder(tmp_path).train(some_jobs(8), 4, on_done, start=Scripts())
    assert most == 1


def test_a_failure_to_write_is_not_taken_for_a_full_disk(tmp_path):
    def on_done(job, seconds, failed):
        raise PermissionError(13, "Permission denied", "results.csv")

    with pytest.raises(RunError, match="Permission denied.*results.csv") as e:
        PlanFolder(tmp_path).train(some_jobs(2), 1, on_done, start=Scripts())
    assert "free some space" not in str(e.value)


def test_what_is_finished_is_not_trained_again(tmp_path):
    jobs = some_jobs(4)
    PlanFolder(tmp_path).train(jobs[:2], start=Scripts())
    start, seconds = Scripts(), {}
    PlanFolder(tmp_path).train(
        jobs,
        on_done=lambda job, took, _: seconds.update({job.run: took}),
        start=start,
    )
    assert start.started == names(jobs[2:])
    assert [seconds[name] for name in names(jobs[:2])] == [0.0, 0.0]


def test_equal_runs_are_trained_once(tmp_path):
    (job,) = some_jobs(1)
    start = Scripts()
    PlanFolder(tmp_path).train([job, job], start=start)
    assert start.started == [job.run]


def test_a_failed_run_is_reported_and_stops_no_other(tmp_path):
    jobs = some_jobs(3)
    fails = "import sys; print('Error: The loss is nan.'); sys.exit(1)"
    start = Scripts(Scripts.FINISH, fails, Scripts.FINISH)
    folder = PlanFolder(tmp_path)
    failed = folder.train(jobs, start=start)
    assert failed == {jobs[1].run: "The loss is nan."}
    assert folder.run(jobs[2]).finished


def test_a_killed_run_says_by_what(tmp_path):
    (job,) = some_jobs(1)
    kills = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    failed = PlanFolder(tmp_path).train([job], start=Scripts(kills))
    assert failed == {job.run: "killed by SIGKILL"}


def test_a_silent_failure_has_its_exit_code(tmp_path):
    (job,) = some_jobs(1)
    start = Scripts("raise SystemExit(7)")
    failed = PlanFolder(tmp_path).train([job], start=start)
    assert failed == {job.run: "exit code 7"}


def test_a_full_disk_stops_the_plan_and_keeps_what_is_finished(tmp_path):
    jobs = some_jobs(4)
    full = f"raise SystemExit({DISK_FULL})"
    start = Scripts(Scripts.FINISH, full)
    folder = PlanFolder(tmp_path)
    with pytest.raises(RunError, match="The disk is full, in the run digits"):
        folder.train(jobs, start=start)
    assert len(start.started) == 2
    assert folder.run(jobs[0]).finished


def test_a_log_that_cannot_be_written_stops_the_plan(tmp_path):
    def start(*arguments):
        raise OSError(28, "No space left on device", "run.log")

    with pytest.raises(RunError, match="The disk is full \\(run.log\\)"):
        PlanFolder(tmp_path).train(some_jobs(3), 2, start=start)


def test_cores_are_shared_out(tmp_path):
    start = Scripts()
    PlanFolder(tmp_path).train(some_jobs(2), 2, start=start)
    assert start.threads == [max(1, os.cpu_count() // 2)] * 2
    alone = Scripts()
    PlanFolder(tmp_path / "one").train(some_jobs(1), start=alone)
    assert alone.threads == [None]


@pytest.fixture
def interruptible():
    """Ctrl-C as in a shell; a process in its background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGTERM, PreemptedError), (signal.SIGINT, KeyboardInterrupt)],
)
def test_a_signal_stops_all_trainings_and_waits_for_them(
    tmp_path, number, error
):
    jobs, scripts, begun = some_jobs(4), Scripts(WAIT), []

    def start(*arguments):
        begun.append(scripts(*arguments))
        return begun[-1]

    def interrupt():
        while len(begun) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    started = time.perf_counter()
    with pytest.raises(error):
        PlanFolder(tmp_path).train(jobs, 2, start=start)
    assert time.perf_counter() - started < 30
    assert len(begun) == 2
    assert all(process.poll() is not None for process in begun)


def test_a_run_that_was_stopped_from_outside_goes_on(tmp_path):
    (job,) = some_jobs(1)
    start = Scripts(
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        Scripts.FINISH,
    )
    assert PlanFolder(tmp_path).train([job], start=start) == {}
    assert start.started == [job.run] * 2
