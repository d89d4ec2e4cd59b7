"""Damaged and crafted files of a run, each with how a command must end."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from tests.hostile.runner import Case

TIB = 2**40


def writes(name, content):
    """Returns a function that replaces a file of a folder."""

    def harm(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            content.encode() if isinstance(content, str) else content
        )

    return harm


def changes(name, change):
    """Returns a function that changes the JSON of a file."""

    def harm(folder):
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return harm


def becomes_a_folder(name):
    def harm(folder):
        path = folder / name
        path.unlink(missing_ok=True)
        (path / "inside").mkdir(parents=True)

    return harm


def becomes_a_pipe(name):
    def harm(folder):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return harm


def sets(old, new):
    """Returns a function that changes a line of `config.yaml`."""

    def harm(folder):
        path = folder / "config.yaml"
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new))

    return harm


def together(*harms):
    def harm(folder):
        for one in harms:
            one(folder)

    return harm


def declaring(shape, dtype="<f4"):
    """Bytes of an archive whose embeddings declare a shape, and have none."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, kind, size in (
            ("embeddings", dtype, shape),
            ("labels", "<i8", (4,)),
            ("ids", "<i8", (4,)),
        ):
            member = io.BytesIO()
            header = {"descr": kind, "fortran_order": False, "shape": size}
            np.lib.format.write_array_header_1_0(member, header)
            member.write(bytes(32))
            archive.writestr(f"{name}.npy", member.getvalue())
    return stream.getvalue()


