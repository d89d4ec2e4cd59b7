import numpy as np
import pytest

from keras_dml import layers, losses, miners
from keras_dml.errors import UsageError


@pytest.mark.parametrize("key", miners.MINERS)
def test_names_are_those_of_the_miners(key):
    cls = miners.MINERS[key]
    arguments = {"triplets": [[0, 1, 2]]} if cls is miners.Given else {}
    for name in (key, cls.__name__, f"keras_dml.miners.{cls.__name__}"):
        assert type(miners.get({"name": name, **arguments})) is cls


def test_what_get_takes():
    miner = miners.PairMargin(negative_margin=0.6)
    assert miners.get(miner) is miner
    assert miners.get(None) is None
    assert repr(miners.get(miners.serialize(miner))) == repr(miner)
    assert type(miners.get("batch_hard")) is miners.BatchHard
    config = {"class_name": "pair_margin", "config": {"negative_margin": 0.6}}
    assert repr(miners.get(config)) == repr(miner)
    assert type(miners.get({"class_name": "BatchHard"})) is miners.BatchHard


@pytest.mark.parametrize(
    "identifier, message",
    [
        ("batchhard", "`miner`.*Did you mean 'batch_hard'.*'batchhard'"),
        (["batch_hard"], r"`miner`.*There are: .*Received: \['batch_hard'\]"),
        (3, "`miner`.*Received: 3"),
        ({}, "`miner`.*Received: None"),
        ({"name": {}}, "`miner`.*Received: {}"),
        ({"name": "hdc", "margin": 1}, "'hdc' has no argument 'margin'.*share"),
        ({"name": "batch_hard", "share": 1}, "no argument 'share'.*none"),
        ("no.such.Miner", "miner 'no.such.Miner' cannot be imported"),
        ("keras_dml.losses.Triplet", "must be the path of a miner"),
    ],
)
def test_refused(identifier, message):
    with pytest.raises(UsageError, match=message):
        losses.Contrastive(miner=identifier)


def test_a_miner_of_another_file_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "near_negatives.py").write_text(
        "from keras_dml.miners import Miner\n"
        "class NearNegatives(Miner):\n"
        "    def mine(self, pairs):\n"
        "        return pairs.positive, pairs.negative\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    loss = losses.Triplet(miner="near_negatives.NearNegatives")
    assert repr(loss.miner) == "NearNegatives()"


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: losses.NPair(miner="batch_hard"),
            r"`miner` must be None.*chooses its pairs.*BatchHard\(\)",
        ),
        (
            lambda: losses.Triplet(miner="angular"),
            r"`miner` of triplets needs `mining='all'`.*Angular\(angle=20.0\)",
        ),
        (
            lambda: losses.MultiSimilarity(mining_margin=0.1, miner="hdc"),
            "`miner` must be None where `mining_margin`.*mining_margin=0.1",
        ),
        (
            lambda: losses.LiftedStructure(mining_margin=0.1, miner="hdc"),
            "`miner` must be None where `mining_margin`.*mining_margin=0.1",
        ),
        (
            lambda: layers.CrossBatchMemory(
                losses.Triplet(mining="all", miner=miners.Given([(0, 1, 2)])),
                8,
            ),
            r"`loss`.*miner=Given\(triplets=\[\[0, 1, 2\]\]\)",
        ),
        (
            lambda: miners.BatchEasyHard("semi_hard", "all"),
            "`positives` or `negatives` must be 'easy' or 'hard'",
        ),
    ],
)
def test_miners_that_a_loss_cannot_use(make, message):
    with pytest.raises(ValueError, match=message):
        make()


LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")
X = np.random.default_rng(0).standard_normal((8, 5))


@pytest.mark.parametrize(
    "shorthand, written_out",
    [
        (
            losses.MultiSimilarity(mining_margin=0.1),
            losses.MultiSimilarity(miner="multi_similarity"),
        ),
        (
            losses.LiftedStructure(form="distance", mining_margin=0.3),
            losses.LiftedStructure(
                form="distance", miner=miners.MultiSimilarity(0.3, "euclidean")
            ),
        ),
        (
            losses.Triplet(margin=0.3),
            losses.Triplet(margin=0.3, mining="all", miner="semi_hard"),
        ),
        (
            losses.Triplet(margin=0.3, mining="facenet"),
            losses.Triplet(
                margin=0.3,
                mining="all",
                miner={"name": "semi_hard", "or_farthest": True},
            ),
        ),
        (
            losses.Triplet(margin=0.3, mining="all_semi_hard"),
            losses.Triplet(
                margin=0.3,
                mining="all",
                miner=miners.TripletMargin(0.3, "semi_hard", "cosine"),
            ),
        ),
        (
            losses.Triplet(margin=0.3, mining="hard"),
            losses.Triplet(margin=0.3, mining="all", miner="batch_hard"),
        ),
    ],
)
def test_shorthands_are_miners(shorthand, written_out):
    value = float(shorthand(LABELS, X))
    assert value > 0
    np.testing.assert_allclose(value, float(written_out(LABELS, X)), rtol=1e-6)


def test_a_miner_replaces_the_sampling_of_margin():
    columns = np.concatenate([X, np.full((8, 1), 1.2), np.full((8, 1), 3)], 1)
    drawn = losses.Margin(nearest=0.6)
    same = losses.Margin(miner=miners.DistanceWeighted(nearest=0.6))
    hard = losses.Margin(miner="batch_hard")
    value = float(drawn(LABELS, columns))
    assert value == float(same(LABELS, columns))
    assert value != float(hard(LABELS, columns))
