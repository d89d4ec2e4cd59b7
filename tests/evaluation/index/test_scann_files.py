import json
import os
import pickle
import shutil

import numpy as np
import pytest

from keras_dml import npz
from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.index.scann import ScannIndex
from keras_dml.evaluation.index.scann_searcher import ScannSearcher

pytest.importorskip("scann")


def make(rows=300, seed=0):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, 8)).astype("float32")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "index"
    index = ScannIndex(
        "dot",
        num_leaves=9,
        leaves_to_search=3,
        reorder=50,
        dimensions_per_block=4,
        anisotropic_threshold=0.1,
        weights_hash="abc",
    )
    index.build(make(), [f"{row:03}" for row in range(300)]).save(path)
    return path


def only_folder(path):
    (folder,) = (entry for entry in path.iterdir() if entry.is_dir())
    return folder


def test_settings_come_back(saved):
    index = ScannIndex.load(saved)
    assert (index.metric, index.weights_hash) == ("dot", "abc")
    assert (index.num_leaves, index.leaves_to_search) == (9, 3)
    assert (index.reorder, index.dimensions_per_block) == (50, 4)
    assert index.anisotropic_threshold == 0.1
    assert index.trained_shape.num_leaves == 9
    assert index.ids[7] == "007"


def test_no_pickle_is_written(saved):
    names = {path.name for path in saved.rglob("*") if path.is_file()}
    assert "index.npz" in names
    assert not any(name.endswith((".pkl", ".pickle")) for name in names)


def test_saving_again_replaces(saved):
    ScannIndex().build(make(40, seed=1)).save(saved)
    assert len(ScannIndex.load(saved).ids) == 40
    assert {entry.name for entry in saved.iterdir()} == {"index.npz", "scann-1"}


@pytest.mark.parametrize("failing", ["write", "write_npz"])
def test_a_failure_leaves_the_former_index(saved, failing, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError("disk full")

    before = sorted(saved.rglob("*"))
    owner = ScannSearcher if failing == "write" else npz
    index = ScannIndex().build(make(40))
    monkeypatch.setattr(owner, failing, fail)
    with pytest.raises(OSError, match="disk full"):
        index.save(saved)
    assert sorted(saved.rglob("*")) == before
    assert len(ScannIndex.load(saved).ids) == 300


def test_what_a_kill_left_is_passed_over_and_cleared(saved):
    shutil.copytree(only_folder(saved), saved / "scann-1")
    (saved / "scann-1" / "dataset.npy").write_bytes(b"half")
    assert len(ScannIndex.load(saved).ids) == 300
    ScannIndex().build(make(40)).save(saved)
    assert {entry.name for entry in saved.iterdir()} == {"index.npz", "scann-2"}
    assert len(ScannIndex.load(saved).ids) == 40


def test_a_flipped_bit_in_any_file_is_noticed(saved):
    """ScaNN returned other neighbors, or ended the process."""
    for file in only_folder(saved).iterdir():
        whole = file.read_bytes()
        place = len(whole) // 2
        flipped = bytes([whole[place] ^ 1])
        file.write_bytes(whole[:place] + flipped + whole[place + 1 :])
        with pytest.raises(UsageError, match=f"{file.name}, which is dam"):
            ScannIndex.load(saved)
        file.write_bytes(whole)
    assert len(ScannIndex.load(saved).ids) == 300


def test_may_be_moved(saved, tmp_path):
    moved = saved.rename(tmp_path / "elsewhere")
    assert len(ScannIndex.load(moved).ids) == 300


def test_leaves_what_is_not_its_own(tmp_path):
    index = ScannIndex().build(make(20))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    ExactIndex().build(make(20)).save(tmp_path / "exact.npz")
    (tmp_path / "numbers" / "7").mkdir(parents=True)
    for name in ("photos", "exact.npz", "numbers"):
        with pytest.raises(UsageError, match="holds something else"):
            index.save(tmp_path / name)
    (tmp_path / "empty").mkdir()
    index.save(tmp_path / "empty")
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "cat"


class Crafted:
    """Would write a file if anything read its pickle."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_is_refused_and_never_run(saved, tmp_path):
    target = tmp_path / "ran"
    with open(only_folder(saved) / "scann_docids.pkl", "wb") as file:
        pickle.dump(Crafted(target), file)
    with pytest.raises(UsageError, match="missing, cut or foreign files"):
        ScannIndex.load(saved)
    np.savez(saved / "index.npz", header=np.array([Crafted(target)], object))
    with pytest.raises(UsageError, match="a pickle, which is never loaded"):
        ScannIndex.load(saved)
    assert not target.exists()


def edit_header(path, **changes):
    with np.load(path / "index.npz") as file:
        arrays = dict(file)
    header = {**json.loads(str(arrays["header"])), **changes}
    np.savez(path / "index.npz", **{**arrays, "header": json.dumps(header)})
    return header


def test_a_list_of_assets_may_not_leave_the_folder(saved, tmp_path):
    folder = only_folder(saved)
    shutil.copy(folder / "dataset.npy", tmp_path / "dataset.npy")
    assets = folder / "scann_assets.pbtxt"
    assets.write_text(
        assets.read_text().replace('"dataset.npy"', '"../../dataset.npy"')
    )
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    edit_header(saved, sizes=sizes, checksums={})
    with pytest.raises(UsageError, match="assets that names others"):
        ScannIndex.load(saved)


def test_the_folder_may_not_be_elsewhere(saved, tmp_path):
    shutil.copytree(only_folder(saved), tmp_path / "stolen")
    edit_header(saved, folder="../stolen")
    with pytest.raises(UsageError, match="missing, cut or foreign"):
        ScannIndex.load(saved)


def test_refuses_what_is_no_index(saved, tmp_path):
    with pytest.raises(UsageError, match="which is none"):
        ScannIndex.load(tmp_path / "nothing")
    with pytest.raises(UsageError, match="which is none"):
        ScannIndex.load(tmp_path)
    (saved / "index.npz").write_text("no index")
    with pytest.raises(UsageError, match="not a readable `.npz` file"):
        ScannIndex.load(saved)


@pytest.mark.parametrize(
    "name", ["dataset.npy", "scann_config.pb", "serialized_partitioner.pb"]
)
@pytest.mark.parametrize("harm", ["cut", "gone", "other"])
def test_refuses_harmed_files(saved, name, harm):
    path = only_folder(saved) / name
    content = path.read_bytes()
    if harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    if harm == "gone":
        path.unlink()
    if harm == "other":
        path.write_bytes(bytes(len(content)))
    with pytest.raises(UsageError, match="Build the index again"):
        ScannIndex.load(saved)


def test_a_kill_in_the_table_leaves_a_path_that_can_be_saved_to(saved):
    left = saved / ".index.0a1b2c3d.partial.npz"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    ScannIndex().build(make(40)).save(saved)
    assert {entry.name for entry in saved.iterdir()} == {"index.npz", "scann-1"}


def test_settings_may_be_numbers_of_numpy(tmp_path):
    index = ScannIndex(
        leaves_to_search=np.int64(2), anisotropic_threshold=np.float32(0.25)
    )
    index.build(make(40)).save(tmp_path / "index")
    loaded = ScannIndex.load(tmp_path / "index")
    assert loaded.leaves_to_search == 2
    assert loaded.anisotropic_threshold == 0.25
