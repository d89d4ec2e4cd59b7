"""The figures of docs/figures.md run, and show what the page says."""

import importlib
import re

import numpy as np
import pytest
from PIL import Image

from keras_dml.losses import LOSSES
from tests.conftest import ROOT
from tests.data.stand_ins import write_cub200, write_image

pytestmark = pytest.mark.slow  # trainings

FIGURES = ROOT / "docs" / "figures"


@pytest.fixture(autouse=True)
def figures_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FIGURES))


def run(name, folder, *arguments):
    """The numbers of a figure, whose picture is drawn."""
    figure = importlib.import_module(name)
    results = figure.main(["--output", str(folder), "--quick", *arguments])
    with Image.open(folder / f"{name}.png") as picture:
        assert min(picture.size) >= 300
        colors = picture.convert("RGB").getcolors(1 << 20)
    assert len(colors) > 20
    return figure, results


def test_page_names_every_program_and_its_pictures_are_there():
    page = (ROOT / "docs" / "figures.md").read_text()
    for path in FIGURES.glob("*.py"):
        if "def main(" in path.read_text():
            assert f"`docs/figures/{path.name}`" in page
    shown = set(re.findall(r"\(figures/(\w+)\.png\)", page))
    assert shown
    assert shown == {path.stem for path in FIGURES.glob("*.png")}
    for path in FIGURES.glob("*.png"):
        assert path.stat().st_size < 120_000


def test_low_temperature_refines_the_boundary_of_a_softmax(tmp_path):
    figure, results = run("two_moons", tmp_path, "--seeds", "1")
    softmax = [
        results["plain softmax", name] for name in ("1", "1/3", "1/9", "1/27")
    ]
    accuracies = [result["train"][0] for result in softmax]
    assert accuracies[0] + 0.02 < accuracies[2]
    assert accuracies[0] < accuracies[1] < accuracies[2]
    unsure = [result["unsure"][0] for result in softmax]
    assert unsure == sorted(unsure, reverse=True)
    assert unsure[-1] < 0.5 * unsure[0]
    # Embeddings of length 1 need no low temperature.
    assert results["ProxyNCA++", "1"]["train"][0] > accuracies[0] + 0.02
    assert [*figure.TEMPERATURES] == ["1", "1/3", "1/9", "1/27"]


def test_digits_are_compact_heated_or_not(tmp_path):
    """Which of both is more compact after one seed depends on rounding."""
    figure, results = run("heated_digits", tmp_path, "--seeds", "1")
    assert set(results) == set(figure.QUICK)
    (fixed,), (heated,) = results["alpha = 16"], results[figure.HEATED]
    for run_ in (fixed, heated):
        assert run_["spread"] < 3.0  # degrees; the classes are 36 apart
        assert run_["embeddings"].shape == (len(run_["labels"]), 2)
        assert run_["accuracy"] > 0.7
        assert run_["spread"] < run_["test_spread"]


def test_spread_is_the_mean_angle():
    figure = importlib.import_module("heated_digits")
    angles = np.radians([10.0, 30.0, 100.0, 100.0])
    rows = 3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert figure.spread(rows, np.array([0, 0, 1, 1])) == pytest.approx(5.0)


def test_gradients_are_those_of_the_formula(tmp_path):
    figure, results = run("gradient_size", tmp_path)
    for name in ("alpha", "length"):
        np.testing.assert_allclose(
            results[name], results[f"{name}_closed"], rtol=1e-10, atol=1e-12
        )
    hard = results["alpha"][: len(figure.HARD)]
    easy = results["alpha"][len(figure.HARD) :]
    assert (np.diff(hard) > 0).all()
    # Two terms are left: alpha times the distance of the two proxies, and
    # half of that on the boundary.
    distance = 2 * np.sin(np.pi / 10)
    top = figure.VALUES[-1] * distance
    np.testing.assert_allclose(hard[:, -1] / top, [1, 1, 1, 0.5], rtol=0.01)
    assert (easy.argmax(axis=1) < len(figure.VALUES) - 1).all()
    assert (np.diff(easy.argmax(axis=1)) < 0).all()
    assert (easy[:, -1] < 0.1 * easy.max(axis=1)).all()
    # A small alpha gives all samples nearly the same.
    first = results["alpha"][:, 0]
    assert first.max() < 1.02 * first.min()
    # Long embeddings: constant for hard samples, nothing for easy ones.
    length = results["length"]
    np.testing.assert_allclose(length[:3, -1], distance, rtol=0.01)
    assert length[len(figure.HARD) :, -1].max() < 0.01


