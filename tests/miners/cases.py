"""One table of miners, with the loops that they equal.

The files of laws hold every case to every law. A new miner needs an entry.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_dml import losses, miners
from tests.losses.naive_pair_losses import unit
from tests.miners import naive

# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3, 1, 0], "int32")
BATCHES = {
    "mixed": LABELS,
    "balanced": np.arange(12, dtype="int32") // 3,
    "one class": np.full(6, 2, "int32"),
    "no two rows of a class": np.arange(6, dtype="int32"),
}


@dataclass(frozen=True)
class Case:
    """A miner, by its key, and what it is made with."""

    key: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def make(self):
        return miners.MINERS[self.key](**self.arguments)

    def loss(self, **arguments):
        """The loss that sees the most of what the miner chooses."""
        miner = self.make()
        if isinstance(miner, miners.TripletMiner):
            return losses.Triplet(
                margin=0.5,
                mining="all",
                distance="euclidean",
                miner=miner,
                **arguments,
            )
        return losses.Contrastive(
            form="euclidean", negative_margin=2.0, miner=miner, **arguments
        )

    def expected(self, positive, negative, x, **arguments):
        loop = getattr(naive, self.key)
        return loop(positive, negative, unit(x), **self.arguments, **arguments)


CASES = {
    "_".join([key, *map(str, arguments.values())]): Case(key, arguments)
    for key, arguments in (
        ("angular", {}),
        ("angular", {"angle": 35.0}),
        ("batch_easy_hard", {}),
        *(
            ("batch_easy_hard", {"positives": p, "negatives": n})
            for p, n in (
                ("semi_hard", "easy"),
                ("semi_hard", "hard"),
                ("hard", "semi_hard"),
                ("easy", "hard"),
                ("all", "hard"),
                ("easy", "all"),
            )
        ),
        ("batch_hard", {}),
        ("distance_weighted", {}),
        ("distance_weighted", {"nearest": 0.8, "farthest": 1.1}),
        ("given", {"triplets": [[0, 3, 1], [0, 5, 4], [2, 1, 0], [2, 1, 5]]}),
        ("hdc", {}),
        ("hdc", {"share": 0.1, "distance": "cosine"}),
        ("multi_similarity", {}),
        ("multi_similarity", {"margin": -0.1, "distance": "euclidean"}),
        ("pair_margin", {"positive_margin": 0.9, "negative_margin": 1.2}),
        ("semi_hard", {}),
        ("semi_hard", {"or_farthest": True, "distance": "euclidean"}),
        *(
            ("triplet_margin", {"margin": 0.3, "kind": kind})
            for kind in ("all", "hard", "semi_hard", "easy")
        ),
        ("triplet_margin", {"margin": -0.1, "kind": "hard"}),
        ("uniform_histogram", {}),
        (
            "uniform_histogram",
            {"bins": 4, "positives_per_bin": 2, "negatives_per_bin": 3},
        ),
    )
}
# What these choose depends on the places of the rows in the batch.
BY_PLACE = ("distance_weighted", "given", "uniform_histogram")


def rows(labels, seed=0):
    return np.random.default_rng(seed).standard_normal((len(labels), 4))
