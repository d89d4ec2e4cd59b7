"""Texts, names and numbers that a file or a command should not hold."""

import os

import numpy as np

from tests.hostile.runner import Case

NO_TEXT = os.fsdecode(b"\xff\xfe")
HUGE = "99999999999999999999"


def _vectors(**arrays):
    """Returns a function that writes embeddings with odd arrays."""

    def harm(folder):
        rows = np.eye(4, dtype=np.float32)
        np.savez(folder / "odd.npz", embeddings=rows, **arrays)

    return harm


def _long_labels(folder):
    """A small file, of which each label takes 20,000 characters."""
    import pyarrow
    from pyarrow import parquet

    rows = 50_000
    rank = pyarrow.array(np.zeros(rows, np.int32))
    values = pyarrow.array(np.zeros(rows, np.float32))
    columns = {
        "id": pyarrow.array(np.arange(rows).astype(str)),
        "label": pyarrow.DictionaryArray.from_arrays(
            rank, pyarrow.array(["x" * 20_000])
        ),
        "embedding": pyarrow.FixedSizeListArray.from_arrays(values, 1),
    }
    parquet.write_table(pyarrow.table(columns), folder / "odd.parquet")


def _evaluations():
    half = [0, 0, 1, 1]
    of_text = "must hold text in UTF-8"
    arrays = {
        "labels that are no UTF-8": (
            {"labels": np.array([b"\xff", b"a", b"a", b"\xff"])},
            of_text,
        ),
        "class names that are no UTF-8": (
            {"labels": half, "class_names": np.array([b"\xff", b"a"])},
            of_text,
        ),
        "class names without an axis": (
            {"labels": half, "class_names": np.array("a")},
            "`class_names` must have the shape",
        ),
    }
    words = ("evaluate", "--embeddings", "<run>/odd.npz")
    for name, (given, message) in arrays.items():
        yield Case(name, words, message, harm=_vectors(**given))
    yield Case(
        "labels that no terminal shows",
        (*words, "--per-class"),
        code=0,
        harm=_vectors(labels=np.array(["\udcff", "\udcff", "a", "a"])),
    )
    yield Case(
        "labels of Parquet that take 4 GB",
        ("evaluate", "--embeddings", "<run>/odd.parquet"),
        "Received: one of 20,000",
        harm=_long_labels,
        apart=True,
    )


def _list_of(lines):
    """Returns a function that writes a CSV file of images."""

    def harm(folder):
        listed = "".join(f"class_{n // 2}/{n}.png,{lines(n)}\n" for n in (0, 1))
        (folder / "odd.csv").write_text(f"path,label\n{listed}")

    return harm


def _no_images(folder):
    for number in range(4):
        path = folder / "odd" / f"class_{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("no image")


def _pipe_as_log(folder):
    (folder / "metrics.json").unlink()
    (folder / "log.txt").unlink(missing_ok=True)
    os.mkfifo(folder / "log.txt")


def _files():
    config = ("config", "<run>/odd.csv", "--backbone", "small_cnn")
    yield Case(
        "labels of 5,000 digits",
        config,
        "no image at all",
        harm=_list_of(lambda number: "1" * (5000 + number)),
    )
    yield Case(
        "NUL in a list",
        config,
        "Line 2 of .*odd.csv holds the character NUL",
        harm=_list_of(lambda number: "a\0"),
    )
    yield Case(
        "images that are none, before any is checked",
        ("config", "<run>/odd", "--backbone", "small_cnn"),
        "can be opened|unreadable",
        harm=_no_images,
    )
    yield Case(
        "a log that is a pipe",
        (
            *("fit", "--config", "<run>", "--output", "<run>", "--resume"),
            *("--no-export", "--no-report"),
        ),
        "log.txt must be a file",
        harm=_pipe_as_log,
        apart=True,
    )
    yield Case(
        "classes from a device",
        (*_FIT, "--output", "<run>/new", "--train-classes", "/dev/zero"),
        "it is no regular file",
        apart=True,
    )


_FIT = ("fit", "<images>", "--backbone", "small_cnn")


def _numbers():
    saved = ("export", "<run>", "--format", "saved_model")
    out = ("--output", "<run>/new")
    least = "must be an integer of at most"
    wide = ("embed", "<run>", "<images>", *out)
    cases = {
        "--max-k": ((*saved, "--with-index", "--max-k", HUGE), least),
        "--max-k of int32": (
            (*saved, "--with-index", "--max-k", str(2**31)),
            "must be below",
        ),
        "--max-pixels": ((*saved, "--max-pixels", HUGE), least),
        "--batch-size": ((*wide, "--batch-size", HUGE), least),
        "--batch-size of a terabyte": (
            (*wide, "--batch-size", str(2**40)),
            "must be at most 65,536",
        ),
        "--max-pixels of embed": ((*wide, "--max-pixels", HUGE), least),
    }
    for name, (words, message) in cases.items():
        yield Case(f"{name} beyond tensors", words, message)


def _names():
    output = ("--output", f"<run>/{NO_TEXT}")
    message = "must be UTF-8"
    yield Case("fit: an output that is no UTF-8", (*_FIT, *output), message)
    yield Case(
        "fit: a source that is no UTF-8",
        ("fit", f"<run>/{NO_TEXT}", "--output", "<run>/new"),
        message,
    )
    yield Case(
        "compare: a source that is no UTF-8",
        ("compare", f"<run>/{NO_TEXT}", "--recipes", "triplet,ln"),
        message,
    )
    yield Case("report: a run that is no UTF-8", ("report", NO_TEXT), message)
    yield Case(
        "export: an output that is no UTF-8",
        ("export", "<run>", "--format", "litert", *output),
        message,
    )
    yield Case(
        "a decision that is none",
        (
            *("search", "<run>", "<images>/class_00/00.png"),
            *("--decision", "nonsense"),
        ),
        "'pairs', 'nearest'",
    )
    yield Case(
        "a home that nobody has",
        (
            *("convert-weights", "~nobody_at_all/a.npz", "--network"),
            *("googlenet", "--output", "~nobody_at_all/a.weights.h5"),
        ),
        "a.npz",
    )


CASES = [*_evaluations(), *_files(), *_numbers(), *_names()]
