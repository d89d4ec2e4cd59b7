"""What a person should conclude from the metrics of a run."""

import json
from pathlib import Path

import pytest

from keras_dml.run.conclusion import (
    columns,
    conclusion,
    gained,
    result_rows,
)

VERSION_0_1 = Path(__file__).parent / "version_0_1" / "metrics.json"


def metrics_of(before, pretrained, start, after, low, high, **changes):
    parts = {
        "off_the_shelf": before,
        "pretrained": pretrained,
        "before": start,
        "after": after,
    }
    gain = {"gain": after - before, "low": low, "high": high}
    return {
        **{name: {"map@r": value} for name, value in parts.items()},
        "gains": {"off_the_shelf": {"map@r": gain}},
        "pretrained_features": "pretrained backbone",
        "image_size": 192,
        "natural_size": 96,
        "selected_by": "last epoch",
        "shrinkage": None,
        "interpolation": {},
        **changes,
    }


def test_an_enlarged_image_has_a_column_and_a_part_of_the_gain():
    metrics = metrics_of(0.2, 0.3, 0.35, 0.4, 0.1, 0.3)
    assert "at 192 pixels" in columns(metrics)
    assert "images of 192 instead of 96 pixels +0.100" in conclusion(metrics)[1]


def test_a_kept_network_gained_nothing_from_whitening_or_training():
    """Its head is neither: the steps between the columns are not its parts."""
    metrics = metrics_of(0.2, 0.3, 0.4, 0.3, 0.05, 0.15)
    metrics |= {"interpolation": {"kept": True}, "shrinkage": 0.6}
    kept, _, parts = conclusion(metrics)
    assert kept.startswith("The pretrained network was kept")
    assert (
        parts == "The gain by part: images of 192 instead of 96 pixels +0.100."
    )


def test_a_kept_network_of_one_part_has_no_list_of_parts():
    metrics = metrics_of(0.3, 0.3, 0.28, 0.28, -0.05, 0.01)
    metrics |= {"interpolation": {"kept": True}, "shrinkage": 0.6}
    kept, verdict = conclusion(metrics)
    assert "its gain is that of 192 instead of 96 pixels" in kept
    assert "is not distinguishable" in verdict
    metrics["natural_size"] = 192
    kept, *_ = conclusion(metrics)
    assert "before training; a difference is no gain of training" in kept


@pytest.mark.parametrize(
    ("low", "high", "verdict", "sure"),
    [
        (0.1, 0.3, "better", True),
        (-0.3, -0.1, "worse", False),
        (-0.1, 0.3, "not distinguishable", False),
        (0.0, 0.3, "not distinguishable", False),
    ],
)
def test_a_gain_is_sure_if_its_interval_lies_above_zero(
    low, high, verdict, sure
):
    found = metrics_of(0.2, 0.2, 0.2, 0.3, low, high)
    said = f"The trained network is {verdict} "
    assert conclusion(found)[0].startswith(said)
    assert gained(found) is sure


def test_results_without_intervals_count_as_gained():
    assert gained(json.loads(VERSION_0_1.read_text()))


def test_an_interval_that_could_not_be_drawn_is_no_gain():
    """Of two test classes one had one image, and `fit` said: ship it."""
    metrics = metrics_of(0.2, 0.2, 0.3, 0.4, 0.1, 0.3, gains={})
    assert not gained(metrics)
    (sentence,) = conclusion(metrics)
    assert "cannot be said" in sentence and "two test classes" in sentence


def test_a_start_that_was_kept_is_no_trained_network():
    """Its verdict was: the trained network is better; training +0.000."""
    found = {"share": 0.0, "kept": False, "values": {"0": 0.4, "1": 0.3}}
    metrics = metrics_of(
        *(0.2, 0.3, 0.4, 0.4, 0.1, 0.3), interpolation=found, shrinkage=0.6
    )
    assert [*columns(metrics)][-1] == "kept"
    started, verdict, parts = conclusion(metrics)
    assert started.startswith("No step of the training was kept")
    assert verdict.startswith("What was kept is better")
    assert parts.endswith("(whitening) +0.100.")


