"""`import keras_dml`: quick, lazy, the same in every program."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_dml
from keras_dml.api import _default_output
from keras_dml.config import resolve
from keras_dml.embed.local import embed_source
from keras_dml.embeddings import load_embeddings
from keras_dml.errors import UsageError
from keras_dml.run.trained_run import with_data
from keras_dml.wording import metric_title
from tests.conftest import ROOT
from tests.images import image_folder, turned_file, turned_folder

QUICK = {
    "stages.0.phases.0.epochs": 1,
    "sampling.steps_per_epoch": 4,
    "model.dim": 8,
    "evaluation.k": [1, 2],
}


def python(code, cwd=None):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_loads_nothing_heavy():
    code = (
        "import sys, time\n"
        "start = time.perf_counter()\n"
        "import keras_dml\n"
        "seconds = time.perf_counter() - start\n"
        "heavy = {'keras', 'tensorflow', 'numpy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert not hasattr(keras_dml, 'layerz')\n"
        "print(seconds)"
    )
    assert float(python(code)) < 0.3


@pytest.mark.parametrize("given", [None, "0"])
@pytest.mark.parametrize(
    ("variable", "wanted"),
    [("TF_CPU_ALLOCATOR_USE_BFC", "true"), ("TF_ENABLE_ONEDNN_OPTS", "1")],
)
def test_tensorflow_is_fast_unless_told_otherwise(
    variable, wanted, given, monkeypatch
):
    monkeypatch.delenv(variable, raising=False)
    if given is not None:
        monkeypatch.setenv(variable, given)
    code = f"import os, keras_dml\nprint(os.environ[{variable!r}], end='')"
    assert python(code) == (given or wanted)


def test_help_appears_at_once():
    """Half a second, or four imports of what draws it on a slow machine."""

    def seconds(*arguments):
        code = (
            "import resource, subprocess, sys\n"
            f"command = [sys.executable, *{arguments}]\n"
            "subprocess.run(command, check=True, capture_output=True)\n"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
            "print(used.ru_utime + used.ru_stime)"
        )
        return float(python(code))

    drawing = "-c", "import typer, rich.console, rich.panel"
    # In turns, since the pace of a machine changes.
    turns = [
        (seconds("-m", "keras_dml", "--help"), seconds(*drawing))
        for _ in range(4)
    ]
    shown, needed = (min(times) for times in zip(*turns, strict=True))
    assert shown < max(0.5, 4 * needed)


def test_no_function_takes_more_than_ten_parameters():
    for file in [*ROOT.glob("keras_dml/**/*.py"), *ROOT.glob("export/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            # Constructors of layers and callbacks take what Keras takes.
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                names = [*node.args.args, *node.args.kwonlyargs]
                assert len(names) <= 10, f"{file.name}: {node.name}"


def test_what_is_listed_exists():
    assert dir(keras_dml) == keras_dml.__all__
    for name in dir(keras_dml):
        assert getattr(keras_dml, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        keras_dml.fitt  # noqa: B018


@pytest.mark.slow
def test_a_saved_embedder_loads_without_another_import(run):
    path = run.folder.embedder
    code = (
        "from keras_dml.models import load_embedder\n"
        f"print(load_embedder({str(path)!r}).output_shape[-1])"
    )
    assert python(code).strip() == "8"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return image_folder(tmp_path_factory.mktemp("data") / "photos")


@pytest.fixture(scope="module")
def run(photos, tmp_path_factory):
    return keras_dml.fit(
        photos,
        backbone="small_cnn",
        settings=QUICK,
        seed=3,
        output=tmp_path_factory.mktemp("runs") / "photos",
    )


def test_a_run_is_the_same_from_disk(run):
    again = keras_dml.Run(run.folder.path)
    assert again.metrics == run.metrics
    assert again.config == run.config
    assert len(again.history) == 1
    assert again.embedder.output_shape == (None, 8)
    assert (run.folder.path / "report.html").is_file()


@pytest.mark.slow
def test_photos_that_were_moved_are_found_where_they_are(run, photos, tmp_path):
    folder, moved = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(run.folder.path, folder)
    shutil.copytree(photos, moved)
    record = folder / "config.yaml"
    record.write_text(record.read_text().replace(str(photos), "/old/photos"))
    (folder / "report.html").unlink()
    again = keras_dml.Run(folder, data_dir=moved)
    assert again.part("test").images.paths[0].startswith(str(moved))
    assert again.report().is_file()
    with pytest.raises(UsageError, match="`data_dir` names their folder"):
        keras_dml.Run(folder).report()
    table = run.config.changed(data={"source": "/old/list.csv"})
    found = with_data(table, None, moved).data.source
    assert found == str(moved / "list.csv")


def test_folders_of_two_versions_have_two_run_folders(tmp_path):
    for name in ("shoes.v1", "shoes.v2"):
        (tmp_path / name).mkdir()
        config = resolve("norm_softmax", str(tmp_path / name))
        assert _default_output(config) == Path(f"runs/{name}-norm_softmax-0")


def test_a_folder_of_data_that_would_not_be_read_is_refused(tmp_path):
    """Another folder of that name, here, trained instead."""
    (tmp_path / "photos").mkdir()
    with pytest.raises(UsageError, match="`data_dir` is the folder of a data"):
        keras_dml.fit(tmp_path / "photos", data_dir=tmp_path)


def test_a_folder_without_a_name_has_that_of_its_place(tmp_path, monkeypatch):
    """The run folder of `fit .` was `runs/-norm_softmax-0`."""
    (tmp_path / "shoes" / "boot").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shoes" / "boot")
    for source, name in ((".", "boot"), ("..", "shoes"), ("./", "boot")):
        config = resolve("norm_softmax", source)
        assert _default_output(config) == Path(f"runs/{name}-norm_softmax-0")


def test_a_run_prints_one_line_and_a_table(run):
    title, columns, *rows = str(run).splitlines()
    assert "photos, recipe norm_softmax" in title and "unseen" in title
    assert columns.split()[-5:] == ["trained", "gain", "95", "%", "interval"]
    assert rows[0].split()[0] == "MAP@R"
    values = {row.split()[0]: row.split()[2] for row in rows}
    after = run.metrics["after"]
    assert values == {
        metric_title(name): f"{after[name]:.4f}" for name in after
    }
    assert run._repr_html_().count("<tr>") == 1 + len(after)


@pytest.mark.slow
def test_what_a_run_can_do(run, photos, tmp_path):
    measured = run.evaluate()
    after = run.metrics["after"]
    assert measured.exact.metrics["map@r"] == pytest.approx(after["map@r"])
    query = sorted(photos.rglob("*.*g"))[0]
    assert len(run.search(query, k=3).answers[0].neighbors) == 3
    done = run.embed(photos, tmp_path / "vectors.npz")
    assert done.dim == 8
    rows = run.export("litert", quantize="float16", output=tmp_path / "export")
    assert len(rows) == 2


@pytest.mark.slow
def test_a_run_is_trained_again_from_its_configuration(
    run, photos, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    moved = photos.rename(photos.with_name("moved"))
    try:
        again = keras_dml.fit(
            moved,
            config=run.folder.record,
            output="again",
            report=False,
            weights=None,
        )
    finally:
        moved.rename(photos)
    assert again.config.seed == 3
    for part in ("pretrained", "before", "after"):
        assert again.metrics[part] == run.metrics[part]
    # Where it was, from another working directory.
    third = keras_dml.fit(config=run.folder.record, output="3", report=False)
    assert third.metrics["after"] == run.metrics["after"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs the `source`.*or the `config`"),
        ({"config": "c.yaml", "recipe": "triplet"}, "recipe='triplet' as well"),
        ({"config": "absent.yaml"}, "absent.yaml"),
    ],
)
def test_arguments_that_do_not_go_together(arguments, message):
    with pytest.raises(UsageError, match=message):
        keras_dml.fit(**arguments)


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match=r"`epoch` is no option .*'epochs'"):
        keras_dml.fit("digits", epoch=3)


def test_images_are_embedded_as_the_run_does(run, photos):
    embedder = keras_dml.ImageEmbedder(run.folder.path)
    paths = sorted(photos.rglob("*.*g"))[:3]
    rows = embedder(paths)
    assert rows.shape == (3, 8)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    contents = [paths[0].read_bytes(), str(paths[1]), paths[2]]
    np.testing.assert_allclose(embedder(contents), rows, atol=1e-6)
    np.testing.assert_allclose(embedder(paths[0]), rows[:1], atol=1e-6)
    assert embedder([]).shape == (0, 8)


@pytest.mark.slow
def test_photos_are_embedded_upright(run, tmp_path):
    paths = sorted(turned_folder(tmp_path / "photos").rglob("*.jpeg"))
    rows = keras_dml.ImageEmbedder(run.folder.path)(paths)
    np.testing.assert_allclose(rows, rows[:1].repeat(16, 0), atol=0.01)
    embed_source(run.folder.path, str(tmp_path / "photos"), tmp_path / "out")
    written = load_embeddings(tmp_path / "out")
    np.testing.assert_allclose(written.embeddings, rows, atol=1e-5)
    on_its_side = turned_file(6, exif=b"")
    (other,) = keras_dml.ImageEmbedder(run.folder.path)([on_its_side])
    assert np.abs(other - rows[0]).max() > 0.03


def test_arrays_are_embedded_without_a_run_folder(run, tmp_path):
    path = tmp_path / "mine.keras"
    run.embedder.save(path)
    side = run.embedder.input_shape[1]
    image = np.random.default_rng(0).integers(
        0, 256, (side, side, 3), dtype=np.uint8
    )
    rows = keras_dml.ImageEmbedder(path)([image, image])
    expected = run.embedder(image[None].astype("float32"))
    np.testing.assert_allclose(rows, np.repeat(expected, 2, 0), atol=1e-5)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"no image", r"`images\[1\]` cannot be read.*8 bytes"),
        ("absent.jpg", "Received: 'absent.jpg'"),
        (3, "must be paths or bytes"),
    ],
)
def test_what_is_no_image_is_named(run, photos, image, message):
    good = next(photos.rglob("*.*g"))
    with pytest.raises(UsageError, match=message):
        keras_dml.ImageEmbedder(run.folder.path)([good, image])


def test_arrays_must_be_bytes_of_three_dimensions(run):
    embedder = keras_dml.ImageEmbedder(run.folder.path)
    for array in (
        np.zeros((4, 4, 3), np.float32),
        np.zeros((4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
    ):
        with pytest.raises(UsageError, match="must be uint8 arrays"):
            embedder([array])


def test_other_images_are_measured_without_the_choices_of_the_own():
    """They were cut as the run's were, or refused for its triplets."""
    config = resolve(
        "triplet",
        "omniglot",
        overrides={
            "data.max_classes": 20,
            "data.train_fraction": 0.9,
            "sampling": {"kind": "triplets", "triplets": "triplets.csv"},
        },
    )
    other = with_data(config, "digits", None)
    assert (other.data.max_classes, other.data.train_fraction) == (None, None)
    assert other.sampling.triplets is None
    moved = with_data(config, None, "elsewhere")
    assert moved.sampling == config.sampling
    assert moved.data.max_classes == 20
