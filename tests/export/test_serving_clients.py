"""The clients of `examples/serving` against servers of both protocols."""

import csv
import json
import runpy
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format

from keras_dml.export.warm_up import MODEL_NAME
from tests.conftest import ROOT
from tests.export.images import BROKEN, FILES
from tests.export.servers import call, grpc_server, nearest_of, rest_server

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples" / "serving"
GOOD = [FILES["jpeg"], FILES["alpha_png"], FILES["webp"]]
IMAGES = [*GOOD[:1], BROKEN["truncated_jpeg"], *GOOD[1:]]


@pytest.fixture(scope="module")
def signatures(indexed_folder):
    return tf.saved_model.load(str(indexed_folder)).signatures


@pytest.fixture(params=["rest", "grpc"])
def client(request, signatures):
    """Pair of a client's functions and the arguments that name the server."""
    if request.param == "grpc":
        pytest.importorskip("tensorflow_serving")
    server = {"rest": rest_server, "grpc": grpc_server}[request.param]
    path = EXAMPLES / f"{request.param}_client.py"
    option = {"rest": "--url", "grpc": "--target"}[request.param]
    with server(signatures) as address:
        yield runpy.run_path(str(path)), address, (path, option)


def column(answer, key):
    """Of a dict of arrays, or of one dict for each row."""
    if isinstance(answer, dict):
        return answer[key]
    return np.array([row[key] for row in answer])


def read_references(folder):
    """The label of each id, and none of no id."""
    with open(folder / "assets" / "references.csv", newline="") as file:
        rows = csv.DictReader(file)
        return {row["id"]: row["label"] for row in rows} | {"": ""}


def test_embeddings(client, signatures):
    functions, address, _ = client
    answer = functions["predict"](address, IMAGES)
    expected = call(signatures, "serve_image_bytes", {"image_bytes": IMAGES})
    assert column(answer, "ok").tolist() == [True, False, True, True]
    np.testing.assert_allclose(
        column(answer, "embedding"), expected["embedding"], atol=1e-6
    )


def test_without_a_server_the_command_prints_one_line(tmp_path):
    (tmp_path / "a.jpg").write_bytes(GOOD[0])
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for name, option in (
        ("rest", f"--url=http://{address}"),
        ("grpc", f"--target={address}"),
    ):
        if name == "grpc":
            pytest.importorskip("tensorflow_serving")
        done = subprocess.run(
            [
                *(sys.executable, str(EXAMPLES / f"{name}_client.py")),
                *(option, str(tmp_path / "a.jpg")),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and not done.stdout
        (line,) = [
            one for one in done.stderr.splitlines() if "E0000" not in one
        ]
        assert line.startswith("No server answers at ") and address in line


@pytest.mark.parametrize("k", [1, 5, 25])
def test_neighbors(k, client, signatures, indexed_folder):
    functions, address, _ = client
    answer = functions["predict"](address, IMAGES, k)
    ids, scores = nearest_of(signatures, IMAGES, k)
    found = column(answer, "ids")
    if found.dtype == object:
        found = found.astype("S").astype(str)
    np.testing.assert_array_equal(found, ids)
    np.testing.assert_allclose(column(answer, "scores"), scores, atol=1e-6)
    assert set(found[1]) == {""}
    rows = read_references(indexed_folder)
    labels = column(answer, "labels")
    if labels.dtype == object:
        labels = labels.astype("S").astype(str)
    assert labels.tolist() == [[rows[one] for one in row] for row in found]
    assert column(answer, "ok").tolist() == [True, False, True, True]


def test_an_image_that_is_near_to_nothing_matches_nothing(
    client, tmp_path, monkeypatch, capsys
):
    _, address, (path, option) = client
    image, manifest = tmp_path / "a.jpg", tmp_path / "manifest.json"
    image.write_bytes(GOOD[0])
    words = ["--k", "1", "--manifest", str(manifest), str(image)]
    monkeypatch.setattr(sys, "argv", [str(path), option, address, *words])
    for threshold, verdict in (
        (None, ""),
        ({"score": -1.0}, ""),
        ({"score": 1.1}, ": no match"),
    ):
        manifest.write_text(json.dumps({"threshold": threshold}))
        runpy.run_path(str(path), run_name="__main__")
        first, *_ = capsys.readouterr().out.splitlines()
        assert first == f"{image}{verdict}"


def test_what_the_server_refuses_is_said(client):
    functions, address, _ = client
    for arguments, message in (
        ({"k": 0}, r"`k` must be in 1\.\.100"),
        ({"model": "other"}, "Servable not found"),
    ):
        with pytest.raises(SystemExit, match=f"(?s)refused: .*{message}"):
            functions["predict"](address, GOOD, **arguments)


def test_the_command(client, signatures, tmp_path, monkeypatch, capsys):
    _, address, (path, option) = client
    names = []
    for name, content in zip("ab", IMAGES, strict=False):
        names.append(str(tmp_path / name))
        (tmp_path / name).write_bytes(content)
    ids, _ = nearest_of(signatures, IMAGES[:1], 20)
    for arguments, expected in (
        (["--k", "25"], [names[0], *ids[0]]),
        ([], [names[0]]),
    ):
        argv = [str(path), option, address, *arguments, *names]
        monkeypatch.setattr(sys, "argv", argv)
        runpy.run_path(str(path), run_name="__main__")
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == f"{names[1]}: no image that can be decoded"
        assert len(lines) == len(expected) + 1
        for line, part in zip(lines, expected, strict=False):
            assert part in line


def test_the_servers_configuration_is_what_the_server_reads():
    config = pytest.importorskip(
        "tensorflow_serving.config.model_server_config_pb2"
    )
    text = (EXAMPLES / "models.config").read_text()
    parsed = text_format.Parse(text, config.ModelServerConfig())
    (model,) = parsed.model_config_list.config
    assert model.name == MODEL_NAME
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
    service = compose["services"][MODEL_NAME]
    folder, *_ = [one for one in service["volumes"] if "EXPORT" in one]
    assert f"}}:{model.base_path}/1:ro" in folder
    mounted = " ".join(service["volumes"])
    for option in service["command"]:
        path = option.partition("=")[2]
        if path.startswith("/"):
            assert path in mounted
            assert (EXAMPLES / path.rpartition("/")[2]).is_file()
