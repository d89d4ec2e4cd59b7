import dataclasses
import json

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    ExactIndex,
    Threshold,
    calibrate_threshold,
    calibrate_thresholds,
    identification_rates,
)
from keras_dml.evaluation.index import spaces as score_blocks


def clustered(rows=120, classes=8, dim=5, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    centers = generator.standard_normal((classes, dim))
    embeddings = 2 * centers[labels] + generator.standard_normal((rows, dim))
    return embeddings.astype("float32"), labels


def grid(rows=120, classes=4, seed=0):
    """Few different scores: most impostors tie."""
    generator = np.random.default_rng(seed)
    embeddings = generator.choice([-1.0, 1.0], (rows, 4)).astype("float32")
    return embeddings, generator.integers(classes, size=rows)


def all_scores(queries, references, normalize):
    """Every score by a loop, but in float32 as the index gives them."""
    metric = "cosine" if normalize else "euclidean"
    index = ExactIndex(metric).build(references)
    scores = np.empty((len(queries), len(references)), np.float32)
    for query, row in enumerate(queries):
        ids, found = index.search(row[None], len(references))
        scores[query, ids[0]] = found[0]
    return scores


@pytest.mark.parametrize("make", [clustered, grid])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("several_labels", [False, True])
@pytest.mark.parametrize("block_bytes", [4 * 120 * 7, 2**25])
def test_pairs_against_sorting(
    make, normalize, several_labels, block_bytes, monkeypatch
):
    monkeypatch.setattr(score_blocks, "BLOCK_BYTES", block_bytes)
    embeddings, labels = make()
    same = labels[:, None] == labels
    if several_labels:
        labels = [{label, 100 + row % 3} for row, label in enumerate(labels)]
        same = np.array([[bool(a & b) for b in labels] for a in labels])
    scores = all_scores(embeddings, embeddings, normalize)
    pairs = np.triu(np.ones(same.shape, bool), 1)
    impostors = np.sort(scores[pairs & ~same])[::-1]
    genuine = scores[pairs & same]
    rates = (0.3, 0.02, 0.1, 0.9)
    found = calibrate_thresholds(embeddings, labels, rates, normalize)
    for rate, threshold in zip(rates, found, strict=True):
        assert (threshold.target_fmr, threshold.decision) == (rate, "pairs")
        assert threshold.num_impostors == len(impostors)
        assert threshold.num_genuine == len(genuine)
        allowed = int(rate * len(impostors))
        # Rounding by the shape of the product moves scores by a few bits.
        near = {"abs": 1e-5} if normalize else {"rel": 1e-5, "abs": 1e-4}
        assert threshold.score == pytest.approx(impostors[allowed], **near)
        slack = near["abs"] + near.get("rel", 0) * abs(threshold.score)
        for rate_found, group in (
            (threshold.fmr, impostors),
            (1 - threshold.fnmr, genuine),
        ):
            doubt = np.mean(np.abs(group - threshold.score) <= slack)
            accepted = np.mean(threshold.accepts(group))
            assert abs(rate_found - accepted) <= doubt + 1e-12
        assert threshold.fmr <= rate


@pytest.mark.parametrize("normalize", [True, False])
def test_exact_scores_have_exact_rates(normalize):
    # Dot products of signs are exact in float32, ties included.
    embeddings, labels = grid()
    embeddings = embeddings.astype("float64")
    scores = (
        embeddings @ embeddings.T / 4
        if normalize
        else -((embeddings[:, None] - embeddings) ** 2).sum(axis=2)
    )
    pairs = np.triu(np.ones(scores.shape, bool), 1)
    same = labels[:, None] == labels
    impostors, genuine = scores[pairs & ~same], scores[pairs & same]
    for threshold in calibrate_thresholds(
        embeddings, labels, (0.5, 0.1, 0.01), normalize
    ):
        assert threshold.fmr == np.mean(impostors >= threshold.score)
        assert threshold.fnmr == np.mean(genuine < threshold.score)
        # No smaller score will do.
        smaller = np.nextafter(np.float32(threshold.score), np.float32(-9e9))
        assert np.mean(impostors >= smaller) > threshold.target_fmr


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_pairs_against_the_roc_curve_of_scikit_learn(rate):
    embeddings, labels = grid()
    scores = embeddings @ embeddings.T / 4
    pairs = np.triu(np.ones(scores.shape, bool), 1)
    same = labels[:, None] == labels
    false, true, _ = roc_curve(
        same[pairs], scores[pairs], drop_intermediate=False
    )
    threshold = calibrate_threshold(embeddings, labels, rate)
    point = np.flatnonzero(false <= rate)[-1]
    assert threshold.fmr == pytest.approx(false[point])
    assert threshold.fnmr == pytest.approx(1 - true[point])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [clustered, grid])
