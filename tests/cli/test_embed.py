"""`keras-dml embed`: every image once, whatever happens in between."""

import csv
import json
import os
import shutil
import signal
import time

import numpy as np
import pytest
from PIL import Image

from keras_dml.embeddings import load_embeddings
from tests.cli.refusals import refused
from tests.data.readers.test_cars196 import small_kit
from tests.zygote import Forked

HALF = ("--shard-size", "100", "--batch-size", "32")


def done(outcome):
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.fixture(scope="module")
def reference(finished_run, images):
    """What the run itself computes, image by image."""
    from keras_dml.data import readers
    from keras_dml.run.trained_run import TrainedRun

    opened = TrainedRun(finished_run)
    manifest = readers.read(str(images))
    return {
        "ids": manifest.ids.tolist(),
        "labels": [manifest.class_names[one] for one in manifest.labels],
        "embeddings": opened.embed_images(manifest),
        "hash": opened.weights_hash,
    }


def assert_same(path, reference, rows=slice(None)):
    loaded = load_embeddings(path)
    assert loaded.ids.tolist() == reference["ids"][rows]
    assert loaded.labels.tolist() == reference["labels"][rows]
    assert loaded.weights_hash == reference["hash"]
    np.testing.assert_allclose(
        loaded.embeddings, reference["embeddings"][rows], atol=1e-5
    )


@pytest.mark.slow
def test_shards_hold_what_the_evaluation_computes(
    command, finished_run, images, reference, tmp_path
):
    folder = tmp_path / "vectors"
    outcome = done(
        command("embed", finished_run, images, "--output", folder, *HALF)
    )
    assert "Embedded 528 of 528 images" in outcome.out
    names = [f"shard-{number:05d}.npz" for number in range(6)]
    files = [".lock", "manifest.json", *names]
    assert sorted(os.listdir(folder)) == files
    assert_same(folder, reference)
    with np.load(folder / "shard-00005.npz") as shard:
        assert shard["embeddings"].shape == (28, 16)
        assert set(shard.files) == {"embeddings", "labels", "ids", "hash"}
    evaluated = done(command("evaluate", "--embeddings", folder, "--json"))
    whole = tmp_path / "vectors.npz"
    done(command("embed", finished_run, images, "--output", whole, *HALF))
    assert sorted(os.listdir(tmp_path)) == ["vectors", "vectors.npz"]
    assert_same(whole, reference)
    again = done(command("evaluate", "--embeddings", whole, "--json"))
    assert json.loads(again.out) == json.loads(evaluated.out)


@pytest.mark.slow
def test_parquet(command, finished_run, images, reference, tmp_path):
    pytest.importorskip("pyarrow")
    folder, file = tmp_path / "vectors", tmp_path / "all.parquet"
    more = ("--format", "parquet", *HALF)
    done(command("embed", finished_run, images, "--output", folder, *more))
    assert (folder / "shard-00005.parquet").is_file()
    assert_same(folder, reference)
    done(command("embed", finished_run, images, "--output", file, *HALF))
    assert_same(file, reference)


@pytest.mark.slow
def test_after_a_kill_no_row_is_missing_or_twice(
    command, finished_run, images, reference, tmp_path
):
    """A real process, killed by the system while it writes shards."""
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    for number in range(4):
        (source / "class_05" / f"cut{number}.png").write_bytes(b"\x89PNG cut")
    folder = tmp_path / "vectors"
    arguments = [
        *("embed", str(finished_run), str(source), "--output", str(folder)),
        *("--shard-size", "4", "--batch-size", "4"),
    ]
    with open(os.devnull, "w") as nothing:
        process = Forked(
            *("keras_dml", *arguments), stdout=nothing, stderr=nothing
        )
    try:
        end = time.monotonic() + 120
        while not (folder / "shard-00020.npz").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["finished"] is False
    refused(command("evaluate", "--embeddings", folder), "--resume")
    before = {
        path: path.stat().st_mtime_ns for path in folder.glob("shard-*.npz")
    }
    assert 20 < len(before) < 133
    # What the kill may also have left: a list of bad images ahead of its
    # shard, half a shard under its temporary name.
    half = folder / ".shard-00132.0a1b2c3d.partial.npz"
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    last = "class_43/11.png"
    with open(folder / "bad.csv", "a") as file:
        file.write(f"{last},{source / last},not true\n")
    refused(command(*arguments), "--resume")
    outcome = done(command(*arguments, "--resume", "--json"))
    summary = json.loads(outcome.out)
    assert (summary["images"], summary["rows"], summary["bad"]) == (532, 528, 4)
    assert_same(folder, reference)
    with open(folder / "bad.csv") as file:
        bad = list(csv.DictReader(file))
    assert [row["id"] for row in bad] == [
        f"class_05/cut{number}.png" for number in range(4)
    ]
    for path, written in before.items():
        assert path.stat().st_mtime_ns == written
    assert [path.name for path in folder.glob(".*")] == [".lock"]
    again = done(command(*arguments, "--resume", "--json"))
    assert json.loads(again.out)["seconds"] == 0