@pytest.mark.parametrize(
    ("share", "taken"), [(1.0, ""), (0.5, ", so 50 % of it was taken")]
)
def test_what_nothing_validated_is_said(share, taken):
    found = {"share": share, "kept": False, "values": {}}
    metrics = metrics_of(
        *(0.2, 0.2, 0.2, 0.4, 0.1, 0.3),
        interpolation=found,
        validated_on="nothing",
    )
    said = f"Nothing was held out of the training{taken}: only the test images"
    assert conclusion(metrics)[-1].startswith(said)


def test_raw_pixels_have_no_part_for_the_size():
    """Their result is the same at every size, so nothing came from it."""
    metrics = metrics_of(0.2, 0.2, 0.1, 0.4, 0.1, 0.3)
    assert list(columns(metrics)) == [
        "pretrained backbone",
        "at the start",
        "trained",
    ]
    assert len(conclusion(metrics)) == 1


def metrics(low=0.1, high=0.3, values=(0.3, 0.35, 0.4, 0.5), **changes):
    """Results with MAP@R values of the four networks and a gain."""
    names = ("off_the_shelf", "pretrained", "before", "after")
    found = {
        name: {"map@r": value, "recall@1": value + 0.25}
        for name, value in zip(names, values, strict=True)
    }
    gain = {"gain": values[-1] - values[0], "low": low, "high": high}
    return {
        **found,
        "gains": {"off_the_shelf": {"map@r": gain, "recall@1": gain}},
        "pretrained_features": "pretrained backbone",
        "interpolation": {"kept": False},
        "image_size": 224,
        "natural_size": 96,
        "selected_by": "validation map@r",
        "shrinkage": 0.6,
        **changes,
    }


def test_what_chose_the_epoch_is_said():
    plain = metrics(selected_by="validation recall@1", interpolation={})
    kept = "The epoch with the best R@1 on the validation images was kept."
    assert kept in conclusion(plain)
    assert kept not in conclusion(metrics(selected_by="validation recall@1"))


def test_better():
    assert conclusion(metrics()) == [
        "The trained network is better than the pretrained backbone: MAP@R "
        "0.300 -> 0.500 (67 % more), "
        "gain +0.200 with a 95 % interval of +0.100 to +0.300.",
        "The nearest image is of the right class for 75.0 % of the queries, "
        "by the pretrained backbone for 55.0 %.",
        "The gain by part: images of 224 instead of 96 pixels +0.050, "
        "weighting the features (whitening) +0.050, training +0.100.",
    ]


def test_classes_that_are_worse_are_counted():
    counts = {"worse": 3, "classes": 1200}
    sentence = (
        "R@1 of 3 of 1,200 test classes is lower than by the pretrained "
        "backbone."
    )
    # After the sentence on R@1 of all queries.
    assert conclusion(metrics(worse_classes=counts))[2] == sentence
    none = metrics(worse_classes={"worse": 0, "classes": 50})
    assert conclusion(none)[2].startswith("R@1 of none of 50 test classes")
    assert sentence not in conclusion(metrics(worse_classes=None))
    unchanged = metrics(values=(0.3, 0.3, 0.4, 0.3), worse_classes=counts)
    assert sentence not in conclusion(unchanged)


def test_a_large_gain_is_told_in_times():
    verdict, *_ = conclusion(metrics(values=(0.1, 0.3, 0.4, 0.25)))
    assert "MAP@R 0.100 -> 0.250 (2.5 times), gain" in verdict


def test_worse_says_what_to_do():
    verdict, *_ = conclusion(metrics(-0.3, -0.1, (0.5, 0.5, 0.4, 0.3)))
    assert verdict.startswith(
        "The trained network is worse than the pretrained backbone: MAP@R "
        "0.500 -> 0.300, "
    )
    assert "Use the pretrained backbone instead, or train longer" in verdict


@pytest.mark.parametrize(
    ("low", "high"), [(-0.1, 0.3), (-0.3, 0.1), (0.0, 0.3), (-0.3, 0.0)]
)
def test_an_interval_with_zero_is_no_verdict(low, high):
    verdict, *_ = conclusion(metrics(low, high))
    assert "is not distinguishable from the pretrained" in verdict


def test_kept_comes_first():
    kept = metrics(-0.1, 0.1, interpolation={"kept": True})
    first, verdict, *_ = conclusion(kept)
    assert first.startswith("The pretrained network was kept ")
    assert "is not distinguishable" in verdict


