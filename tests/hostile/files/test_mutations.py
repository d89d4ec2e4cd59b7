"""Random damage to each kind of file is refused, or changes nothing."""

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet, load_embeddings, save_embeddings
from keras_dml.errors import RunError, UsageError
from keras_dml.run.cache import weights_hash
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.trained_run import TrainedRun
from tests.hostile.mutations import flipped, mutated
from tests.hostile.runner import limited, run_command
from tests.thorough import ALL

# Archives carry checksums: damage must never give other numbers.
TIMES = 300
# Plain text carries none: damage must be refused, or read as what it says.
TEXTS = {
    "metrics.json": "report",
    "history.csv": "report",
    "config.yaml": "evaluate",
}


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_embeddings(kind, tmp_path):
    path = tmp_path / f"pets.{kind}"
    save_embeddings(path, some_rows())
    whole = load_embeddings(path)
    fields = ["embeddings", "names", "ids"]
    # Parquet has no checksum for the names of columns and the hash.
    fields += ["role", "weights_hash"] if kind == "npz" else []
    content = path.read_bytes()
    refused = 0
    with limited():
        for seed in range(TIMES):
            damage = flipped if seed % 2 else mutated
            path.write_bytes(damage(content, seed))
            try:
                read = load_embeddings(path)
            except UsageError as error:
                assert str(path) in str(error) and len(str(error)) < 1000
                refused += 1
                continue
            for field in fields:
                np.testing.assert_array_equal(
                    getattr(read, field), getattr(whole, field), str(seed)
                )
    assert refused > TIMES / 2


def some_rows():
    return EmbeddingSet(
        np.random.default_rng(0).normal(size=(40, 8)),
        np.arange(40) // 4,
        [f"{row}.jpg" for row in range(40)],
        ["query", "gallery"] * 20,
        [f"class {label}" for label in range(10)],
        "f00",
    )


@pytest.mark.slow
def test_checkpoints(run):
    path = run / "checkpoints" / "last.npz"
    whole, content = load_checkpoint(path), path.read_bytes()
    refused = 0
    with limited():
        for seed in range(TIMES):
            path.write_bytes(mutated(content, seed))
            try:
                read = load_checkpoint(path)
            except RunError as error:
                assert str(path) in str(error)
                refused += 1
                continue
            assert (read.paths, read.state) == (whole.paths, whole.state)
            for group, values in whole.values.items():
                for old, new in zip(values, read.values[group], strict=True):
                    np.testing.assert_array_equal(old, new, str(seed))
    assert refused > TIMES / 2


@pytest.mark.slow
def test_embedders(run):
    path = run / "embedder.keras"
    whole, content = TrainedRun(run).weights_hash, path.read_bytes()
    refused = 0
    for seed in range(TIMES // 10):
        path.write_bytes(mutated(content, seed))
        try:
            with limited():
                read = TrainedRun(run).embedder
        except RunError as error:
            assert "embedder.keras" in str(error)
            refused += 1
            continue
        assert weights_hash(read) == whole, seed
    assert refused > TIMES / 20


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 8, 12))]
)
def test_text_files(name, first, run, capsys, monkeypatch):
    content = (run / name).read_bytes()
    for seed in range(first, first + (4 if ALL else 2)):
        (run / name).write_bytes(mutated(content, seed))
        with limited():
            outcome = run_command(capsys, monkeypatch, TEXTS[name], run)
        assert outcome.code in (0, 1, 2), (seed, outcome)
        assert "Traceback" not in outcome.err, (seed, outcome)
        if outcome.code:
            assert len(outcome.err.rpartition("Error")[2]) < 1500, seed
