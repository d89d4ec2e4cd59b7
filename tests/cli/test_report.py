"""`keras-dml report`: one page, complete in itself, that a browser shows."""

import base64
import importlib
import io
import itertools
import json
import re
import shutil
import sys
import types
import webbrowser
import xml.etree.ElementTree as ElementTree
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from keras_dml.embeddings import load_embeddings
from keras_dml.evaluation import evaluate
from keras_dml.wording import metric_title
from tests import browser
from tests.cli.refusals import refused
from tests.commands import run_command

pytestmark = pytest.mark.slow  # trainings

MAX_BYTES = 6_000_000
NUMBER = r"[+\[(]*[\d.,%]+[\])]*"


@pytest.fixture(scope="module")
def reported(tmp_path_factory, finished_run):
    """A finished run with its report."""
    from keras_dml.report import write_report

    folder = tmp_path_factory.mktemp("reported") / "run"
    shutil.copytree(finished_run, folder)
    assert write_report(folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def page(reported):
    """The page, parsed as XML: whatever is not well formed fails here."""
    return ElementTree.parse(reported / "report.html").getroot()


def texts(element):
    return " ".join("".join(element.itertext()).split())


def section(page, name):
    (found,) = page.findall(f".//section[@id='{name}']")
    return found


def rows(table):
    return [[texts(cell) for cell in row] for row in table.iter("tr")]


def test_the_page_asks_for_nothing_from_elsewhere(page, reported):
    for element in page.iter():
        for key, value in element.attrib.items():
            if key in ("src", "href", "srcset", "data", "action"):
                assert value.startswith(("data:image/", "#")), value
    assert not list(page.iter("link")) + list(page.iter("iframe"))
    policy = page.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert "default-src 'none'" in policy.get("content")
    for tag in ("style", "script"):
        for element in page.iter(tag):
            assert "url(" not in element.text
            assert "//" not in element.text
    assert (reported / "report.html").stat().st_size < MAX_BYTES


def test_every_id_is_there_once_and_every_link_leads_somewhere(page):
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    links = [element.get("href")[1:] for element in page.iter("a")]
    assert len(links) >= 8
    assert set(links) <= set(ids)


def test_every_image_decodes_and_says_what_it_shows(page):
    images = list(page.iter("img"))
    assert len(images) > 100
    for image in images:
        assert image.get("alt")
        kind, _, content = image.get("src").partition(";base64,")
        content = base64.b64decode(content, validate=True)
        if kind == "data:image/svg+xml":
            ElementTree.fromstring(content)
            assert b"<image" not in content
        else:
            with Image.open(io.BytesIO(content)) as picture:
                picture.load()
                assert kind == f"data:image/{picture.format.lower()}"


def test_headings_do_not_skip_a_level(page):
    levels = [
        int(element.tag[1])
        for element in page.iter()
        if re.fullmatch("h[1-6]", element.tag)
    ]
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    for cell in page.iter("th"):
        assert cell.get("scope") in ("row", "col")


def test_the_headline_is_the_gain_over_pretrained_features(page, reported):
    metrics = json.loads((reported / "metrics.json").read_text())
    after = metrics["after"]["map@r"]
    headline = texts(page.find(".//p[@class='headline']"))
    assert headline.startswith(f"MAP@R {after:.3f} on 264 queries")
    assert "22 classes never trained on" in headline
    table = rows(section(page, "result").find(".//table"))
    columns = ["metric", "raw pixels", "at the start", "trained", "gain"]
    assert table[0] == [*columns, "95 % interval"]
    names = {metric_title(name): name for name in metrics["after"]}
    assert table[1][0] == "MAP@R"
    for title, *values in table[1:]:
        name = names[title]
        for part, value in zip(
            ("off_the_shelf", "before", "after"), values, strict=False
        ):
            assert value == f"{metrics[part][name]:.3f}"
        low = metrics["gains"]["off_the_shelf"][name]["low"]
        assert values[-1].startswith(f"{low:+.3f} to ")
    first = texts(page.find(".//ul[@class='conclusion']/li"))
    assert "raw pixels: MAP@R" in first
    interval = metrics["gains"]["off_the_shelf"]["map@r"]
    low, high = interval["low"], interval["high"]
    assert f"95 % interval of {low:+.3f} to {high:+.3f}" in first


def test_the_classes_are_those_of_the_run_with_the_worst_first(page, reported):
    table = rows(section(page, "classes").find(".//table"))[1:]
    assert {row[0] for row in table} == {
        f"class_{n:02d}" for n in range(22, 44)
    }
    means = [float(row[4]) for row in table]
    assert means == sorted(means)
    metrics = json.loads((reported / "metrics.json").read_text())
    assert np.mean(means) == pytest.approx(metrics["after"]["map@r"], abs=1e-3)


def test_frames_tell_right_from_wrong(page, reported):
    """Every verdict of the page agrees with a search done here."""
    stored = load_embeddings(reported / "embeddings" / "test.npz")
    scores = stored.embeddings @ stored.embeddings.T
    np.fill_diagonal(scores, -2)
    row_of = {name: row for row, name in enumerate(stored.ids.tolist())}
    queries = section(page, "queries").findall(".//div[@class='query']")
    assert len(queries) == 12
    drawn = set()
    for query in queries:
        figures = query.findall("figure")
        first, *found = [
            (figure.get("class"), figure.find("img").get("title"), figure)
            for figure in figures
        ]
        row = row_of[first[1]]
        drawn.add(stored.labels[row])
        nearest = np.sort(scores[row])[::-1][: len(found)]
        assert len(found) == 8
        for (kind, name, figure), score in zip(found, nearest, strict=True):
            right = stored.labels[row_of[name]] == stored.labels[row]
            assert ("right" in kind, "wrong" in kind) == (right, not right)
            verdict = texts(figure.find(".//span[@class='verdict']"))
            assert verdict[0] == ("✓" if right else "✗")
            assert float(verdict[1:]) == pytest.approx(score, abs=1e-3)
    assert len(drawn) == 12


def test_the_worst_queries_are_the_worst(page, reported):
    stored = load_embeddings(reported / "embeddings" / "test.npz")
    found = re.findall(r"MAP@R ([0-9.]+)", texts(section(page, "worst")))
    shown = [float(value) for value in found]
    result = evaluate(stored.embeddings, stored.labels, k=1).exact
    lowest = result.per_query["map@r"].min()
    assert shown == sorted(shown)
    assert shown[0] == pytest.approx(lowest, abs=6e-4)


def test_what_to_read_in_a_minute_comes_first(page):
    order = [one.get("id") for one in page.iter("section")]
    assert order[:4] == ["result", "worst", "confusions", "map"]
    links = [one.get("href")[1:] for one in page.iter("a")]
    assert links == order


def test_confusions_are_those_of_a_search_done_here(page, reported):
    stored = load_embeddings(reported / "embeddings" / "test.npz")
    scores = stored.embeddings @ stored.embeddings.T
    np.fill_diagonal(scores, -2)
    nearest = stored.names[scores.argmax(axis=1)]
    wrong = nearest != stored.names
    pairs = Counter(
        zip(stored.names[wrong].tolist(), nearest[wrong].tolist(), strict=True)
    )
    cards = section(page, "confusions").findall(".//div[@class='confusion']")
    assert len(cards) == min(12, len(pairs))
    counts = []
    for card in cards:
        ids = [image.get("title") for image in card.iter("img")]
        count, of = texts(card.find("p")).split(" of ")
        assert pairs[tuple(name.partition("/")[0] for name in ids)] == int(
            count
        )
        assert of == "12"
        counts.append(int(count))
    assert counts == sorted(pairs.values(), reverse=True)[: len(counts)]


def test_curves_thresholds_and_configuration_are_there(page):
    training = texts(section(page, "training"))
    assert "2 epochs" in training
    assert "8 steps showed every training image 5.7 times" in training
    assert "Loss" in training and "Validation" in training
    rates = rows(section(page, "similarities").find(".//table"))[1:]
    assert [row[0] for row in rates] == ["0.1", "0.01"]
    assert "recipe: norm_softmax" in texts(section(page, "configuration"))


def test_tensorboard_reads_the_projection(reported):
    """The projector's own code finds as many rows everywhere."""
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed.")
    from google.protobuf import text_format
    from tensorboard.plugins.projector import projector_config_pb2

    folder = reported / "tensorboard"
    config = text_format.Parse(
        (folder / "projector_config.pbtxt").read_text(),
        projector_config_pb2.ProjectorConfig(),
    )
    (entry,) = config.embeddings
    stored = load_embeddings(reported / "embeddings" / "test.npz")
    tensor = np.loadtxt(folder / entry.tensor_path, delimiter="\t")
    np.testing.assert_allclose(tensor, stored.embeddings, atol=1e-5)
    header, *lines = (folder / entry.metadata_path).read_text().splitlines()
    assert header.split("\t") == ["class", "id"]
    assert [line.split("\t")[1] for line in lines] == stored.ids.tolist()
    with Image.open(folder / entry.sprite.image_path) as sprite:
        width, height = entry.sprite.single_image_dim
        columns = sprite.width // width
        assert columns * (sprite.height // height) >= len(stored)


def test_a_second_report_is_the_same_page(reported, capsys, monkeypatch):
    before = (reported / "report.html").read_bytes()
    outcome = run_command(capsys, monkeypatch, "report", reported)
    assert outcome.code == 0, outcome.err
    assert f"Report: {reported / 'report.html'}" in outcome.out
    assert (reported / "report.html").read_bytes() == before


@pytest.fixture
def browsers(monkeypatch):
    """Sets what `webbrowser` finds, which it reads once."""

    def found(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        importlib.reload(webbrowser)

    yield found
    monkeypatch.undo()
    importlib.reload(webbrowser)


def test_open_gives_the_page_to_the_browser(
    reported, command, browsers, tmp_path
):
    seen = tmp_path / "seen.txt"
    script = tmp_path / "browser.py"
    script.write_text(
        f"import sys\nopen({str(seen)!r}, 'w').write(sys.argv[1])\n"
    )
    browsers(BROWSER=f"{sys.executable} {script} %s")
    outcome = command("report", reported, "--open")
    assert outcome.code == 0, outcome.err
    assert seen.read_text() == (reported / "report.html").as_uri()


def test_without_a_browser_open_says_so(reported, command, browsers):
    browsers(BROWSER="/nowhere/browser", PATH="/nowhere")
    outcome = command("report", reported, "--open")
    refused(outcome, "No browser", "BROWSER", code=1)
    assert f"Report: {reported / 'report.html'}" in outcome.out


@browser.NEEDED
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("width", "line"), [(1280, [9]), (800, [5, 4]), (390, [3, 3, 3])]
)
def test_a_browser_shows_the_page(reported, tmp_path, width, line, dark):
    page = reported / "report.html"
    seen = types.SimpleNamespace(**browser.look_at(page, tmp_path, width, dark))
    assert seen.errors == []
    assert seen.broken == []
    assert [word for word in seen.cut if re.fullmatch(NUMBER, word)] == []
    assert seen.images > 100
    assert seen.width <= seen.window
    if seen.window == width:
        assert seen.lines == [line] * len(seen.lines)
    assert seen.height > 2000
    assert (seen.ground < 0.1) is dark
    ratio, text = seen.contrast
    assert ratio >= 4.5, text
    up, down = seen.sorted
    assert up == sorted(up) and down == up[::-1]
    assert len(up) == 22


def test_without_the_images_there_is_no_report(command, run, tmp_path):
    config = run / "config.yaml"
    text = config.read_text()
    config.write_text(re.sub("source: .*", "source: /nowhere/paint", text))
    refused(command("report", run), "/nowhere/paint")


def test_a_run_without_history_or_validation_has_a_report(command, run):
    (run / "history.csv").unlink()
    config = run / "config.yaml"
    config.write_text(
        config.read_text().replace("classes: fit", "classes: all")
    )
    outcome = command("report", run)
    assert outcome.code == 0, outcome.err
    page = ElementTree.parse(run / "report.html").getroot()
    assert "has no history.csv" in texts(section(page, "training"))
    assert section(page, "similarities").find(".//table") is None


def test_mistakes(command, run, tmp_path):
    refused(command("report", tmp_path / "absent"), "There is no run folder")
    refused(command("report", tmp_path), "is not a run folder")
    (run / "metrics.json").unlink()
    refused(command("report", run), "unfinished run", "--resume")