def with_a_text():
    """Bytes of an archive of one member that is no array."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("fc.bias.npy", "no array")
    return stream.getvalue()


def embedder_of(build):
    """Returns a function that replaces `embedder.keras` by another model."""

    def harm(folder):
        import keras

        build(keras).save(folder / "embedder.keras")

    return harm


def two_inputs(keras):
    sides = [keras.Input((16, 16, 3)) for _ in range(2)]
    both = keras.layers.Concatenate()(sides)
    return keras.Model(sides, keras.layers.GlobalAveragePooling2D()(both))


def words(keras):
    tokens = keras.Input((7,), dtype="int32")
    x = keras.layers.Embedding(10, 16)(tokens)
    return keras.Model(tokens, keras.layers.GlobalAveragePooling1D()(x))


def maps(keras):
    image = keras.Input((16, 16, 3))
    return keras.Model(image, keras.layers.Conv2D(4, 3)(image))


def rewritten(change):
    """Returns a function that changes the members of `embedder.keras`."""

    def harm(folder):
        path = folder / "embedder.keras"
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return harm


def needing_torch(members):
    members["config.json"] = json.dumps(
        {
            "module": "keras.layers",
            "class_name": "TorchModuleWrapper",
            "config": {"module": {"class_name": "__bytes__", "config": ""}},
            "registered_name": "TorchModuleWrapper",
        }
    ).encode()


def running_code(members):
    members["config.json"] = json.dumps(
        {
            "module": "keras.layers",
            "class_name": "Lambda",
            "config": {
                "function": {
                    "class_name": "__lambda__",
                    "config": {"code": "4wEAAAA=", "defaults": None},
                }
            },
            "registered_name": None,
        }
    ).encode()


def nested(members):
    members["config.json"] = b"[" * 100_000


def wrong_crc(folder):
    path = folder / "embedder.keras"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(content)


def checkpoint_state(change):
    """Returns a function that changes the document of the last checkpoint."""

    def harm(folder: Path):
        (folder / "metrics.json").unlink()
        path = folder / "checkpoints" / "last.npz"
        with np.load(path) as stored:
            arrays = dict(stored)
        document = json.loads(str(arrays["document"]))
        change(document)
        arrays["document"] = np.array(json.dumps(document))
        np.savez(path, **arrays)

    return harm


def unfinished(harm):
    """Returns a function that damages a run without its `metrics.json`."""
    return together(lambda run: (run / "metrics.json").unlink(), harm)


EVALUATE = ("evaluate", "<run>")
REPORT = ("report", "<run>")
SEARCH = ("search", "<run>", "<images>/class_00/00.png")
RESUME = (
    *("fit", "--config", "<run>", "--output", "<run>", "--resume"),
    *("--no-export", "--no-report"),
)
METRICS = "metrics.json must hold"


def _of_metrics():
    contents = {
        "empty": "",
        "truncated": '{"dataset": "paint", "after": {"recall@1": 0.',
        "no JSON": "after: {recall@1: 0.5}",
        "no UTF-8": b"\xff\xfe{\0}\0",
        "a list": "[]",
        "null": "null",
        "a number of 5,000 digits": "1" * 5000,
        "nested 100,000 times": "[" * 100_000,
        "an object nested 100,000 times": '{"a":' * 100_000,
    }
    for name, content in contents.items():
        for command in (EVALUATE, REPORT, RESUME):
            yield Case(
                f"metrics.json, {name}: {command[0]}",
                command,
                METRICS,
                harm=writes("metrics.json", content),
            )
    fields = {
        "no result": lambda it: it.pop("after"),
        "a result of another type": lambda it: it.update(after=[0.5]),
        "a value of another type": lambda it: it["after"].update(mrr="high"),
        "infinity": lambda it: it["after"].update(mrr=float("inf")),
        "a number beyond floats": lambda it: it["after"].update(mrr=10**400),
        "a negative count": lambda it: it.update(num_queries=-1),
        "an unprintable name": lambda it: it.update(dataset="\ud800"),
        "gains of another type": lambda it: it.update(gains=[1]),
        "gains without numbers": lambda it: it["gains"].update(
            off_the_shelf={"map@r": {"gain": None}}
        ),
        "nothing to gain over": lambda it: it.pop("off_the_shelf"),
        "other metrics before": lambda it: it["before"].popitem(),
        "a length of another type": lambda it: it.update(length="long"),
    }
    for name, change in fields.items():
        yield Case(
            f"metrics.json, {name}",
            REPORT,
            METRICS,
            harm=changes("metrics.json", change),
        )
    yield Case(
        "metrics.json, a folder",
        EVALUATE,
        "unfinished run",
        harm=becomes_a_folder("metrics.json"),
    )
    yield Case(
        "metrics.json, a pipe",
        EVALUATE,
        "unfinished run",
        harm=becomes_a_pipe("metrics.json"),
    )


def _of_history():
    head = "stage,phase,epoch,loss\n"
    contents = {
        "no UTF-8": b"\xff\xfe\0",
        "an image": b"\x89PNG\r\n\x1a\n\0\0\0",
        "other columns": "a,b\n1,2\n",
        "a line too long": f"{head}main,train,0,1,2,3\n",
        "a field of 200,000": f"{head}{'x' * 200_000}\n",
    }
    for name, content in contents.items():
        yield Case(
            f"history.csv, {name}",
            REPORT,
            "history.csv must be the table",
            harm=writes("history.csv", content),
        )
    yield Case(
        "history.csv, a folder",
        REPORT,
        "history.csv must be the table",
        harm=becomes_a_folder("history.csv"),
    )
    harmless = {
        "empty": "",
        "no lines": head,
        "short lines": f"{head}main,train\n",
        "words for numbers": f"{head}main,train,zero,low\n",
        "infinity and huge numbers": f"{head}main,train,0,inf\nm,t,1,1e308\n",
    }
    for name, content in harmless.items():
        yield Case(
            f"history.csv, {name}",
            REPORT,
            code=0,
            harm=writes("history.csv", content),
        )


def _of_config():
    data = "`data.image_size` and `data.channels` must be set"
    for line in ("  image_size: 16\n", "  channels: 3\n"):
        key = line.split(":")[0]
        for command in (EVALUATE, REPORT):
            yield Case(
                f"config.yaml, {key.strip()} null: {command[0]}",
                command,
                data,
                harm=sets(line, f"{key}: null\n"),
            )
    yield Case(
        "config.yaml, epochs null in a run that has begun",
        RESUME,
        "epochs` of the phase",
        harm=together(
            checkpoint_state(
                lambda it: it["state"].update(epoch=1, phase_done=False)
            ),
            sets("epochs: 2", "epochs: null"),
        ),
    )
    yield Case(
        "config.yaml, another dimension",
        EVALUATE,
        "embedder.keras` is not of this run",
        code=1,
        harm=sets("dim: 16", "dim: 32"),
    )
    yield Case(
        "config.yaml, empty",
        EVALUATE,
        "config.yaml|Configuration key",
        harm=writes("config.yaml", ""),
    )
    yield Case(
        "config.yaml, no UTF-8",
        EVALUATE,
        "config.yaml",
        harm=writes("config.yaml", b"\xff\xfe\0"),
    )
    yield Case(
        "config.yaml, a folder",
        EVALUATE,
        "has no `config.yaml`",
        harm=becomes_a_folder("config.yaml"),
    )


def _of_embedder():
    harms = {
        "empty": writes("embedder.keras", ""),
        "no archive": writes("embedder.keras", "PK\x03\x04 and no more"),
        "a wrong CRC": wrong_crc,
        "a folder": becomes_a_folder("embedder.keras"),
        "two inputs": embedder_of(two_inputs),
        "words instead of images": embedder_of(words),
        "maps instead of vectors": embedder_of(maps),
        "no architecture": rewritten(lambda it: it.pop("config.json")),
        "no weights": rewritten(lambda it: it.pop("model.weights.h5")),
        "weights that are none": rewritten(
            lambda it: it.update({"model.weights.h5": b"HDF"})
        ),
        "an architecture nested 100,000 times": rewritten(nested),
        "torch needed": rewritten(needing_torch),
        "code to run": rewritten(running_code),
    }
    for name, harm in harms.items():
        for command in (EVALUATE, ("export", "<run>")):
            yield Case(
                f"embedder.keras, {name}: {command[0]}",
                command,
                "embedder.keras does not load as an embedder",
                code=1,
                harm=harm,
            )
    yield Case(
        "embedder.keras, a pipe",
        EVALUATE,
        "embedder.keras does not load",
        code=1,
        harm=becomes_a_pipe("embedder.keras"),
        apart=True,
    )


def _of_checkpoints():
    states = {
        "a negative stage": {"stage": -1},
        "a negative epoch": {"epoch": -3},
        "a stage beyond the last": {"stage": 7},
        "a phase beyond the last": {"phase": 7},
        "a phase of another type": {"phase": "train"},
        "a value of another version": {"momentum": 1},
        "a history of another type": {"history": 3},
    }
    for name, values in states.items():
        yield Case(
            f"checkpoint, {name}",
            RESUME,
            "last.npz does not hold the state of this run",
            code=1,
            harm=checkpoint_state(
                lambda it, values=values: it["state"].update(values)
            ),
        )
    documents = {
        "no document": lambda it: it.clear(),
        "paths of another type": lambda it: it.update(paths=3),
        "a state of another type": lambda it: it.update(state=3),
    }
    for name, change in documents.items():
        yield Case(
            f"checkpoint, {name}",
            RESUME,
            "last.npz is not a readable checkpoint",
            code=1,
            harm=checkpoint_state(change),
        )
    last = "checkpoints/last.npz"
    harms = {
        "empty": writes(last, ""),
        "no archive": writes(last, "PK\x03\x04"),
        "29 TiB declared": writes(last, declaring((29 * TIB // 32, 8))),
        "a folder": becomes_a_folder(last),
    }
    for name, harm in harms.items():
        yield Case(
            f"checkpoint, {name}",
            RESUME,
            "last.npz is not a readable checkpoint",
            code=1,
            harm=unfinished(harm),
        )
    yield Case(
        "checkpoint, other variables",
        RESUME,
        "The checkpoint does not fit the model",
        code=1,
        harm=checkpoint_state(lambda it: it["paths"]["model"].reverse()),
    )
    locks = {
        "a folder": becomes_a_folder("checkpoints/.lock"),
        "a pipe": becomes_a_pipe("checkpoints/.lock"),
    }
    for name, harm in locks.items():
        yield Case(
            f"lock, {name}",
            RESUME,
            "must be a folder to write to",
            harm=unfinished(harm),
        )


def _of_embeddings():
    contents = {
        "29 TiB declared": declaring((29 * TIB // 32, 8)),
        "8 GiB declared": declaring((2**28, 8)),
        "more rows than integers": declaring((2**62, 8)),
        "negative rows": declaring((-1, 8)),
        "strings of 2 GB": declaring((4,), "<U500000000"),
        "complex numbers": declaring((4, 1), "<c8"),
        "no archive": b"PK\x03\x04",
        "no UTF-8": b"\xff\xfe",
    }
    for name, content in contents.items():
        yield Case(
            f"vectors.npz, {name}",
            ("evaluate", "--embeddings", "<run>/vectors.npz"),
            "vectors.npz",
            harm=writes("vectors.npz", content),
        )
        yield Case(
            f"the cache, {name}",
            EVALUATE,
            "images are embedded again. .*test.npz",
            code=0,
            harm=writes("embeddings/test.npz", content),
        )
        yield Case(
            f"unseen.npz, {name}",
            # A rate that is not stored, so the validation images are read.
            (*SEARCH, "--max-false-match-rate", "0.33"),
            "unseen.npz",
            harm=together(
                writes("unseen.npz", content),
                changes("metrics.json", lambda one: one.update(refit=True)),
            ),
        )
    yield Case(
        "vectors.npz, a device",
        ("evaluate", "--embeddings", "/dev/zero"),
        "There is no file",
        apart=True,
    )
    made = '{"made_by": "keras-dml embed"'
    finished = {
        "made_by": "keras-dml embed",
        "format": "npz",
        "shard_size": 1,
        "num_images": 1,
        "labels": True,
        "dim": 8,
        "weights_hash": "",
        "digests": [""],
        "finished": True,
    }
    rows = {"rows": 2**58, "shard_rows": [2**58]}
    manifests = {
        "no manifest": "{}",
        "a manifest of nothing": made + "}",
        "a manifest of another type": made + ', "dim": []}',
        "a manifest nested 100,000 times": '{"made_by":' * 100_000,
        "too many rows": json.dumps(finished | rows),
        "rows that do not agree": json.dumps(finished | {"rows": 1}),
    }
    for name, content in manifests.items():
        yield Case(
            f"shards, {name}",
            ("evaluate", "--embeddings", "<run>/vectors"),
            "holds no embeddings|must hold the manifest|must fit into memory",
            harm=writes("vectors/manifest.json", content),
        )


def _of_weights():
    for name, content in {
        "29 TiB declared": declaring((29 * TIB // 32, 8)),
        "a text among arrays": with_a_text(),
    }.items():
        yield Case(
            f"weights.npz, {name}",
            (
                *("convert-weights", "<run>/weights.npz"),
                *("--network", "googlenet", "--output", "<run>/g.weights.h5"),
            ),
            "weights.npz does not load as a checkpoint",
            harm=writes("weights.npz", content),
        )


def _of_thresholds():
    contents = {
        "empty": "",
        "a list": "[]",
        "no UTF-8": b"\xff",
        "nested 100,000 times": '{"hash":' * 100_000,
        "thresholds of another type": '{"thresholds": [1], "hash": ""}',
        "a threshold of nothing": '{"thresholds": {"a": {}}, "hash": ""}',
    }
    for name, content in contents.items():
        yield Case(
            f"thresholds.json, {name}",
            SEARCH,
            "Calibrating again: .*thresholds.json cannot be read",
            code=0,
            harm=writes("thresholds.json", content),
        )


def _of_outputs():
    fit = ("fit", "<images>", "--backbone", "small_cnn", "--output")
    embed = ("embed", "<run>", "<images>", "--output")
    for name, command in (("fit", fit), ("embed", embed)):
        yield Case(
            f"an output below a file: {name}",
            (*command, "<run>/log.txt/below"),
            "log.txt",
        )
        yield Case(
            f"an output of a name too long: {name}",
            (*command, f"<run>/{'x' * 300}"),
            "File name too long",
        )
        yield Case(
            f"an output that is a device: {name}",
            (*command, "/dev/null"),
            "exists and is not",
        )


CASES = [
    *_of_metrics(),
    *_of_history(),
    *_of_config(),
    *_of_embedder(),
    *_of_checkpoints(),
    *_of_embeddings(),
    *_of_weights(),
    *_of_thresholds(),
    *_of_outputs(),
]