def test_bad_images_are_listed_and_skipped(
    command, finished_run, images, tmp_path
):
    photos = tmp_path / "photos"
    (photos / "2024" / "may").mkdir(parents=True)
    good = images / "class_30" / "03.png"
    shutil.copy(good, photos / "a.png")
    shutil.copy(good, photos / "2024" / "may" / "b.png")
    Image.new("RGB", (1, 1), "red").save(photos / "one pixel.png")
    Image.new("L", (700, 500)).save(photos / "large.png")
    (photos / "cut.png").write_bytes(good.read_bytes()[:-30])
    (photos / "letter.jpg").write_text("Dear all")
    (photos / "empty.gif").touch()
    (photos / "notes.txt").write_text("not looked at")
    output = tmp_path / "out.npz"
    arguments = ("embed", finished_run, photos, "--output", output)
    limit = ("--max-pixels", "300000")
    outcome = done(command(*arguments, *limit))
    assert "Skipped 4 images" in outcome.out
    loaded = load_embeddings(output, need_labels=False)
    assert loaded.ids.tolist() == ["2024/may/b.png", "a.png", "one pixel.png"]
    assert loaded.labels is None
    np.testing.assert_array_equal(loaded.embeddings[0], loaded.embeddings[1])
    with open(tmp_path / "out.npz.bad.csv", newline="") as file:
        bad = {row["id"]: row for row in csv.DictReader(file)}
    assert bad["cut.png"]["path"] == str(photos / "cut.png")
    assert {name: row["reason"] for name, row in bad.items()} == {
        "cut.png": bad["cut.png"]["reason"],
        "empty.gif": "the file is empty",
        "large.png": "it has 350,000 pixels, more than the limit of 300,000",
        "letter.jpg": "it is not an image of a known format",
    }
    assert "PNG" in bad["cut.png"]["reason"]
    refused(command("evaluate", "--embeddings", output), "'labels'")
    failed = command(*arguments, *limit, "--resume", "--fail-on-bad")
    refused(failed, "4 of 7 images", "out.npz.bad.csv", code=1)
    refused(command(*arguments, "--resume"), "`--max-pixels` was 300000")


