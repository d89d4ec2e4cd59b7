"""The pair losses from their formulas: one pair at a time, in float64.

Each takes the boolean matrices of positive and negative pairs, and the
embeddings, and gives the loss of the batch.
"""

import itertools
import math

import numpy as np


def unit(x):
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(lengths > 0, lengths, 1.0)


def masks(labels):
    same = labels[:, None] == labels[None, :]
    itself = np.eye(len(labels), dtype=bool)
    return same & ~itself, ~same & ~itself


def columns(mask, i):
    return [int(j) for j in np.flatnonzero(mask[i])]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def distance_of(metric, a, b):
    if metric == "cosine":
        return 1 - a @ b
    if metric == "dot":
        return -a @ b
    if metric == "signal_to_noise":
        return np.var(a - b) / np.var(a) if np.var(a) else 0.0
    if metric.startswith("l"):
        return np.linalg.norm(a - b, float(metric[1:]))
    squared = np.sum((a - b) ** 2)
    return squared if metric == "squared_euclidean" else math.sqrt(squared)


def similarity_of(metric, a, b):
    inner = metric in ("cosine", "dot")
    return a @ b if inner else -distance_of(metric, a, b)


def averaged(terms, average):
    """The average of the terms of each row, as `keras_dml.ops.Average`."""
    named = {None: {}, "all": {}, "non_zero": {"low": 0.0}}
    chosen = average if isinstance(average, dict) else named[average]
    if chosen.get("per_anchor"):
        terms = [[mean(row)] for row in terms if row]
    low, high = chosen.get("low", -np.inf), chosen.get("high", np.inf)
    return mean([v for row in terms for v in row if low < v < high])


def multi_similarity(
    positive,
    negative,
    x,
    mining_margin=None,
    similarity="cosine",
    average="all",
    alpha=2.0,
    beta=50.0,
    base=None,
):
    if base is None:
        base = 0.5 if similarity == "cosine" else -1.0
    x, values = unit(x), []
    for i in range(len(x)):
        p, n = (
            [similarity_of(similarity, x[i], x[j]) for j in columns(mask, i)]
            for mask in (positive, negative)
        )
        if mining_margin is not None:
            lowest, highest = min(p, default=np.inf), max(n, default=-np.inf)
            p = [s for s in p if s - mining_margin < highest]
            n = [s for s in n if s + mining_margin > lowest]
        values.append(
            math.log(1 + sum(math.exp(-alpha * (s - base)) for s in p)) / alpha
            + math.log(1 + sum(math.exp(beta * (s - base)) for s in n)) / beta
        )
    return averaged([[value] for value in values], average)


def contrastive(
    positive,
    negative,
    x,
    form="similarity",
    power=1,
    similarity=None,
    average="non_zero",
    positive_weight=1,
    negative_weight=1,
    positive_margin=None,
    negative_margin=None,
):
    x = unit(x)
    p, n = [[] for _ in x], [[] for _ in x]
    metric = similarity or {"similarity": "cosine"}.get(form, form)
    furthest, nearest = 0, 1
    # Margins are cosines, or distances.
    if metric == "cosine":
        furthest = 1 - (1 if positive_margin is None else positive_margin)
        nearest = 1 - (0.5 if negative_margin is None else negative_margin)
    for i in range(len(x)):
        for j in range(len(x)):
            d = distance_of(metric, x[i], x[j])
            far, near = d - furthest, nearest - d
            p[i] += [max(far, 0) ** power] if positive[i, j] else []
            n[i] += [max(near, 0) ** power] if negative[i, j] else []
    return positive_weight * averaged(p, average) + negative_weight * averaged(
        n, average
    )


