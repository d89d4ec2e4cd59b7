"""Which steps are timed."""

import pytest

from keras_dml.run import pace
from tests.run import made_up


class TimedError(Exception):
    """Stands for the steps: the phase that is compiled is enough."""


def timed(monkeypatch, *phases):
    """The name of the phase whose steps are timed."""
    config = made_up.settings()
    (stage,) = config.stages
    named = [stage.phases[0].changed(**phase) for phase in phases]
    config = config.changed(stages=[stage.changed(phases=named)])

    def compile_for(trainer, phase, *arguments):
        raise TimedError(phase.name)

    monkeypatch.setattr(pace, "compile_for", compile_for)
    with pytest.raises(TimedError) as caught:
        pace.measure_pace(
            made_up.models(), made_up.stage(), config, 0, image_seconds=1.0
        )
    return str(caught.value)


def test_the_steps_of_the_main_phase_are_timed(monkeypatch):
    """Those of a frozen network are several times faster."""
    warm_up = {"name": "warm_up", "epochs": None, "freeze": "weights"}
    train = {"name": "train", "epochs": None, "share": 2.0}
    more = {"name": "more", "epochs": None, "share": 3.0}
    assert timed(monkeypatch, warm_up, train) == "train"
    assert timed(monkeypatch, warm_up | {"share": 9.0}, train) == "train"
    assert timed(monkeypatch, warm_up, train, more) == "more"
    # The minutes settle the length of open phases alone.
    assert timed(monkeypatch, warm_up, train | {"epochs": 5}) == "warm_up"
