"""The pictures of a search."""

import numpy as np
import pytest
from PIL import Image

from keras_dml.config.tuning_section import TuningConfig
from keras_dml.tuning.figures import best_so_far, draw_tuning
from keras_dml.tuning.trials import Trial, TuningResult


def trial(number, state, value=None, **changes):
    return Trial(number, changes, state, value)


def test_best_so_far():
    trials = [
        trial(0, "failed"),
        trial(1, "complete", 0.2),
        trial(2, "pruned", 0.9),
        trial(3, "complete", 0.1),
        trial(4, "complete", 0.4),
    ]
    np.testing.assert_array_equal(
        best_so_far(trials), [np.nan, 0.2, 0.2, 0.2, 0.4]
    )


@pytest.mark.slow
def test_draws_every_kind_of_setting(tmp_path):
    space = {
        "lr": {"low": 1e-4, "high": 1e-1, "log": True},
        "dim": {"low": 64, "high": 512},
        "scale": [[0.5, 1.0], [1.0, 1.0]],
        "pooling": ["max", None, True],
    }
    section = TuningConfig.model_validate({"space": space})
    trials = [
        trial(
            number,
            ("complete", "pruned", "failed")[number % 3],
            None if number % 3 == 2 else 0.1 * number,
            lr=0.01,
            dim=64 + number,
            scale=[1.0, 1.0],
            pooling=None,
        )
        for number in range(5)
    ]
    result = TuningResult("map@r", trials, {"lr": 0.75, "dim": 0.25})
    draw_tuning(result, section, tmp_path / "figures")
    files = sorted((tmp_path / "figures").glob("*.png"))
    assert [file.stem for file in files] == [
        "history",
        "importances",
        "slices",
    ]
    for file in files:
        with Image.open(file) as image:
            colors = np.unique(
                np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0
            )
        assert len(colors) > 10