def test_easy_gradient_of_two_classes_peaks_where_it_should():
    figure = importlib.import_module("gradient_size")
    proxies, rows = figure.circle(range(2), 2), figure.circle(figure.EASY, 2)
    dense = np.linspace(0.1, 60, 6000)
    easy = np.array([figure.closed_formula(rows, proxies, v) for v in dense]).T
    # g = 2 a / (1 + exp(a m)) is largest where 1 + exp(a m) = a m exp(a m).
    angles = np.pi * np.array(figure.EASY)
    margins = 2 * np.cos(angles)
    np.testing.assert_allclose(
        dense[easy.argmax(axis=1)], 1.2784645 / margins, atol=0.02
    )


def test_decays_of_the_layer_are_those_drawn(tmp_path):
    figure, results = run("isa_decay", tmp_path)
    for decay in figure.DECAYS:
        values = results[decay]
        assert values[0] == pytest.approx(1.0)
        assert (np.diff(values) <= 1e-6).all()
        np.testing.assert_allclose(
            results["measured"][decay], values[figure.MEASURED], atol=1e-5
        )
    sigma, bound = results["sigma"], results["lower_bound"]
    assert (sigma >= bound - 1e-6).all()
    # From E = 2.15 on; here from the third row.
    assert (bound[3:] >= results["reciprocal"][3:]).all()
    for n, value in {200: 1.0, 300: 0.968, 460: 0.370, 600: 0.217}.items():
        assert sigma[n] == pytest.approx(value, abs=2e-3)
    limit = 1 / (1 + np.log(101))
    assert sigma[-1] == pytest.approx(limit, abs=2e-3)
    lengths = results["search_length"]
    for sensitivity in figure.SENSITIVITIES:
        easy, hard = lengths[sensitivity, 1.0], lengths[sensitivity, 0.0]
        assert (np.diff(hard) <= 1e-6).all()
        assert hard[-1] < 0.5 * hard[0]
        assert (hard > easy).all()  # harder classes search further
        assert hard[0] == pytest.approx(1.1 + sensitivity)


def test_a_weight_in_the_exponent_raises_what_is_far(tmp_path):
    figure, results = run("isa_repulsion", tmp_path)
    plain, inside, before = (
        results["exponents"][form] for form in figure.FORMS
    )
    below = results["cut"] > figure.COSINES
    assert 0.2 < below.mean() < 0.5
    assert (inside[below] > plain[below]).all()
    assert (before[below] < plain[below]).all()
    for other in (inside, before):
        np.testing.assert_allclose(other[~below], plain[~below], rtol=1e-5)
    # More than what is nearer; all below alike.
    assert np.exp(inside[0]) > 500 * np.exp(inside[~below][0])
    assert np.exp(inside[below].max() - inside[below].min()) < 1.5
    far = np.searchsorted(figure.COSINES, figure.FAR)
    assert np.exp(inside[far]) == pytest.approx(0.79, abs=5e-3)


@pytest.mark.data
def test_seen_classes_are_found_better_than_unseen_ones(tmp_path, test_data):
    data = ("--data-dir", str(test_data))
    figure, results = run("seen_and_unseen", tmp_path, *data, "--seeds", "1")
    for curves in results.values():
        assert curves["seen"].shape == curves["unseen"].shape == (1, 1)
        assert curves["seen"][0, -1] > curves["unseen"][0, -1]
    seen = {name: curves["seen"][0, -1] for name, curves in results.items()}
    assert len(set(seen.values())) == len(figure.LOSSES)


@pytest.mark.data
def test_training_spreads_images_and_finds_proxies(tmp_path, test_data):
    data = ("--data-dir", str(test_data))
    figure, results = run("similarity_map", tmp_path, *data)
    for loss in figure.LOSSES:
        before, after = (results[loss, epoch] for epoch in (0, 3))
        np.testing.assert_allclose(np.diag(after["cosines"]), 1, atol=1e-5)
        assert after["different"] < before["different"] - 0.1
        assert after["own"] - after["other"] > 0.1
        assert abs(before["own"] - before["other"]) < 0.05
    # Normalized softmax brings images to their proxies first.
    own = {loss: results[loss, 3]["own"] for loss in figure.LOSSES}
    assert max(own, key=own.get) == "norm_softmax"


