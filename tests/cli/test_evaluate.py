"""`keras-dml evaluate`: of a run, and of anyone's vectors."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.refusals import refused

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(10), 8)
ROWS = (RNG.normal(size=(10, 6))[LABELS] + RNG.normal(size=(80, 6))).astype(
    "float32"
)


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.npz"
    np.savez(path, embeddings=ROWS, labels=LABELS)
    return path


def numbers(command, *arguments):
    outcome = command("evaluate", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    printed = json.loads(outcome.out)
    assert all(isinstance(value, float) for value in printed.values())
    return printed


def recall_at_1(rows, labels):
    """By the definition, one query at a time."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    hits = []
    for query, row in enumerate(rows):
        scores = rows @ row
        scores[query] = -np.inf
        hits.append(labels[np.argmax(scores)] == labels[query])
    return np.mean(hits)


def test_anyones_vectors(command, vectors):
    printed = numbers(command, "--embeddings", vectors, "--k", "1,5")
    assert set(printed) == {
        *("recall@1", "recall@5", "r_precision", "map@r", "mrr")
    }
    assert printed["recall@1"] == pytest.approx(recall_at_1(ROWS, LABELS))


def test_everything_at_once(command, vectors):
    arguments = (
        *("--embeddings", vectors, "--k", "1", "--clustering"),
        *("--intervals", "--per-class", "--rerank", "query_expansion"),
    )
    printed = numbers(command, *arguments)
    assert printed["map@r_low"] <= printed["map@r"] <= printed["map@r_high"]
    assert {"nmi", "ami", "map@r_reranked", "map@r_worst_class"} <= set(printed)
    shown = command("evaluate", *arguments)
    assert shown.code == 0, shown.err
    for text in ("95 % interval", "query_expansion", "10 classes", "ami"):
        assert text in shown.out


def test_vectors_need_neither_keras_nor_tensorflow(vectors):
    script = (
        "import sys\n"
        "sys.argv = ['keras-dml', 'evaluate', '--embeddings', "
        f"{str(vectors)!r}, '--json']\n"
        "from keras_dml.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'keras', 'tensorflow', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recall@1"] == pytest.approx(
        recall_at_1(ROWS, LABELS)
    )
    assert done.stderr == ""


@pytest.mark.slow
def test_a_run_by_any_option(command, run):
    metrics = json.loads((run / "metrics.json").read_text())["after"]
    plain = numbers(command, run)
    assert plain == pytest.approx(metrics)
    assert (run / "embeddings" / "test.npz").is_file()
    more = numbers(command, run, "--k", "3", "--rerank", "k_reciprocal")
    assert "recall@3" in more and "recall@2" not in more
    assert more["map@r"] == plain["map@r"]
    assert "map@r_reranked" in more
    shown = command("evaluate", run, "--per-class")
    assert "class_30" in shown.out
    # The cache is anyone's vectors, with labels of its own.
    own = numbers(command, "--embeddings", run / "embeddings" / "test.npz")
    assert own["map@r"] == plain["map@r"]


def test_scann_beside_exact_search(command, vectors):
    pytest.importorskip("scann", reason="ScaNN is not installed.")
    printed = numbers(
        command, "--embeddings", vectors, "--index", "scann", "--k", "1,4"
    )
    assert printed["ann_recall@4"] == 1
    assert printed["recall@1"] == printed["recall@1_exact"]
    assert printed["recall@1_difference"] == 0


def test_scann_that_does_not_load_is_the_callers_to_install(
    command, vectors, monkeypatch
):
    from keras_dml.evaluation.index import scann_searcher

    scann_searcher.import_scann.cache_clear()
    for name in list(sys.modules):
        if name.partition(".")[0] == "scann":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scann", None)
    outcome = command("evaluate", "--embeddings", vectors, "--index", "scann")
    scann_searcher.import_scann.cache_clear()
    refused(outcome, "ScaNN", "pip install")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["either a run folder or", "neither"]),
        (["RUN", "--embeddings", "FILE"], ["both"]),
        (["absent"], ["There is no run folder absent"]),
        (["--embeddings", "absent.npz"], ["There is no file 'absent.npz'"]),
        (["--embeddings", "FILE", "--source", "digits"], ["`--source`"]),
        (["--embeddings", "FILE", "--index", "faiss"], ["'faiss'", "scann"]),
        (["--embeddings", "FILE", "--rerank", "recip"], ["'k_reciprocal'"]),
        (["--embeddings", "FILE", "--k", "0,1"], ["`--k`", "positive"]),
        (["RUN", "--index", "exakt"], ["'exakt'", "'exact'"]),
        (["RUN", "--rerank", "yes"], ["`--rerank`"]),
        (["RUN", "--source", "nowhere"], ["nowhere"]),
    ],
)
def test_mistakes(command, finished_run, vectors, arguments, parts):
    places = {"RUN": finished_run, "FILE": vectors}
    outcome = command("evaluate", *(places.get(one, one) for one in arguments))
    refused(outcome, *parts)


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        ({"x": ROWS}, ["'embeddings'", "'x'"]),
        ({"embeddings": ROWS}, ["must hold 'labels'"]),
        ({"embeddings": ROWS, "labels": LABELS[1:]}, ["80 embeddings"]),
        (
            {"embeddings": np.where(ROWS > 2, np.nan, ROWS), "labels": LABELS},
            ["must be finite", "the first is row"],
        ),
        ({"embeddings": ROWS, "labels": np.arange(80)}, ["all without one"]),
        (
            {"embeddings": ROWS, "labels": LABELS, "role": ["query"] * 80},
            ["`role`"],
        ),
        (
            {
                "embeddings": ROWS,
                "labels": LABELS.astype(object),
            },
            ["a pickle"],
        ),
    ],
)
def test_vectors_that_cannot_be_measured(command, tmp_path, arrays, parts):
    path = tmp_path / "broken.npz"
    np.savez(path, **arrays)
    refused(command("evaluate", "--embeddings", path), *parts)


def test_an_unfinished_run(command, run):
    (run / "metrics.json").unlink()
    refused(command("evaluate", run), "unfinished run", "--resume")
