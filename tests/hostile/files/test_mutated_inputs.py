"""Random damage to what a user hands in is refused, or read as it says.

Each reader is called by itself, so that hundreds of files take a second.
"""

import dataclasses
import json
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.config.plans import load_plan
from keras_dml.data import readers
from keras_dml.data.image_list import list_images
from keras_dml.embeddings import load_embeddings, save_embeddings
from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation.index.scann import ScannIndex
from keras_dml.export.artifact import read_manifest
from keras_dml.models.conversion.reading import read_checkpoint
from keras_dml.run import thresholds
from tests.hostile.files.test_mutations import some_rows
from tests.hostile.mutations import mutated
from tests.hostile.runner import LONGEST, limited
from tests.images import image_folder
from tests.thorough import ALL

TIMES = 300 if ALL else 60
CONFIGS = resources.files("keras_dml.configs")


def image_table(folder):
    images = image_folder(folder / "images", images=2, size=8)
    lines = ["path,label,split"]
    lines += [
        f"images/{path.relative_to(images)},{path.parent.name},"
        f"{'test' if path.parent.name < 'class_2' else 'train'}"
        for path in sorted(images.glob("*/*"))
    ]
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return "list.csv"


def recipe(folder):
    text = (CONFIGS / "recipes" / "proxy_anchor.yaml").read_text()
    (folder / "mine.yaml").write_text(text)
    return "mine.yaml"


def plan(folder):
    text = (CONFIGS / "plans" / "omniglot_tournament.yaml").read_text()
    (folder / "mine.yaml").write_text(text)
    return "mine.yaml"


def shards(folder):
    save_embeddings(folder / "shard-00000.npz", some_rows())
    values = {
        **{"made_by": "keras-dml embed", "format": "npz", "shard_size": 40},
        **{"num_images": 40, "labels": True, "dim": 8, "weights_hash": "f00"},
        **{"digests": ["0"], "finished": True, "rows": 40, "shard_rows": [40]},
    }
    (folder / "manifest.json").write_text(json.dumps(values))
    return "manifest.json"


def export_manifest(folder):
    values = {
        "made_by": "keras-dml",
        "format": "litert",
        "image": {
            **{"height": 16, "width": 16, "channels": 3, "resize": 16},
            **{"squash": False, "values": [0, 255], "crop": "center"},
        },
        "embedding": {"dim": 16, "unit_length": True},
    }
    (folder / "manifest.json").write_text(json.dumps(values, indent=2))
    return "manifest.json"


def stored_thresholds(folder):
    threshold = {
        **{"score": 0.5, "target_fmr": 0.01, "fmr": 0.009, "fnmr": 0.2},
        **{"num_impostors": 900, "num_genuine": 90},
        **{"metric": "cosine", "decision": "pairs"},
    }
    entry = {"threshold": threshold, "wrong_answers": 0.1}
    entry |= {"num_images": 90, "num_classes": 9}
    values = {"hash": "f00", "thresholds": {"pairs 0.01": entry}}
    (folder / "thresholds.json").write_text(json.dumps(values))
    return "thresholds.json"


def weights(kind):
    def make(folder):
        rng = np.random.default_rng(0)
        arrays = {
            f"block.{n}.weight": rng.normal(size=(n + 1, 3)) for n in (1, 2)
        }
        path = folder / f"weights.{kind}"
        if kind == "npz":
            np.savez(path, **arrays)
        elif kind == "safetensors":
            pytest.importorskip("safetensors.numpy").save_file(arrays, path)
        else:
            torch = pytest.importorskip("torch")
            entries = {key: torch.tensor(one) for key, one in arrays.items()}
            torch.save(entries, path)
        return path.name

    return make


def index(folder):
    pytest.importorskip("scann")
    built = ScannIndex("dot", num_leaves=4, leaves_to_search=2)
    built.build(some_rows().embeddings).save(folder / "index")
    return "index/index.npz"


def read_thresholds(path):
    folder = SimpleNamespace(path=path.parent)
    return thresholds._read(
        SimpleNamespace(folder=folder, weights_hash="f00", suffix="")
    )


@dataclasses.dataclass(frozen=True)
class Input:
    """A file that damage strikes.

    Attributes:
        make: Function that writes what a folder needs, and returns the name
            of the file to damage.
        read: Function that reads the file.
    """

    make: object
    read: object


INPUTS = {
    "a table of images": Input(
        image_table, lambda path: readers.read(str(path))
    ),
    "a list of images": Input(image_table, lambda path: list_images(str(path))),
    "a recipe": Input(recipe, lambda path: resolve(str(path), "digits")),
    "a plan": Input(plan, lambda path: load_plan(path)),
    "a manifest of shards": Input(
        shards, lambda path: load_embeddings(path.parent)
    ),
    "a manifest of an export": Input(
        export_manifest, lambda path: read_manifest(path.parent)
    ),
    "thresholds": Input(stored_thresholds, read_thresholds),
    **{
        f"weights as {kind}": Input(
            weights(kind), lambda path: read_checkpoint(path, "torch")
        )
        for kind in ("npz", "safetensors", "pth")
    },
    "the table of a ScaNN index": Input(
        index, lambda path: ScannIndex.load(path.parent)
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_mutated_input(name, tmp_path):
    path = tmp_path / INPUTS[name].make(tmp_path)
    INPUTS[name].read(path)
    content, refused = path.read_bytes(), 0
    for seed in range(TIMES):
        path.write_bytes(mutated(content, seed))
        with limited():
            try:
                INPUTS[name].read(path)
            except (UsageError, RunError) as error:
                assert 0 < len(str(error)) <= LONGEST, seed
                refused += 1
    # Damaged thresholds are calibrated again.
    assert refused > TIMES / 4 or name == "thresholds", refused
