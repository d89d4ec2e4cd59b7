"""A SavedModel under load, and with requests that nobody should send."""

import concurrent.futures
import os
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.export.images import BROKEN, FILES
from tests.thorough import ALL

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 16, 16, 3)).astype("uint8")
QUERIES = RNG.normal(size=(3, 8)).astype("float32")
REQUESTS = {
    "serve": {"image": IMAGES.astype("float32")},
    "serve_uint8": {"image": IMAGES},
    "serve_image_bytes": {"image_bytes": [*FILES.values(), *BROKEN.values()]},
    "similarity": {
        "first": IMAGES.astype("float32"),
        "second": IMAGES[:2].astype("float32"),
    },
    "neighbors": {
        "image_bytes": [*FILES.values(), BROKEN["text"]],
        "k": np.int32([3]),
    },
    "neighbors_of_embedding": {"embedding": QUERIES, "k": np.int32([30])},
}


@pytest.fixture(scope="module")
def served(indexed_folder):
    return tf.saved_model.load(str(indexed_folder))


def ask(served, name, **changes):
    request = {**REQUESTS[name], **changes}
    inputs = {key: tf.constant(value) for key, value in request.items()}
    answer = served.signatures[name](**inputs)
    return {key: value.numpy() for key, value in answer.items()}


def assert_equal(answer, expected):
    assert answer.keys() == expected.keys()
    for key, value in expected.items():
        if value.dtype == "float32":
            np.testing.assert_allclose(answer[key], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(answer[key], value)


def test_eight_threads_get_equal_answers(served):
    """1,600 calls of all endpoints at once."""
    expected = {name: ask(served, name) for name in REQUESTS}
    names = [*REQUESTS] * 34

    def call(thread):
        for name in names[thread:][:200]:
            assert_equal(ask(served, name), expected[name])
        return thread

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert [*pool.map(call, range(8))] == [*range(8)]


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_thousands_of_calls_take_no_more_memory(served):
    held, part = [], 1000 if ALL else 400
    for call in range(1, 5 * part + 1):
        ask(served, [*REQUESTS][call % len(REQUESTS)])
        if call % part == 0:
            held.append(resident())
    # Allocators settle in the first calls.
    assert held[-1] - held[1] < 2**25, held


EMPTY = {
    "serve": {"image": np.zeros((0, 16, 16, 3), "float32")},
    "serve_uint8": {"image": np.zeros((0, 16, 16, 3), "uint8")},
    "serve_image_bytes": {"image_bytes": np.array([], "S")},
    "similarity": {"first": np.zeros((0, 16, 16, 3), "float32")},
    "neighbors": {"image_bytes": np.array([], "S")},
    "neighbors_of_embedding": {"embedding": np.zeros((0, 8), "float32")},
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_batches_get_empty_answers(name, served):
    answer = ask(served, name, **EMPTY[name])
    expected = ask(served, name)
    assert answer.keys() == expected.keys()
    for key, value in expected.items():
        if value.ndim:
            assert answer[key].shape == (0, *value.shape[1:])
    assert answer.get("pairs", 0) == 0


@pytest.mark.parametrize("name", ["neighbors", "neighbors_of_embedding"])
@pytest.mark.parametrize("k", [0, -1, 101, 2**31 - 1, -(2**31)])
def test_k_out_of_range(name, k, served):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in 1\.\.100"):
        ask(served, name, k=np.int32([k]))


def test_more_neighbors_than_references(served):
    answer = ask(served, "neighbors_of_embedding", k=np.int32([100]))
    assert answer["ids"].shape == (3, 100)
    assert all(answer["ids"][:, :20].ravel())
    assert not any(answer["ids"][:, 20:].ravel())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_a_strange_query_leaves_the_others_alone(value, served):
    queries = QUERIES.copy()
    queries[1] = value
    answer = ask(served, "neighbors_of_embedding", embedding=queries)
    alone = ask(served, "neighbors_of_embedding")
    assert answer["ok"].tolist() == [True, bool(np.isfinite(value)), True]
    assert_equal(
        {key: value[::2] for key, value in answer.items()},
        {key: value[::2] for key, value in alone.items()},
    )
    assert np.isfinite(answer["scores"]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_a_strange_image_leaves_the_others_alone(value, served):
    images = REQUESTS["serve"]["image"].copy()
    images[1, 3, 3] = value
    answer = ask(served, "serve", image=images)["embedding"]
    np.testing.assert_allclose(
        answer[::2], ask(served, "serve")["embedding"][::2], atol=1e-5
    )


GIF = FILES["gif"]
HEADER = GIF[: 13 + 3 * 2 ** (GIF[10] % 8 + 1)]
FRAME = GIF[(start := GIF.index(b",\0\0\0\0")) : start + 11]
# Loops over the parts of a file end, and soon.
ENDLESS = {
    "comments": HEADER + b"\x21\xfe\x00" * 1_000_000,
    "a comment of small blocks": HEADER + b"\x21\xfe" + b"\x01x" * 1_000_000,
    "a frame of small blocks": HEADER + FRAME + b"\x01x" * 1_000_000,
    "frames": FILES["webp"] + b"ANMF" * 1_000_000,
    "nothing": b"\0" * 10_000_000,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_files_of_many_parts_are_refused_soon(name, served):
    before, started = resident(), time.monotonic()
    contents = [ENDLESS[name], FILES["png"]]
    answer = ask(served, "serve_image_bytes", image_bytes=contents)
    assert answer["ok"].tolist() == [False, True]
    assert not answer["embedding"][0].any()
    assert time.monotonic() - started < 10
    assert resident() - before < 2**30


def test_damaged_files_are_embedded_or_refused(served):
    """2,000 files with some bytes changed, cut off or repeated."""
    generator = np.random.default_rng(1)
    kinds = [*FILES.values()]
    for _ in range(100):
        batch = []
        for number in generator.integers(0, len(kinds), 20):
            octets = np.frombuffer(kinds[number], "uint8").copy()
            places = generator.integers(0, len(octets), 1 + number % 5)
            octets[places] = generator.integers(0, 256, len(places))
            cut = generator.integers(1, len(octets) + 1)
            damaged = octets.tobytes()
            batch.append(damaged[:cut] if number % 3 == 0 else damaged)
        answer = ask(served, "serve_image_bytes", image_bytes=batch)
        lengths = np.linalg.norm(answer["embedding"], axis=1)
        np.testing.assert_allclose(lengths, answer["ok"], atol=1e-5)
