"""What `metrics.json` holds at the end of a run."""

from keras_dml.run.conclusion import conclusion
from keras_dml.run.finish import with_results_of
from tests.run.test_conclusion import metrics_of


def test_a_final_training_says_why_the_measured_network_was_kept():
    """It said that training had gained nothing, where it had done harm."""
    measured = metrics_of(0.3, 0.3, 0.3, 0.3, 0.0, 0.0)
    own = measured | {
        "interpolation": {"share": 0.0, "kept": True, "values": {}}
    }
    measured["interpolation"] = {
        "share": 0.0,
        "kept": True,
        "values": {"0": 0.2, "1": 0.1},
        "pretrained": 0.25,
        "lower": [0.0, 1.0],
    }
    final = with_results_of(measured, own)
    assert final["final"]
    assert "it lowered R@1" in conclusion(measured)[0]
    assert conclusion(final) == conclusion(measured)


def test_a_final_training_without_a_choice_has_none():
    plain = metrics_of(0.3, 0.3, 0.3, 0.4, 0.0, 0.1)
    assert with_results_of(plain, plain)["interpolation"] == {}


def test_a_final_training_stays_optimistic_if_the_test_chose():
    measured = metrics_of(0.3, 0.3, 0.3, 0.4, 0.0, 0.1) | {"oracle": True}
    own = measured | {"oracle": False}
    assert with_results_of(measured, own)["oracle"]