def test_nearest_against_loops(make, normalize):
    embeddings, labels = make()
    labels[5] = 99
    scores = all_scores(embeddings, embeddings, normalize)
    np.fill_diagonal(scores, -np.inf)
    impostor = np.array(
        [scores[i][labels != label].max() for i, label in enumerate(labels)]
    )
    known = [i for i in range(120) if (labels == labels[i]).sum() > 1]
    threshold = calibrate_threshold(
        embeddings, labels, 0.3, normalize, "nearest"
    )
    best = np.sort(impostor)[::-1][int(0.3 * 120)]
    assert threshold.score == pytest.approx(best, rel=1e-5, abs=1e-4)
    assert threshold.fmr <= 0.3
    assert threshold.fmr == pytest.approx(
        np.mean(impostor >= threshold.score), abs=0.02
    )
    wrong = 0
    for i in known:
        own = scores[i][labels == labels[i]].max()
        wrong += not (own >= threshold.score and own > impostor[i])
    assert threshold.fnmr == pytest.approx(wrong / len(known), abs=0.02)
    assert (threshold.num_impostors, threshold.num_genuine) == (120, 119)


@pytest.mark.parametrize("decision", ["pairs", "nearest"])
def test_no_rate_lets_everything_in(decision):
    """A rate within rounding of 1 ended in an IndexError."""
    embeddings, labels = clustered()
    threshold = calibrate_threshold(
        embeddings, labels, 1 - 1e-13, decision=decision
    )
    assert 0.9 < threshold.fmr < 1


def test_a_nearest_decision_needs_a_higher_threshold():
    embeddings, labels = clustered(600)
    pairs = calibrate_threshold(embeddings, labels, 0.1)
    nearest = calibrate_threshold(embeddings, labels, 0.1, decision="nearest")
    assert nearest.score > pairs.score
    rates = identification_rates(
        embeddings, labels + 100, embeddings, labels, pairs.score
    )
    # Each of hundreds of references is a chance of a false match.
    assert rates.fpir > 0.5


def test_thresholds_are_stored_as_json():
    threshold = calibrate_threshold(*clustered(), fmr=0.1)
    text = json.dumps(dataclasses.asdict(threshold))
    assert Threshold(**json.loads(text)) == threshold


def test_the_threshold_is_that_of_the_index():
    embeddings, labels = clustered(400)
    threshold = calibrate_threshold(embeddings, labels, fmr=0.05)
    index = ExactIndex(threshold.metric).build(embeddings)
    ids, scores = index.search(embeddings, 400)
    accepted = threshold.accepts(scores) & (ids != np.arange(400)[:, None])
    false = accepted & (labels[ids] != labels[:, None])
    pairs = 2 * threshold.num_impostors
    assert false.sum() / pairs == pytest.approx(threshold.fmr, abs=1e-3)


def test_separated_classes_lose_nothing():
    labels = np.arange(90) % 3
    embeddings = np.eye(3)[labels] + 0.01
    for decision in ("pairs", "nearest"):
        threshold = calibrate_threshold(
            embeddings, labels, 0.5, decision=decision
        )
        assert (threshold.fmr, threshold.fnmr) == (0.0, 0.0)


def test_collapsed_embeddings_accept_nothing():
    for decision in ("pairs", "nearest"):
        threshold = calibrate_threshold(
            np.ones((90, 4)), np.arange(90) % 3, 0.5, decision=decision
        )
        assert (threshold.fmr, threshold.fnmr) == (0.0, 1.0)


def test_float16_and_strided_embeddings():
    embeddings, labels = clustered()
    embeddings = embeddings.astype("float16")
    wide = np.zeros((240, 10), "float16")
    wide[::2, ::2] = embeddings
    assert calibrate_threshold(
        wide[::2, ::2], labels, 0.1
    ) == calibrate_threshold(embeddings.astype("float32"), labels, 0.1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"fmr": 0.001}, "rate of 0.001 needs at least 30000 pairs of two"),
        (
            {"fmr": 0.2, "decision": "nearest"},
            r"needs at least 150 images .* Received: 120",
        ),
        ({"fmr": 0}, "`fmr` must be a number in"),
        ({"fmr": 1.0}, "`fmr` must be a number in"),
        ({"decision": "triplets"}, "`decision` must be one of"),
        ({"normalize": "false"}, "`normalize` must be True or False"),
        ({"labels": [0, 1]}, "`labels` must have the shape"),
        ({"labels": [0, 1], "decision": "nearest"}, "`labels` must have"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        calibrate_threshold(
            **dict(zip(("embeddings", "labels"), clustered(), strict=True))
            | arguments
        )


def test_refuses_data_without_pairs():
    embeddings, labels = clustered()
    with pytest.raises(UsageError, match="needs two images of some class"):
        calibrate_threshold(embeddings, np.arange(120), 0.1)
    with pytest.raises(UsageError, match="Received: 0"):
        calibrate_threshold(embeddings, np.zeros(120, int), 0.1)
    embeddings[7] = np.nan
    with pytest.raises(UsageError, match="first is row 7"):
        calibrate_threshold(embeddings, labels, 0.1)


def test_refuses_no_rate():
    with pytest.raises(UsageError, match="`fmr` must be at least one rate"):
        calibrate_thresholds(*clustered(), fmr=())