def triplet(
    positive,
    negative,
    x,
    margin=0.1,
    mining="semi_hard",
    distance="cosine",
    average="non_zero",
    soft=False,
    swap=False,
    normalize=True,
    similarity=None,
):
    x, values = unit(x) if normalize else x, []
    distance = similarity or distance
    for a in range(len(x)):
        p = [distance_of(distance, x[a], x[j]) for j in columns(positive, a)]
        n = [distance_of(distance, x[a], x[j]) for j in columns(negative, a)]
        if not p or not n:
            continue
        if mining in ("hard", "easy"):
            excess = (max(p) if mining == "hard" else min(p)) - min(n)
            values.append(
                math.log(1 + math.exp(excess))
                if soft
                else max(0.0, excess + margin)
            )
            continue
        if mining == "all":
            for j, k in itertools.product(
                columns(positive, a), columns(negative, a)
            ):
                far = distance_of(distance, x[a], x[k])
                if swap:
                    far = min(far, distance_of(distance, x[j], x[k]))
                excess = distance_of(distance, x[a], x[j]) - far
                values.append(
                    math.log(1 + math.exp(excess))
                    if soft
                    else max(0.0, excess + margin)
                )
            continue
        for d in p:
            farther = [e for e in n if e > d]
            if mining == "all_semi_hard":
                values += [d - e + margin for e in farther if e <= d + margin]
            elif farther:
                values.append(max(0.0, d - min(farther) + margin))
            elif mining == "facenet":
                values.append(max(0.0, d - max(n) + margin))
            else:
                values.append(0.0)
    return averaged([[v] for v in values], average)


def n_pair(positive, negative, x, l2=0.02):
    rows = range(len(x))
    turn = [sum(bool(positive[j, i]) for j in range(i)) for i in rows]
    candidates = [j for j in rows if turn[j] == 1]
    values = []
    for i in rows:
        own = [j for j in candidates if positive[i, j]]
        if turn[i] == 0 and own:
            total = sum(math.exp(x[i] @ x[j]) for j in candidates)
            values.append(math.log(total) - mean([x[i] @ x[j] for j in own]))
    return mean(values) + l2 * mean([row @ row for row in x])


def lifted(
    positive,
    negative,
    x,
    form="similarity",
    margin=0.5,
    positive_scale=1.0,
    negative_scale=1.0,
    hinge=True,
    mining_margin=None,
    normalize=True,
):
    x, values = unit(x) if normalize else x, []

    def distance(i, j):
        return distance_of("euclidean", x[i], x[j])

    for i in range(len(x)):
        p, n = columns(positive, i), columns(negative, i)
        if form == "pairs":
            for j in p:
                against = [distance(i, k) for k in n]
                against += [distance(j, k) for k in columns(negative, j)]
                if n and columns(negative, j):
                    total = sum(math.exp(margin - d) for d in against)
                    joint = math.log(total) + distance(i, j)
                    values.append(max(0.0, joint) ** 2 / 2)
            continue
        if form == "similarity":
            p, n = ([x[i] @ x[j] for j in side] for side in (p, n))
        else:
            p, n = ([-distance(i, j) for j in side] for side in (p, n))
        if p and n and mining_margin is not None:
            lowest, highest = min(p), max(n)
            p = [s for s in p if s - mining_margin < highest]
            n = [s for s in n if s + mining_margin > lowest]
        if not p or not n:
            values.append(0.0)
            continue
        near = sum(math.exp(positive_scale * (margin - s)) for s in p)
        far = sum(math.exp(negative_scale * s) for s in n)
        value = math.log(near) / positive_scale + math.log(far) / negative_scale
        values.append(max(0.0, value) if hinge else value)
    return mean(values)


def exponentials(mask, x, i, temperature, similarity):
    return [
        math.exp(similarity_of(similarity, x[i], x[j]) / temperature)
        for j in columns(mask, i)
    ]


def supcon(
    positive,
    negative,
    x,
    temperature=0.1,
    similarity="cosine",
    normalize=True,
):
    x, values = unit(x) if normalize else x, []
    for i in range(len(x)):
        p = exponentials(positive, x, i, temperature, similarity)
        n = exponentials(negative, x, i, temperature, similarity)
        if p:
            values.append(mean([-math.log(e / sum(p + n)) for e in p]))
    return mean(values)


def nt_xent(
    positive, negative, x, temperature=0.1, similarity="cosine", average="all"
):
    x, values = unit(x), []
    for i in range(len(x)):
        p = exponentials(positive, x, i, temperature, similarity)
        n = exponentials(negative, x, i, temperature, similarity)
        values.append([-math.log(e / (e + sum(n))) for e in p])
    return averaged(values, average)


