"""Odd tables of images, vectors, numbers and runs, and how a command must end.

Each was tried before anyone had read the code that it meets.
"""

import io
import shutil

import numpy as np

from tests.hostile.files.cases import changes, writes
from tests.hostile.runner import Case

HEAD = "path,label\n"


def rows(*more, classes=12, images=4):
    """Lines of images that are there, each with its class and more."""
    return [
        ",".join([f"<images>/{name}/{image:02}.png", name, *more])
        for number in range(classes)
        for name in (f"class_{number:02}",)
        for image in range(images)
    ]


def relabeled(label):
    """A table of the images under labels that a function of the row gives."""
    lines = [line.rpartition(",")[0] for line in rows()]
    return HEAD + "\n".join(
        f"{line},{label(number)}" for number, line in enumerate(lines)
    )


WHOLE = HEAD + "\n".join(rows())
UNREADABLE = "must be a CSV file in UTF-8"
COLUMNS = "must name the columns path"
FEW = "at least two classes"
# The content, and the refusal by `config`; `None` if it is taken.
TABLES = {
    "a mark of the byte order": (b"\xef\xbb\xbf" + WHOLE.encode(), None),
    "UTF-16": (WHOLE.encode("utf-16"), UNREADABLE),
    "lines that end as on Windows": (WHOLE.replace("\n", "\r\n"), None),
    "semicolons": (WHOLE.replace(",", ";"), COLUMNS),
    "tabs": (WHOLE.replace(",", "\t"), COLUMNS),
    "no head": ("\n".join(rows()), COLUMNS),
    "a head alone": (HEAD, ""),
    "no label": (relabeled(lambda row: ""), "must have a path and a label"),
    "a blank label": (relabeled(lambda row: " "), "a path and a label"),
    "one label": (relabeled(lambda row: "nan"), FEW),
    "rows twice": (WHOLE + "\n" + "\n".join(rows()), "must be listed once"),
    "another split": (
        "path,label,split\n" + "\n".join(rows("odd")),
        "split",
    ),
    "tests alone": ("path,label,split\n" + "\n".join(rows("test")), ""),
    "other capitals": (WHOLE.replace(HEAD, "Path,LABEL\n"), COLUMNS),
    "all bytes": (bytes(range(256)) * 50, UNREADABLE),
    "a packed file": (b"\x1f\x8b" + b"x" * 99, UNREADABLE),
    "nothing": ("", COLUMNS),
    "a zero": (HEAD + "a\0b.png,x\n", ""),
    "an open quote": (HEAD + '"a.png,x\n' + "\n".join(rows()), ""),
    "labels of commands": (relabeled(lambda row: f"=cmd();{row % 12}"), None),
    "labels from right to left": (
        relabeled(lambda row: f"\u202eabc{row % 12}"),
        None,
    ),
}

VECTORS = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
LABELS = np.arange(20) // 2
# Arrays that replace the usual ones, and the refusal by `evaluate`.
ARRAYS = {
    "NaN": ({"embeddings": VECTORS * np.nan}, "finite"),
    "no columns": ({"embeddings": VECTORS[:, :0]}, "one row and one column"),
    "booleans": ({"embeddings": VECTORS > 0}, "must hold real numbers"),
    "complex numbers": ({"embeddings": VECTORS * 1j}, "real numbers"),
    "words": ({"embeddings": VECTORS.astype(str)}, "real numbers"),
    "half precision": ({"embeddings": VECTORS.astype("float16")}, None),
    "the other byte order": ({"embeddings": VECTORS.astype(">f4")}, None),
    "labels of fractions": ({"labels": LABELS + 0.5}, "labels`"),
    "labels of NaN": ({"labels": LABELS * np.nan}, "labels`"),
    "labels that are records": (
        {"labels": np.zeros(20, [("a", "i4")])},
        "labels`",
    ),
    "labels of bytes": ({"labels": np.zeros(20, "V4")}, "labels`"),
    "labels in three dimensions": (
        {"labels": np.zeros((20, 2, 2), int)},
        "labels`",
    ),
    "one name for ten classes": ({"class_names": np.array(["a"])}, "class"),
    "numbers as ids": ({"ids": VECTORS[:, 0]}, "`ids` must hold integers"),
    "ids twice": ({"ids": np.zeros(20, int)}, "`ids`"),
    "roles that are none": ({"role": np.array(["zz"] * 20)}, "`role`"),
    "queries alone": (
        {"role": np.array(["query"] * 20)},
        "`role` must name queries and a gallery",
    ),
    "no two of a class": ({"labels": np.arange(20)}, ""),
}


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **{"embeddings": VECTORS, "labels": LABELS, **arrays})
    return stream.getvalue()


