# %% [markdown]
# # Moving from another library
#
# The losses of tensorflow-addons and pytorch-metric-learning have counterparts
# here. Names, defaults and units differ. This guide writes two of their losses
# as formulas in numpy and compares them with the losses here; neither library
# is needed.

# %%
import numpy as np

import keras_dml

rng = np.random.default_rng(0)
embeddings = rng.normal(size=(12, 4)).astype("float32")
labels = np.repeat(np.arange(4), 3)
same = labels[:, None] == labels[None, :]
positive = same & ~np.eye(12, dtype=bool)


def distances(rows):
    """Returns the Euclidean distance of every pair."""
    return np.linalg.norm(rows[:, None] - rows[None, :], axis=-1)


# %% [markdown]
# ## `TripletSemiHardLoss` of tensorflow-addons
#
# For every pair of one class: the nearest negative that is farther than the
# positive, or the farthest one if there is none. The loss is the mean over all
# these pairs. The embeddings are taken as they are.


# %%
def triplet_semihard_loss(labels, rows, margin=1.0):
    """Follows the documentation of tensorflow-addons 0.23."""
    d = distances(rows)
    terms = []
    for anchor, partner in np.argwhere(positive):
        negatives = d[anchor][labels != labels[anchor]]
        farther = negatives[negatives > d[anchor, partner]]
        negative = farther.min() if len(farther) else negatives.max()
        terms.append(max(0.0, margin + d[anchor, partner] - negative))
    return np.mean(terms)


ours = keras_dml.losses.Triplet(
    margin=1.0,
    mining="facenet",
    distance="euclidean",
    average="all",
    normalize=False,
)
theirs = triplet_semihard_loss(labels, embeddings)
print("theirs", theirs, "ours", float(ours(labels, embeddings)))
np.testing.assert_allclose(float(ours(labels, embeddings)), theirs, rtol=1e-5)

# %% [markdown]
# | there | here |
# |---|---|
# | `TripletSemiHardLoss` | `Triplet(mining="facenet", ...)` |
# | `distance_metric="L2"` | `distance="euclidean"` |
# | `distance_metric="squared-L2"` | `distance="squared_euclidean"` |
# | `distance_metric="angular"` | `distance="cosine"`, `normalize=True` |
#
# ## `ContrastiveLoss` of pytorch-metric-learning
#
# It normalizes the embeddings, takes positives farther than `pos_margin` and
# negatives nearer than `neg_margin`, and adds the means over those of each kind
# that are not zero.


# %%
def contrastive_loss(labels, rows, pos_margin=0.0, neg_margin=1.0):
    """Follows the documentation of pytorch-metric-learning 2.9."""
    d = distances(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    too_far = np.maximum(d - pos_margin, 0)[positive]
    too_near = np.maximum(neg_margin - d, 0)[~same]
    return sum(
        terms[terms > 0].mean() if (terms > 0).any() else 0.0
        for terms in (too_far, too_near)
    )


ours = keras_dml.losses.Contrastive(form="euclidean")
theirs = contrastive_loss(labels, embeddings)
print("theirs", theirs, "ours", float(ours(labels, embeddings)))
np.testing.assert_allclose(float(ours(labels, embeddings)), theirs, rtol=1e-5)

# %% [markdown]
# | there | here |
# |---|---|
# | `ContrastiveLoss()` | `Contrastive(form="euclidean")` |
# | `pos_margin`, `neg_margin` | `positive_margin`, `negative_margin` |
# | `distance=CosineSimilarity()`, margins 1 and 0.5 | `Contrastive()` |
# | `loss(embeddings, labels)` | `loss(labels, embeddings)`, as Keras has it |
# | proxies inside the loss | the layer `Proxies` before it |
#
# [Migrating](../migrating.md) has a row for every loss of four libraries, and
# says where they differ.