def nca(positive, negative, x, temperature=1.0, normalize=True):
    x, values = unit(x) if normalize else x, []
    for i in range(len(x)):
        p, n = (
            [-np.sum((x[i] - x[j]) ** 2) / temperature for j in side]
            for side in (columns(positive, i), columns(negative, i))
        )
        if p:
            every = np.logaddexp.reduce(p + n)
            values.append(every - np.logaddexp.reduce(p))
    return mean(values)


def smooth_ap(positive, negative, x, temperature=0.01):
    x, values = unit(x), []
    for i in range(len(x)):
        p, n, total = columns(positive, i), columns(negative, i), 0.0
        for k in p:
            others = [(x[i] @ (x[j] - x[k])) / temperature for j in p if j != k]
            against = [(x[i] @ (x[j] - x[k])) / temperature for j in n]
            rank = 1 + sum(1 / (1 + math.exp(-z)) for z in others)
            total += rank / (
                rank + sum(1 / (1 + math.exp(-z)) for z in against)
            )
        if p:
            values.append(1 - total / len(p))
    return mean(values)


def circle(positive, negative, x, gamma=80.0, margin=0.4):
    x, values = unit(x), []
    for i in range(len(x)):
        p = [max(0.0, 1 - x[i] @ x[j]) for j in columns(positive, i)]
        n = [max(0.0, 1 - x[i] @ x[j]) for j in columns(negative, i)]
        pull = [gamma * (margin + d) * (d - margin) for d in p]
        push = [gamma * max(0, 1 + margin - d) * (1 - margin - d) for d in n]
        if p and n:
            z = np.logaddexp.reduce(pull) + np.logaddexp.reduce(push)
            values.append(np.logaddexp(0.0, z))
    return mean([v for v in values if v > 0])


def margin(positive, negative, y_pred, margin=0.2, nu=0.0, sampling="all"):
    """All pairs; the last columns are the boundary of a row and the step."""
    x, boundaries, values = unit(y_pred[:, :-2]), y_pred[:, -2], []
    regularizer = 0.0
    for a, boundary in enumerate(boundaries):
        d = np.linalg.norm(x[a] - x, axis=1)
        for j in columns(positive, a):
            values.append(max(0.0, d[j] - boundary + margin))
            regularizer += nu * boundary
        for j in columns(negative, a):
            values.append(max(0.0, boundary - d[j] + margin))
    active = sum(value > 0 for value in values)
    return (sum(values) + regularizer) / active if active else 0.0


def instance(positive, negative, x, scale=64.0):
    x, values = unit(x), []
    for i in range(len(x)):
        # A zero vector, too, is at the cosine 1 to itself.
        n = [scale * (x[i] @ x[j] - 1) for j in columns(negative, i)]
        values.append(np.logaddexp.reduce([0.0, *n]))
    return mean(values)


