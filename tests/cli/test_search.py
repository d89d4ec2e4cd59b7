"""`keras-dml search`: what it finds, when it answers none, how it refuses."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from keras_dml.embeddings import load_embeddings
from keras_dml.evaluation import ExactIndex
from keras_dml.search import picture as drawing
from tests.cli.refusals import refused


def ask(command, run, *arguments):
    outcome = command("search", run, *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def colors_of(image):
    return set(map(tuple, np.asarray(image.convert("RGB")).reshape(-1, 3)))


@pytest.mark.slow
def test_an_image_of_the_gallery_finds_its_class_and_not_itself(
    command, run, images
):
    query = images / "class_30" / "03.png"
    found = ask(command, run, query, "--k", "5")
    assert found["num_references"] == 22 * 12
    (answer,) = found["answers"]
    assert answer["image"] == str(query)
    ids = [one["id"] for one in answer["neighbors"]]
    assert len(ids) == len(set(ids)) == 5
    assert "class_30/03.png" not in ids
    assert answer["neighbors"][0]["label"] == "class_30"


def test_the_neighbors_are_those_of_the_cached_embeddings(command, run, images):
    found = ask(command, run, images / "class_25" / "00.png", "--k", "300")
    stored = load_embeddings(run / "embeddings" / "test.npz")
    row = stored.ids.tolist().index("class_25/00.png")
    index = ExactIndex().build(stored.embeddings, stored.ids)
    ids, scores = index.search(
        stored.embeddings[[row]], len(stored), exclude_ids=stored.ids[[row]]
    )
    (answer,) = found["answers"]
    assert [one["id"] for one in answer["neighbors"]] == ids[0, :-1].tolist()
    np.testing.assert_allclose(
        [one["score"] for one in answer["neighbors"]],
        scores[0, :-1],
        atol=1e-5,
    )


def test_a_copy_of_an_image_finds_the_original(command, run, images, tmp_path):
    copy = tmp_path / "copy.png"
    shutil.copy(images / "class_40" / "01.png", copy)
    (answer,) = ask(command, run, copy, "--k", "1")["answers"]
    assert answer["neighbors"][0]["id"] == "class_40/01.png"
    assert answer["neighbors"][0]["score"] == pytest.approx(1, abs=1e-5)


def test_a_linked_image_is_known_as_the_same_file(
    command, run, images, tmp_path
):
    link = tmp_path / "link.png"
    link.symlink_to(images / "class_40" / "01.png")
    (answer,) = ask(command, run, link, "--k", "300")["answers"]
    ids = [one["id"] for one in answer["neighbors"]]
    assert len(ids) == 22 * 12 - 1
    assert "class_40/01.png" not in ids


def test_no_name_of_a_file_of_the_gallery_finds_it(command, run, tmp_path):
    for name in ("red", "green"):
        (tmp_path / "gallery" / name).mkdir(parents=True)
        Image.new("RGB", (28, 28), name).save(
            tmp_path / "gallery" / name / "0.png"
        )
    link = tmp_path / "gallery" / "green" / "red.png"
    link.symlink_to(tmp_path / "gallery" / "red" / "0.png")
    photo, place = tmp_path / "gallery" / "red" / "0.png", tmp_path / "gallery"
    (answer,) = ask(command, run, photo, "--gallery", place)["answers"]
    assert [one["id"] for one in answer["neighbors"]] == ["green/0.png"]


@pytest.mark.parametrize("kind", ["flat", "one class", "a list"])
def test_a_gallery_needs_no_classes(command, run, tmp_path, kind):
    """A folder of photos was refused: it had no two sub-folders."""
    folder = tmp_path / "catalog"
    place = folder / "shoes" if kind == "one class" else folder
    place.mkdir(parents=True)
    for name in ("red", "green"):
        Image.new("RGB", (28, 28), name).save(place / f"{name}.png")
    gallery, label = folder, place.name
    if kind == "a list":
        gallery = folder / "list.csv"
        gallery.write_text("path\nred.png\ngreen.png\n")
        label = "list.csv"
    (answer,) = ask(command, run, place / "red.png", "--gallery", gallery)[
        "answers"
    ]
    (found,) = answer["neighbors"]
    assert found["id"].endswith("green.png")
    assert found["label"] == label


@pytest.mark.slow
def test_beyond_the_threshold_the_answer_is_none(command, run, images):
    """A rate that no threshold below the largest score keeps accepts none."""
    query = images / "class_30" / "03.png"
    rate = ("--max-false-match-rate", "0.05")
    accepted = ask(command, run, query, *rate, "--k", "1")
    path = run / "thresholds.json"
    stored = json.loads(path.read_text())
    (entry,) = stored["thresholds"].values()
    assert entry["threshold"]["fmr"] <= 0.05
    assert accepted["threshold"] == entry["threshold"]["score"]
    (answer,) = accepted["answers"]
    score = answer["neighbors"][0]["score"]
    assert answer["match"] is (score >= accepted["threshold"])

    entry["threshold"]["score"] = score + 1e-6
    path.write_text(json.dumps(stored))
    (answer,) = ask(command, run, query, *rate, "--k", "1")["answers"]
    assert answer["match"] is False
    shown = command("search", run, query, *rate)
    assert (
        "no match; nearest first, among the run's 263 other test images"
        in " ".join(shown.out.split())
    )
    assert "yes" not in shown.out

    entry["threshold"]["score"] = score - 1e-6
    path.write_text(json.dumps(stored))
    (answer,) = ask(command, run, query, *rate, "--k", "1")["answers"]
    assert answer["match"] is True
    shown = command("search", run, query, *rate)
    assert "no match" not in shown.out
    assert "class_30" in shown.out and "yes" in shown.out
    assert "its distance is at most" in " ".join(shown.out.split())


@pytest.mark.slow
def test_neighbors_come_with_label_distance_and_match(command, run, images):
    query = images / "class_30" / "03.png"
    found = ask(command, run, query, "--max-false-match-rate", "0.05")
    (answer,) = found["answers"]
    assert found["max_distance"] == pytest.approx(1 - found["threshold"])
    for one in answer["neighbors"]:
        assert [*one] == ["id", "label", "distance", "score", "match"]
        assert one["label"] == one["id"].partition("/")[0]
        assert one["distance"] == pytest.approx(1 - one["score"], abs=1e-6)
        assert one["match"] is (one["score"] >= found["threshold"])
    gaps = [one["distance"] for one in answer["neighbors"]]
    assert gaps == sorted(gaps)


@pytest.mark.slow
def test_the_threshold_is_that_of_the_validation_classes(command, run, images):
    query = images / "class_30" / "03.png"
    for decision in ("pairs", "nearest"):
        ask(
            command,
            run,
            query,
            *("--max-false-match-rate", "0.4", "--decision", decision),
        )
    stored = json.loads((run / "thresholds.json").read_text())
    assert set(stored["thresholds"]) == {"pairs 0.4", "nearest 0.4"}
    nearest = stored["thresholds"]["nearest 0.4"]
    assert nearest["num_classes"] == 7
    assert nearest["num_images"] == 7 * 12
    assert nearest["wrong_answers"] == nearest["threshold"]["fmr"]
    validation = load_embeddings(run / "embeddings" / "validation.npz")
    assert len(validation) == 7 * 12
    trained = {f"class_{label:02d}" for label in range(22)}
    assert set(validation.names.tolist()) < trained


@pytest.mark.slow
def test_thresholds_of_other_weights_are_calibrated_again(command, run, images):
    arguments = (images / "class_30" / "03.png", "--max-false-match-rate=0.4")
    first = ask(command, run, *arguments)
    path = run / "thresholds.json"
    stored = json.loads(path.read_text())
    stored["thresholds"]["pairs 0.4"]["threshold"]["score"] = 99.0
    for damage in (json.dumps({**stored, "hash": "other"}), "{"):
        path.write_text(damage)
        assert ask(command, run, *arguments) == first


@pytest.mark.slow
def test_too_few_validation_images_for_the_default_rate_are_no_error(
    command, run, images
):
    query = images / "class_30" / "03.png"
    outcome = command("search", run, query, "--json")
    assert outcome.code == 0
    assert "where 0.1 % is usual" in outcome.err
    assert "up to 1 % of the pairs" in outcome.err
    found = json.loads(outcome.out)
    assert isinstance(found["threshold"], float)
    asked = command("search", run, query, "--max-false-match-rate=0.001")
    refused(asked, "0.001", "needs at least")


@pytest.mark.slow
def test_a_cache_of_other_weights_is_made_again(command, run, images):
    query = images / "class_30" / "03.png"
    path = run / "embeddings" / "test.npz"
    first = ask(command, run, query)
    made = dict(np.load(path))
    np.savez(path, **{**made, "hash": np.array("other weights")})
    assert ask(command, run, query) == first
    assert str(np.load(path)["hash"]) == str(made["hash"])
    # Nor one whose labels are not those of the images.
    np.savez(path, **{**made, "labels": made["labels"][::-1]})
    assert ask(command, run, query) == first
    # A cache that holds is used: its embeddings decide.
    turned = {**made, "embeddings": -made["embeddings"]}
    np.savez(path, **turned)
    assert ask(command, run, query) != first


@pytest.mark.slow
def test_another_gallery_is_searched_whole(command, run, images, tmp_path):
    catalogue = tmp_path / "catalogue"
    for label in (1, 30):
        name = f"class_{label:02d}"
        shutil.copytree(images / name, catalogue / name)
    query = images / "class_30" / "03.png"
    found = ask(command, run, query, "--gallery", catalogue, "--k", "1")
    assert found["num_references"] == 24
    assert found["answers"][0]["neighbors"][0]["id"] == "class_30/03.png"
    (catalogue / "class_30" / "03.png").unlink()
    found = ask(command, run, query, "--gallery", catalogue, "--k", "1")
    assert found["num_references"] == 23


@pytest.mark.slow
def test_without_the_images_the_cache_answers(command, run, images, tmp_path):
    catalogue = tmp_path / "catalogue"
    for label in (1, 30):
        name = f"class_{label:02d}"
        shutil.copytree(images / name, catalogue / name)
    arguments = (run, images / "class_30" / "03.png", "--gallery", catalogue)
    first = ask(command, *arguments)
    shutil.rmtree(catalogue)
    picture = tmp_path / "answer.png"
    outcome = command("search", *arguments, "--picture", picture)
    refused(outcome, "--picture")
    outcome = command("search", *arguments, "--json")
    assert "not there" in outcome.err
    # The directory's own path no longer resolves to a place of images, yet
    # the embeddings are those of the weights.
    assert json.loads(outcome.out) == first


@pytest.mark.slow
def test_picture_shows_the_query_and_its_neighbors(
    command, run, images, tmp_path
):
    picture = tmp_path / "answer.png"
    queries = (images / "class_30" / "03.png", images / "class_41" / "00.png")
    outcome = command("search", run, *queries, "--k", "3", "--picture", picture)
    assert outcome.code == 0, outcome.err
    assert "Picture:" in outcome.out
    with Image.open(picture) as drawn:
        colors = colors_of(drawn)
    for query in queries:
        with Image.open(query) as image:
            pixels = colors_of(image)
        # Drawn without smoothing, most pixels of the image are there as such.
        assert len(pixels & colors) > len(pixels) / 2


@pytest.mark.slow
def test_a_picture_of_many_photos_shows_the_first(
    command, run, images, tmp_path, monkeypatch
):
    monkeypatch.setattr(drawing, "MOST_QUERIES", 1)
    monkeypatch.setattr(drawing, "MOST_NEIGHBORS", 2)
    picture = tmp_path / "answer.png"
    queries = (images / "class_30" / "03.png", images / "class_41" / "00.png")
    outcome = command("search", run, *queries, "--k", "3", "--picture", picture)
    assert outcome.code == 0, outcome.err
    with Image.open(picture) as drawn:
        assert drawn.size == (3 * 165, int(2.05 * 110))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["absent", "x.png"], ["There is no run folder absent"]),
        (["RUN", "absent.png"], ["absent.png", "no such file"]),
        (["RUN", "TEXT"], ["letter.png", "cannot be read as an image"]),
        (["RUN", "IMAGE", "--index", "exakt"], ["exakt", "exact"]),
        (
            ["RUN", "IMAGE", "--max-false-match-rate", "1"],
            ["a number in (0, 1)"],
        ),
        (["RUN", "IMAGE", "--gallery", "nowhere"], ["nowhere"]),
        (["RUN", "IMAGE", "--picture", "a.jpg"], [".png", "a.jpg"]),
        (
            [
                *("RUN", "IMAGE", "--decision", "pair"),
                *("--max-false-match-rate", "0.5"),
            ],
            ["pair"],
        ),
    ],
)
def test_mistakes(command, run, images, tmp_path, arguments, parts):
    letter = tmp_path / "letter.png"
    letter.write_text("Dear all")
    places = {
        "RUN": run,
        "TEXT": letter,
        "IMAGE": images / "class_30" / "03.png",
    }
    outcome = command("search", *(places.get(one, one) for one in arguments))
    refused(outcome, *parts)


def test_an_unfinished_run_is_refused(command, run, images):
    (run / "metrics.json").unlink()
    refused(command("search", run, images / "class_30" / "03.png"), "--resume")