@pytest.mark.data
def test_map_holds_images_and_proxies(tmp_path, test_data):
    data = ("--data-dir", str(test_data))
    figure, results = run("proxies_by_epoch", tmp_path, *data)
    for loss in figure.LOSSES:
        early, late = (results[loss, epoch] for epoch in (1, 3))
        assert early["places"].shape == (
            len(early["labels"]) + 40,
            2,
        )
        assert late["nearest"] > early["nearest"]
    beside = {k: results[k, 3]["beside_a_proxy"] for k in figure.LOSSES}
    assert beside["norm_softmax"] < beside["proxy_anchor"]


def test_cosines_of_a_handful():
    figure = importlib.import_module("proxies_by_epoch")
    images = np.array([[1.0, 0.0], [0.0, 1.0]])
    proxies = np.array([[0.6, 0.8], [0.8, 0.6]])
    numbers = figure.numbers(images, proxies, np.array([0, 1]))
    assert numbers["own"] == pytest.approx(0.6)
    assert numbers["other"] == pytest.approx(0.8)
    assert numbers["proxies"] == pytest.approx(0.96)
    assert numbers["nearest"] == 0.0
    assert numbers["beside_a_proxy"] == 1.0


@pytest.mark.data
def test_average_pooling_suits_characters(tmp_path, test_data):
    data = ("--data-dir", str(test_data))
    figure, results = run("sensitivity", tmp_path, *data, "--seeds", "1")
    assert set(results) == set(figure.QUICK)
    (most, average) = results["k"].values()
    assert average[0] > most[0] + 0.02


@pytest.mark.data
def test_normalization_divides_gradients_by_the_length_of_a_proxy(
    tmp_path, test_data
):
    data = ("--data-dir", str(test_data))
    figure, results = run("proxy_gradients", tmp_path, *data)
    assert set(results) == set(figure.QUICK)
    # Before the first update only the length differs.
    one, authors = (
        {part: sizes[0] for part, sizes in found.items()}
        for found in results.values()
    )
    length = figure.LENGTHS[figure.AUTHORS]
    assert one["proxies"] / authors["proxies"] == pytest.approx(
        length, rel=1e-3
    )
    for part in ("network", "embedding layer"):
        assert one[part] == pytest.approx(authors[part], rel=1e-3)
    assert figure.ratios(results[figure.AUTHORS])[0] > 2


def test_each_loss_parts_two_classes(tmp_path):
    figure = importlib.import_module("losses")
    results = figure.main(["--output", str(tmp_path), "--quick"])
    assert set(results) == set(figure.QUICK)
    start = figure.embeddings()[None]
    for key, (within, between) in results.items():
        with Image.open(tmp_path / "losses" / f"{key}.png") as picture:
            assert len(picture.convert("RGB").getcolors(1 << 20)) > 20
        before = figure.cosines(start)
        assert within - between > before[0] - before[1] + 0.01
    drawn = {path.stem for path in (FIGURES / "losses").glob("*.png")}
    assert drawn == LOSSES.keys() - {*figure.LEFT_OUT}


def test_recall_by_the_size_of_the_object(tmp_path):
    figure = importlib.import_module("object_size")
    root, names = tmp_path / "cub200", ["a/0.jpg", "a/1.jpg", "b/0.jpg"]
    write_cub200(root, names, [101, 101, 102])
    for name in names:
        write_image(root / "images" / name, size=(20, 10))
    # The second box ends outside of its image.
    boxes = ["1 0 0 10 10", "2 0 0 10 90", "3 5 5 5 5"]
    (root / "bounding_boxes.txt").write_text("\n".join(boxes))
    folder = tmp_path / "figure7"
    arms = {"GMP": [[0, 1, 1], [1, 1, 1]], "GAP": [[0, 1, 0]]}
    lines = ["run,source,arm,status,metric", "left,cub200,GAP,failed,map@r"]
    for arm, runs in arms.items():
        for number, recall in enumerate(runs):
            run_ = folder / "runs" / f"{arm}-{number}"
            run_.mkdir(parents=True)
            np.savez(run_ / "per_query.npz", ids=names, **{"recall@1": recall})
            for metric in ("recall@1", "map@r"):
                lines.append(f"{run_.name},cub200,{arm},done,{metric}")
    (folder / "results.csv").write_text("\n".join(lines))
    words = [folder, "--data-dir", root, "--bins", "4", "--output", tmp_path]
    results = figure.main(list(map(str, words)))
    nan = np.nan
    expected = {
        "GMP": [[1, nan, 0, 1], [1, nan, 1, 1]],
        "GAP": [[0, nan, 0, 1]],
    }
    assert results.keys() == expected.keys()
    for arm, values in expected.items():
        np.testing.assert_array_equal(results[arm], values)
    with Image.open(tmp_path / "object_size.png") as picture:
        assert min(picture.size) >= 300