def _of(name, words, file, content, refusal):
    return Case(
        name,
        words,
        refusal or "",
        0 if refusal is None else 2,
        writes(file, content),
    )


IMAGE = "<images>/class_00/00.png"
SEARCH = ("search", "<run>", IMAGE)
EMBED = ("embed", "<run>", IMAGE, "--output", "<run>/made")
EXPORT = ("export", "<run>", "--output", "<run>/made")
RATE, WHOLE_NUMBERS = r"must be a number in \(0, 1\)", "must be whole numbers"
# Commands, an option, its values, and the refusal.
OPTIONS = (
    (
        ("evaluate", "<run>"),
        "--k",
        ("٣", "1_0", "", "½"),
        WHOLE_NUMBERS,
    ),
    (SEARCH, "--max-false-match-rate", ("nan", "inf", "-1", "1"), RATE),
    (SEARCH, "--picture", ("x.svg", ".png", "/", "no/x.png"), "a .png file in"),
    (EMBED, "--shard-size", ("0", "-1"), "a positive integer"),
    (EMBED, "--max-pixels", ("0", "-1"), "a positive integer"),
    (EXPORT, "--max-k", ("0", "-1"), "a positive integer"),
    (
        EXPORT,
        "--max-k",
        ("9" * 20,),
        "an integer of at most 9223372036854775807",
    ),
    (
        EXPORT,
        "--quantize",
        ("", "int4", "none,int4", "int8,"),
        "must be one of 'none'",
    ),
)


def linked(name, target):
    """Returns a function that puts a link in the place of a file."""

    def harm(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return harm


def filed(name):
    """Returns a function that puts a file in the place of a folder."""

    def harm(folder):
        shutil.rmtree(folder / name)
        (folder / name).write_text("x")

    return harm


RUNS = {
    "a file in place of its embeddings": (
        "evaluate",
        filed("embeddings"),
        "embeddings cannot be read or written: File exists",
        2,
    ),
    "a file in place of its events": (
        "report",
        filed("tensorboard"),
        "tensorboard cannot be read or written: File exists",
        2,
    ),
    "settings that link to themselves": (
        "report",
        linked("config.yaml", "config.yaml"),
        "it has no `config.yaml`",
        2,
    ),
    "a network that is a device": (
        "evaluate",
        linked("embedder.keras", "/dev/zero"),
        "embedder.keras does not load as an embedder",
        1,
    ),
    "no answers to queries": (
        "report",
        lambda run: (run / "per_query.npz").unlink(),
        "",
        0,
    ),
    "a result above 1": (
        "report",
        changes("metrics.json", lambda it: it["after"].update({"map@r": 7.0})),
        "`after.map@r`: Input should be less than or equal to 1",
        2,
    ),
}

CASES = [
    *(
        Case(
            f"{words[0]} {option}={value}", (*words, f"{option}={value}"), said
        )
        for words, option, values, said in OPTIONS
        for value in values
    ),
    *(
        Case(f"a run, {name}", (command, "<run>"), said, code, harm)
        for name, (command, harm, said, code) in RUNS.items()
    ),
    *(
        _of(f"a table, {name}", ("config", "<run>/a.csv"), "a.csv", *one)
        for name, one in TABLES.items()
    ),
    *(
        _of(
            f"vectors, {name}",
            ("evaluate", "--embeddings", "<run>/v.npz"),
            "v.npz",
            archive(**arrays),
            refusal,
        )
        for name, (arrays, refusal) in ARRAYS.items()
    ),
]
