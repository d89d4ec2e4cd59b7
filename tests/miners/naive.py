"""The miners from their definitions: one pair or triplet at a time.

Each takes the masks of positive and negative pairs, unit rows, and the
arguments of the miner, and gives the masks of the chosen ones.
"""

import itertools
import math

import numpy as np

from keras_dml.ops.draws import pair_noise
from keras_dml.ops.pairs import Pairs
from tests.losses.naive_pair_losses import columns, distance_of


def distances(x, metric):
    return np.array([[distance_of(metric, a, b) for b in x] for a in x])


def empty(positive):
    return np.zeros_like(positive), np.zeros_like(positive)


def of_triplets(positive, negative, chooses):
    p, n = empty(positive)
    for a in range(len(positive)):
        for j, k in itertools.product(
            columns(positive, a), columns(negative, a)
        ):
            if chooses(a, j, k):
                p[a, j] = n[a, k] = True
    return p, n


def angular(positive, negative, x, angle=20.0):
    def chooses(a, j, k):
        middle = (x[a] + x[j]) / 2
        side = np.linalg.norm(x[a] - x[j])
        found = math.atan2(side, 2 * np.linalg.norm(x[k] - middle))
        return math.degrees(found) > angle

    return of_triplets(positive, negative, chooses)


def triplet_margin(
    positive, negative, x, margin=0.2, kind="all", distance="euclidean"
):
    d = distances(x, distance)

    def chooses(a, j, k):
        farther = d[a, k] - d[a, j]
        return {
            "all": farther <= margin,
            "hard": farther <= min(margin, 0),
            "semi_hard": 0 < farther <= margin,
            "easy": farther > margin,
        }[kind]

    return of_triplets(positive, negative, chooses)


def semi_hard(positive, negative, x, or_farthest=False, distance="cosine"):
    d = distances(x, distance)

    def chooses(a, j, k):
        others = columns(negative, a)
        farther = [d[a, o] for o in others if d[a, o] > d[a, j]]
        if farther:
            return d[a, k] == min(farther)
        return or_farthest and d[a, k] == max(d[a, o] for o in others)

    return of_triplets(positive, negative, chooses)


def batch_easy_hard(
    positive,
    negative,
    x,
    positives="easy",
    negatives="semi_hard",
    distance="euclidean",
):
    d, (p, n) = distances(x, distance), empty(positive)

    def of_kind(kind, found, far):
        if kind == "all" or not found:
            return found
        return [max(found) if (kind == "easy") == far else min(found)]

    for i in range(len(x)):
        near = [d[i, j] for j in columns(positive, i)]
        far = [d[i, j] for j in columns(negative, i)]
        if positives == "semi_hard":
            far = of_kind(negatives, far, True)
            near = [v for v in near if far and v < far[0]]
            near = of_kind("hard", near, False)
        else:
            near = of_kind(positives, near, False)
            if negatives == "semi_hard":
                far = [v for v in far if near and v > near[0]]
            hard = "hard" if negatives == "semi_hard" else negatives
            far = of_kind(hard, far, True)
        if "all" not in (positives, negatives) and not (near and far):
            continue
        for j in range(len(x)):
            p[i, j] = positive[i, j] and d[i, j] in near
            n[i, j] = negative[i, j] and d[i, j] in far
    return p, n


def batch_hard(positive, negative, x):
    return batch_easy_hard(positive, negative, x, "hard", "hard")


def hdc(positive, negative, x, share=0.5, distance="euclidean"):
    d, found = distances(x, distance), empty(positive)
    for mask, chosen, sign in (
        (positive, found[0], -1),
        (negative, found[1], 1),
    ):
        values = sorted(sign * d[mask])
        if values:
            last = values[math.ceil(share * len(values)) - 1]
            # Both places of a pair have one distance but for rounding.
            chosen[mask & (sign * d <= last + 1e-7)] = True
    return found


def multi_similarity(positive, negative, x, margin=0.1, distance="cosine"):
    d, (p, n) = distances(x, distance), empty(positive)
    for i in range(len(x)):
        near, far = columns(positive, i), columns(negative, i)
        for j in near:
            p[i, j] = any(d[i, j] + margin > d[i, k] for k in far)
        for k in far:
            n[i, k] = any(d[i, k] - margin < d[i, j] for j in near)
    return p, n


def pair_margin(
    positive,
    negative,
    x,
    positive_margin=0.2,
    negative_margin=0.8,
    distance="euclidean",
):
    d = distances(x, distance)
    return positive & (d > positive_margin), negative & (d < negative_margin)


def noise(x, step):
    pairs = Pairs(x, x, None, None, step=step)
    return np.asarray(pair_noise(pairs, np.zeros((len(x), len(x)))))


def distance_weighted(positive, negative, x, nearest=0.5, farthest=1.4, step=0):
    d, u, n = distances(x, "euclidean"), noise(x, step), empty(positive)[1]
    dim = x.shape[1]
    for i in range(len(x)):
        near = [k for k in columns(negative, i) if d[i, k] < farthest]

        def score(k, i=i, near=near):
            clipped = min(max(d[i, k], nearest), 1.99)
            weight = (2 - dim) * math.log(clipped)
            weight -= (dim - 3) / 2 * math.log(1 - clipped**2 / 4)
            return weight * bool(near) - math.log(-math.log(u[i, k]))

        drawn = sorted(near or columns(negative, i), key=score)
        number = positive[i].sum()
        n[i, drawn[len(drawn) - min(number, len(drawn)) :]] = True
    return positive, n


def uniform_histogram(
    positive,
    negative,
    x,
    bins=100,
    positives_per_bin=10,
    negatives_per_bin=10,
    distance="euclidean",
    step=0,
):
    d, u, found = distances(x, distance), noise(x, step), empty(positive)
    for mask, chosen, most in (
        (positive, found[0], positives_per_bin),
        (negative, found[1], negatives_per_bin),
    ):
        if not mask.any():
            continue
        least, width = d[mask].min(), (d[mask].max() - d[mask].min()) / bins
        by_bin = {}
        for i, j in np.argwhere(mask):
            cell = min(int((d[i, j] - least) / max(width, 1e-12)), bins - 1)
            by_bin.setdefault(cell, []).append((u[i, j], i, j))
        for members in by_bin.values():
            for _, i, j in sorted(members)[:most]:
                chosen[i, j] = True
    return found


def given(positive, negative, x, triplets):
    p, n = empty(positive)
    for a, j, k in triplets:
        p[a, j] = n[a, k] = True
    return p, n
