"""What every refusal of the command line has in common."""


def refused(outcome, *parts, code=2):
    """A refusal is short, names the problem, and shows no traceback."""
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err
    said = outcome.err.replace("Starting TensorFlow ...\n", "").strip()
    assert len(said.splitlines()) <= 3, outcome.err
    for part in parts:
        assert part in outcome.err, outcome.err