def test_the_parts_add_up_without_a_whitening():
    """What a random head loses is part of the training."""
    found = metrics(shrinkage=None, values=(0.3, 0.35, 0.1, 0.5))
    assert conclusion(found)[2] == (
        "The gain by part: images of 224 instead of 96 pixels +0.050, training "
        "+0.150."
    )


def test_a_plain_training_has_no_parts():
    found = metrics(shrinkage=None, values=(0.3, 0.3, 0.3, 0.5))
    assert "The gain by part" not in " ".join(conclusion(found))


def test_a_run_without_a_stage_of_interpolation():
    assert conclusion(metrics(interpolation={}))[0].startswith(
        "The trained network is better"
    )


@pytest.mark.parametrize(
    ("lower", "reason"),
    [
        ([], "it gained nothing beyond chance"),
        ([1.0], "it gained nothing beyond chance"),
        ([0.0, 1.0], "it lowered R@1"),
    ],
)
def test_a_kept_network_that_is_the_reference_has_no_gain(lower, reason):
    found = metrics(0.0, 0.0, (0.3, 0.3, 0.4, 0.3))
    values = {"0": 0.4, "1": 0.3}
    found["interpolation"] = {"kept": True, "lower": lower, "values": values}
    kept, nearest = conclusion(found)
    assert reason in kept
    assert "Both columns are the same network, the one before" in kept
    assert nearest.endswith("% of the queries.")
    assert "not distinguishable" not in nearest


def test_raw_pixels_and_a_start_at_nothing():
    found = metrics(
        values=(0.0, 0.0, 0.4, 0.5), pretrained_features="raw pixels"
    )
    verdict, *_ = conclusion(found)
    assert verdict.startswith(
        "The trained network is better than the raw pixels: MAP@R 0.000 -> "
        "0.500, gain +0.500"
    )


def test_other_metrics_than_recall_give_the_verdict_alone():
    found = metrics(shrinkage=None, values=(0.3, 0.3, 0.3, 0.5))
    del found["gains"]["off_the_shelf"]["recall@1"]
    assert len(conclusion(found)) == 1


@pytest.mark.parametrize(
    ("selected_by", "interpolation", "said"),
    [
        ("validation map@r", {}, "chose the weights"),
        ("last epoch", {"kept": False, "values": {"1": 0.3}}, "chose the"),
        ("last epoch", {}, "validated."),
    ],
)
def test_images_of_trained_classes_that_validated_are_named(
    selected_by, interpolation, said
):
    """They were said to have chosen, also where the last epoch was kept."""
    *_, note = conclusion(
        metrics(
            validated_on="images",
            selected_by=selected_by,
            interpolation=interpolation,
        )
    )
    assert f"other images of the same classes {said}" in note


def test_results_of_version_0_1_give_no_sentence():
    assert conclusion(json.loads(VERSION_0_1.read_text())) == []


def test_the_table_begins_with_the_headline_and_its_interval():
    found = metrics()
    found["after"] = {"recall@1": 0.75, "nmi": 0.6, "map@r": 0.5}
    found["off_the_shelf"]["nmi"] = 0.5
    first, second, third = result_rows(found)
    assert first == {
        "metric": "MAP@R",
        "pretrained backbone": 0.3,
        "trained": 0.5,
        "gain": "+0.2000",
        "95 % interval": "+0.1000 to +0.3000",
    }
    assert (second["metric"], third["metric"]) == ("R@1", "NMI")
    # A metric of all queries together has no queries to draw from.
    assert third["95 % interval"] == "-"


def test_a_discarded_training_has_no_column_of_gains():
    found = metrics(interpolation={"kept": True})
    assert "gain" in result_rows(found)[0]  # That of larger images.
    found["after"] = found["off_the_shelf"]
    found["prefixes"] = {"8": {"map@r": 0.25}}
    *_, prefix = rows = result_rows(found)
    for row in rows:
        assert {"gain", "95 % interval"}.isdisjoint(row)
    assert (prefix["pretrained backbone"], prefix["kept"]) == (0.3, 0.25)


def test_the_table_of_version_0_1_has_no_intervals():
    rows = result_rows(json.loads(VERSION_0_1.read_text()))
    assert {row["95 % interval"] for row in rows} == {"-"}
