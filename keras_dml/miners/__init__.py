# ruff: noqa: F401
"""Miners choose the pairs or triplets of a batch that a loss compares."""

from keras_dml.miners.angular import Angular
from keras_dml.miners.base import Miner, TripletMiner
from keras_dml.miners.batch_easy_hard import BatchEasyHard, easy_hard_pairs
from keras_dml.miners.batch_hard import BatchHard
from keras_dml.miners.distance_weighted import DistanceWeighted
from keras_dml.miners.given import Given, pair_matrix
from keras_dml.miners.hdc import HDC, hardest_pairs
from keras_dml.miners.multi_similarity import (
    MultiSimilarity,
    informative_pairs,
)
from keras_dml.miners.pair_margin import PairMargin
from keras_dml.miners.registry import MINERS, deserialize, get, serialize
from keras_dml.miners.semi_hard import SemiHard, semi_hard_triplets
from keras_dml.miners.triplet_margin import TripletMargin, margin_triplets
from keras_dml.miners.uniform_histogram import (
    UniformHistogram,
    pairs_by_bin,
)