@pytest.mark.slow
def test_no_readable_image_is_an_error(command, finished_run, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.jpg").write_text("Dear all")
    for output in ("out.npz", "out"):
        place = tmp_path / output
        outcome = command("embed", finished_run, photos, "--output", place)
        refused(outcome, "None of the 1 images", "bad.csv", code=1)
    assert sorted(os.listdir(tmp_path)) == ["out", "out.npz.bad.csv", "photos"]


@pytest.mark.slow
def test_a_source_that_changed_is_refused(command, run, images, tmp_path):
    source = tmp_path / "photos"
    for name in ("class_01", "class_02"):
        shutil.copytree(images / name, source / name)
    for output in (tmp_path / "vectors", tmp_path / "vectors.npz"):
        arguments = ("embed", run, source, "--output", output)
        sized = (*arguments, "--shard-size", "10")
        done(command(*sized))
        refused(command(*arguments, "--resume"), "`--shard-size` was 10")
        changed = source / "class_02" / "11.png"
        content = changed.read_bytes()
        shutil.copy(images / "class_03" / "11.png", changed)
        refused(command(*sized, "--resume"), "from number 20 on")
        changed.unlink()
        refused(command(*sized, "--resume"), "`num_images` was 24, received 23")
        changed.write_bytes(content)


def change_weights(run, change):
    """Changes the network, as if the run had been trained again."""
    import keras

    from keras_dml.run.cache import weights_hash

    path = run / "embedder.keras"
    model = keras.saving.load_model(path, compile=False)
    model.set_weights([change(weight) for weight in model.get_weights()])
    model.save(path)
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["weights_hash"] = weights_hash(model)
    (run / "metrics.json").write_text(json.dumps(metrics))


def test_other_weights_are_refused(command, run, images, tmp_path):
    source = images / "class_01"
    arguments = ("embed", run, source, "--output", tmp_path / "vectors")
    done(command(*arguments))
    change_weights(run, lambda weight: weight + 0.1)
    refused(command(*arguments, "--resume"), "`weights_hash` was")


@pytest.mark.slow
def test_weights_that_overflow_are_an_error(command, run, images, tmp_path):
    change_weights(run, lambda weight: weight * np.nan)
    output = tmp_path / "vectors"
    outcome = command("embed", run, images / "class_01", "--output", output)
    refused(outcome, "00.png is not finite", code=1)
    assert not list(output.glob("shard*"))


def test_a_data_set_in_memory(command, tmp_path, finished_run, images):
    """Its images are not files; the model takes three channels of 16 px."""
    output = tmp_path / "digits.npz"
    arguments = ("embed", finished_run, "digits", "--output", output)
    done(command(*arguments, "--shard-size", "1000"))
    loaded = load_embeddings(output)
    assert loaded.embeddings.shape == (1797, 16)
    assert set(loaded.labels.tolist()) == set("0123456789")


def test_a_table(command, finished_run, images, reference, tmp_path):
    names = ["class_30/03.png", "class_02/01.png", "class_02/99.png"]
    table = tmp_path / "list.csv"
    (tmp_path / "class_30").symlink_to(images / "class_30")
    (tmp_path / "class_02").symlink_to(images / "class_02")
    table.write_text("path\n" + "\n".join(names) + "\n")
    output = tmp_path / "out"
    done(command("embed", finished_run, table, "--output", output))
    loaded = load_embeddings(output, need_labels=False)
    assert loaded.ids.tolist() == names[:2]
    rows = [reference["ids"].index(name) for name in names[:2]]
    np.testing.assert_allclose(
        loaded.embeddings, reference["embeddings"][rows], atol=1e-5
    )
    assert "no such file" in (output / "bad.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["absent", "IMAGES"], ["There is no run folder absent"]),
        (["RUN", "nowhere"], ["nowhere", "no known data set"]),
        (["RUN", "EMPTY"], ["must hold images"]),
        (["RUN", "IMAGES", "--format", "csv"], ["'npz', 'parquet'", "'csv'"]),
        (
            ["RUN", "IMAGES", "--format", "parquet", "--output", "x.npz"],
            ["must agree", "x.npz"],
        ),
        (["RUN", "IMAGES", "--output", "FULL"], ["exists and is not"]),
        (["RUN", "IMAGES", "--output", "FOREIGN"], ["exists and"]),
    ],
)
def test_mistakes(command, finished_run, images, tmp_path, arguments, parts):
    places = {
        "RUN": finished_run,
        "IMAGES": images,
        "EMPTY": tmp_path / "empty",
        "FULL": tmp_path / "full",
        "FOREIGN": tmp_path / "foreign.npz",
    }
    places["EMPTY"].mkdir()
    places["FULL"].mkdir()
    (places["FULL"] / "thesis.txt").write_text("do not touch")
    np.savez(places["FOREIGN"], x=1)
    if "--output" not in arguments:
        arguments = [*arguments, "--output", tmp_path / "refused"]
    before = sorted(os.listdir(tmp_path))
    outcome = command("embed", *(places.get(one, one) for one in arguments))
    refused(outcome, *parts)
    assert sorted(os.listdir(tmp_path)) == before
    assert os.listdir(tmp_path / "full") == ["thesis.txt"]


def test_a_run_of_an_incomplete_data_set_embeds_one(command, run, images):
    folder = run.parent / "cars"
    small_kit(folder)
    photo = next(images.rglob("*.png")).read_bytes()
    for file in folder.rglob("*.jpg"):
        file.write_bytes(photo)
    arguments = ("embed", run, "cars196", "--data-dir", folder, "--output")
    refused(command(*arguments, run.parent / "refused"), "allow_partial")
    settings = (run / "config.yaml").read_text()
    assert "allow_partial: false" in settings
    (run / "config.yaml").write_text(
        settings.replace("allow_partial: false", "allow_partial: true")
    )
    assert command(*arguments, run.parent / "vectors.npz").code == 0
    assert len(load_embeddings(run.parent / "vectors.npz")) == 4
