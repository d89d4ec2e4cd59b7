"""Fixtures of all tests. TensorFlow is set up here, before any op runs."""

import collections
import gc
import math
import os
import time
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A terminal of the caller must not change what commands print.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)
os.environ.pop("FORCE_COLOR", None)
os.environ.pop("NO_COLOR", None)

# First: it sets what TensorFlow reads when it is imported.
import keras_dml  # noqa: F401

# isort: split
from pathlib import Path

import keras
import pytest
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
keras.config.disable_traceback_filtering()

from keras_dml import distribute  # noqa: E402
from tests import zygote  # noqa: E402

STARTED = time.monotonic()
# The processes of a run, which inherit it, collect in one order.
DAY = int(os.environ.setdefault("TESTS_DAY", str(int(time.time()) // 86_400)))
TURNS = 4
ROOT = Path(__file__).resolve().parents[1]
# A table of so many tests is one of many alike.
MANY = 10
HOSTILE = ROOT / "tests" / "hostile"


def pytest_addoption(parser):
    parser.addoption(
        "--alike",
        type=int,
        default=1,
        help="of the cases of a slow test with many, run one in so many",
    )
    parser.addoption(
        "--quick-alike",
        type=int,
        default=1,
        help="the same of a test that is not slow",
    )
    parser.addoption(
        "--minutes",
        type=float,
        default=math.inf,
        help="skip slow tests that have not begun after so many minutes",
    )


def pytest_collection_modifyitems(config, items):
    """Files with many slow tests come first, then those of many tests.

    So no process works on alone at the end. Each day another quarter of the
    files comes before all others, or the same would always be left out.
    """
    left_out = _alike(
        items, config.getoption("alike"), config.getoption("quick_alike")
    )
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    tests = collections.Counter(item.path for item in items)
    slow = collections.Counter(
        item.path for item in items if item.get_closest_marker("slow")
    )
    items.sort(
        key=lambda item: (
            not _is_first(item.path, DAY),
            -slow[item.path],
            -tests[item.path],
        )
    )


def is_chosen(name, step, day):
    """Returns whether a case is one in `step` on a day."""
    return (zlib.crc32(name.encode()) + day) % step == 0


def _is_first(path, day):
    """Returns whether the tests of a file come before others on a day."""
    return (zlib.crc32(path.name.encode()) + day) % TURNS == 0


def pytest_collection_finish(session):
    """Spares the garbage collector what lives until the end.

    TensorFlow's modules and all tests would be visited each time, while
    building graphs makes millions of objects: a quarter of the time of tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A run that is stopped from outside would say nothing at all."""
    minutes = item.config.getoption("minutes")
    late = time.monotonic() - STARTED > 60 * minutes
    if late and item.get_closest_marker("slow"):
        reason = f"The {minutes:g} minutes of `--minutes` are over."
        # By a mark, so that the summary has the place of the test.
        item.add_marker(pytest.mark.skip(reason=reason))


def _alike(items, slow_step, quick_step=1):
    """Returns the set of the cases that the options leave out.

    Each hostile case is of its own: none is left out.
    """
    tables = collections.defaultdict(list)
    for item in items:
        if HOSTILE in item.path.parents:
            continue
        step = slow_step if item.get_closest_marker("slow") else quick_step
        table = item.path, item.parent, getattr(item, "originalname", ""), step
        tables[table].append(item)
    return {
        item
        for (*_, step), cases in tables.items()
        if len(cases) > MANY
        for item in cases
        # By its name: a case stays in or out when others come. Each has its
        # day.
        if not is_chosen(item.name, step, DAY)
    }


class _ShowFailures:
    """Prints what failed at once; a run that is cut off prints no summary."""

    def __init__(self, config):
        self.terminal = config.pluginmanager.get_plugin("terminalreporter")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.failed and self.terminal is not None:
            self.terminal.write_line(f"\nFAILED {report.nodeid}")
            self.terminal.write_line(report.longreprtext[-2000:])


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(_ShowFailures(config))


@pytest.fixture(params=["float32", "mixed_float16", "mixed_bfloat16"])
def policy(request):
    """Runs a test under each dtype policy."""
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.fixture(scope="session", autouse=True)
def forked_trainings():
    """Trainings of comparisons are forks, and need no imports."""
    zygote.fork_trainings()


@pytest.fixture(scope="session")
def strategy():
    """Two replicas on one machine; one strategy object per process.

    A second strategy reuses the keys of the collectives of the first, and
    gathering another shape then aborts. So it is the one that `fit` takes.
    """
    return distribute.get_strategy("mirrored", "cpu:2", policy="float32")


@pytest.fixture(scope="session")
def test_data():
    """Folder of the real images; the test is skipped where it is absent."""
    folder = Path(
        os.environ.get("KERAS_DML_TEST_DATA", ROOT.parent / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(
            f"The real images are not at {folder}; set KERAS_DML_TEST_DATA."
        )
    return folder