def dynamic_soft_margin(positive, negative, x, bins=10):
    x = unit(x)
    excess = [
        np.linalg.norm(x[a] - x[p]) - np.linalg.norm(x[a] - x[n])
        for a in range(len(x))
        for p in columns(positive, a)
        for n in columns(negative, a)
    ]
    width = 4 / bins
    found = [
        sum(pulse(one, -2 + place * width, width) for one in excess)
        for place in range(bins + 1)
    ]
    easier = np.cumsum(found) / max(1, len(excess))
    return mean([easier[int((one + 2) // width)] * one for one in excess])


def pulse(value, place, width):
    return max(0.0, 1 - abs(value - place) / width)


def fast_ap(positive, negative, x, bins=10):
    x, values, width = unit(x), [], 4 / bins
    for i in range(len(x)):
        p = [np.sum((x[i] - x[j]) ** 2) for j in columns(positive, i)]
        n = [np.sum((x[i] - x[j]) ** 2) for j in columns(negative, i)]
        own = found = precision = 0.0
        for bin in range(bins + 1):
            here = sum(pulse(d, bin * width, width) for d in p)
            own += here
            found += here + sum(pulse(d, bin * width, width) for d in n)
            precision += here * own / found if found else 0.0
        if p:
            values.append(1 - precision / len(p))
    return mean(values)


def all_pairs(mask, x):
    return [x[i] @ x[j] for i in range(len(x)) for j in columns(mask, i)]


def histogram(positive, negative, x, bins=100):
    x, width, total = unit(x), 2 / bins, 0.0
    p, n = all_pairs(positive, x), all_pairs(negative, x)
    points = [-1 + width * bin for bin in range(bins + 1)]
    own = [mean([pulse(s, point, width) for s in p]) for point in points]
    other = [mean([pulse(s, point, width) for s in n]) for point in points]
    for bin in range(bins + 1):
        total += other[bin] * sum(own[: bin + 1])
    return total


def tuplet_margin(positive, negative, x, margin=0.1, scale=64.0):
    x, values = unit(x), []
    for i in range(len(x)):
        n = [x[i] @ x[j] for j in columns(negative, i)]
        for j in columns(positive, i):
            own = math.cos(math.acos(min(1.0, x[i] @ x[j])) - margin)
            total = sum(math.exp(scale * (s - own)) for s in n)
            values.append(math.log(1 + total))
    return mean(values)


def intra_pair_variance(
    positive, negative, x, positive_tolerance=0.01, negative_tolerance=0.01
):
    x = unit(x)
    p, n = all_pairs(positive, x), all_pairs(negative, x)
    low = (1 - positive_tolerance) * mean(p)
    high = (1 + negative_tolerance) * mean(n)
    return mean([max(0.0, low - s) ** 2 for s in p]) + mean(
        [max(0.0, s - high) ** 2 for s in n]
    )


def ranked_list(
    positive,
    negative,
    x,
    boundary=1.2,
    margin=0.4,
    positive_scale=0.0,
    negative_scale=10.0,
    balance=0.5,
):
    x, values = unit(x), []
    for i in range(len(x)):
        parts = []
        for mask, sign, start, scale in (
            (positive, 1, boundary - margin, positive_scale),
            (negative, -1, boundary, negative_scale),
        ):
            terms = [
                sign * (np.linalg.norm(x[i] - x[j]) - start)
                for j in columns(mask, i)
            ]
            terms = [term for term in terms if term > 0]
            weights = [math.exp(scale * term) for term in terms]
            parts.append(np.average(terms, weights=weights) if terms else 0.0)
        values.append((1 - balance) * parts[0] + balance * parts[1])
    return mean(values)


def pnp(positive, negative, x, penalty="dq", parameter=None, temperature=0.01):
    cost = {
        "o": lambda r: r,
        "iu": lambda r: (1 + r) * math.log(1 + r),
        "ib": lambda r: r / 2 - math.log(1 + 2 * r) / 4,
        "ds": lambda r: math.log(1 + r),
        "dq": lambda r: 1 - 1 / (1 + r) ** (parameter or 1),
    }[penalty]
    x, values = unit(x), []
    for i in range(len(x)):
        ranks = [
            sum(
                1 / (1 + math.exp(-(x[i] @ (x[k] - x[j])) / temperature))
                for k in columns(negative, i)
            )
            for j in columns(positive, i)
        ]
        if ranks:
            values.append(mean([cost(rank) for rank in ranks]))
    return mean(values)


def recall_surrogate(
    positive,
    negative,
    x,
    k=(1, 2, 4, 8, 16),
    rank_temperature=0.01,
    k_temperature=1.0,
):
    x, values = unit(x), []
    for i in range(len(x)):
        own, recalls = columns(positive, i), []
        others = own + columns(negative, i)
        ranks = [
            1
            + sum(
                1 / (1 + math.exp(-(x[i] @ (x[o] - x[j])) / rank_temperature))
                for o in others
                if o != j
            )
            for j in own
        ]
        for one in k:
            within = [
                1 / (1 + math.exp(-(one - rank) / k_temperature))
                for rank in ranks
            ]
            if own:
                recalls.append(sum(within) / min(one, len(own)))
        if own:
            values.append(1 - mean(recalls))
    return mean(values)


def signal_to_noise(
    positive,
    negative,
    x,
    positive_margin=0.0,
    negative_margin=1.0,
    zero_mean=0.0,
):
    x, p, n = unit(x), [], []
    for i in range(len(x)):
        for j in range(len(x)):
            own = np.var(x[i])
            ratio = np.var(x[i] - x[j]) / own if own else 0.0
            far, near = ratio - positive_margin, negative_margin - ratio
            p += [far] if positive[i, j] and far > 0 else []
            n += [near] if negative[i, j] and near > 0 else []
    return mean(p) + mean(n) + zero_mean * mean([abs(sum(row)) for row in x])


def angular(positive, negative, x, angle=math.pi / 4):
    x, values, tangent = unit(x), [], math.tan(angle) ** 2
    for a in range(len(x)):
        for p in columns(positive, a):
            total = sum(
                math.exp(
                    4 * tangent * (x[a] + x[p]) @ x[n]
                    - 2 * (1 + tangent) * x[a] @ x[p]
                )
                for n in columns(negative, a)
            )
            values.append(math.log(1 + total))
    return mean(values)


def hierarchical_triplet(
    labels,
    x,
    groups,
    margin=0.1,
    level_margin=0.1,
    mining="semi_hard",
    distance="cosine",
):
    x, values = unit(x), []
    positive, negative = masks(labels)
    for a in range(len(x)):
        shorter = []
        for n in columns(negative, a):
            levels = sum(
                level[labels[a]] != level[labels[n]]
                for level in np.atleast_2d(groups)
            )
            far = distance_of(distance, x[a], x[n])
            shorter.append(far - level_margin * levels)
        for p in columns(positive, a):
            d = distance_of(distance, x[a], x[p])
            if mining == "semi_hard":
                chosen = [min([e for e in shorter if e > d], default=np.inf)]
            else:
                chosen = shorter
            values += [max(0.0, d - e + margin) for e in chosen]
    return mean([value for value in values if value > 0])


def two_views(positive, x):
    """The first row of each class, and the mean of its second ones."""
    rows = range(len(x))
    turn = [sum(bool(positive[j, i]) for j in range(i)) for i in rows]
    first, second = [], []
    for i in rows:
        own = [x[j] for j in columns(positive, i) if turn[j] == 1]
        if turn[i] == 0 and own:
            first.append(x[i])
            second.append(np.mean(own, axis=0))
    return first, second


def vicreg(
    positive,
    negative,
    x,
    invariance=25.0,
    variance=25.0,
    covariance=1.0,
    normalize=False,
    epsilon=1e-4,
):
    first, second = two_views(positive, unit(x) if normalize else x)
    squares = [
        np.mean((a - b) ** 2) for a, b in zip(first, second, strict=True)
    ]
    value = invariance * mean(squares)
    if len(first) < 2:
        return value
    for view in (first, second):
        matrix = np.cov(np.transpose(view))
        for j, k in itertools.product(range(x.shape[1]), repeat=2):
            if j != k:
                value += covariance * matrix[j, k] ** 2 / x.shape[1]
        deviations = [math.sqrt(c + epsilon) for c in np.diag(matrix)]
        short = [max(0.0, 1 - deviation) for deviation in deviations]
        value += variance * mean(short) / 2
    return value


def barlow_twins(positive, negative, x, redundancy=0.005, epsilon=1e-5):
    first, second = map(np.array, two_views(positive, x))
    if len(first) < 2:
        return 0.0
    u, v = (
        (view - view.mean(axis=0)) / np.sqrt(view.var(axis=0) + epsilon)
        for view in (first, second)
    )
    value = 0.0
    for j, k in itertools.product(range(x.shape[1]), repeat=2):
        correlation = np.mean(u[:, j] * v[:, k])
        value += (
            (1 - correlation) ** 2 if j == k else redundancy * correlation**2
        )
    return value


def simsiam(positive, negative, y_pred):
    predictions, x = (unit(part) for part in np.split(y_pred, 2, axis=1))
    return -mean(
        [
            predictions[i] @ x[j]
            for i in range(len(x))
            for j in columns(positive, i)
        ]
    )
