"""What a person should conclude from the metrics of a run."""

from keras_dml.run.conclusion import columns, conclusion


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
    assert parts == "Of this, images of 192 instead of 96 pixels +0.100."


def test_raw_pixels_have_no_part_for_the_size():
    """Their result is the same at every size, so nothing came from it."""
    metrics = metrics_of(0.2, 0.2, 0.1, 0.4, 0.1, 0.3)
    assert list(columns(metrics)) == [
        "pretrained backbone",
        "at the start",
        "trained",
    ]
    assert len(conclusion(metrics)) == 1
