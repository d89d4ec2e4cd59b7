"""Heads on the prefixes of an embedding."""

import keras
import numpy as np
import pytest

from keras_dml import layers, losses
from keras_dml.errors import UsageError
from keras_dml.models import (
    HEADS,
    HeadOptions,
    build_embedder,
    build_trainer,
    cut_embedder,
    keep_features,
)
from keras_dml.models.prefixes import proxies_of, widths_of
from keras_dml.run.prefixes import prefix_rows
from tests.conformance import to_numpy

pytestmark = pytest.mark.slow

SHAPE = (16, 16, 1)
RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(0, 255, (6, *SHAPE)).astype("float32")
LABELS = np.arange(6, dtype="int32") % 3
INPUTS = {"image": IMAGES, "label": LABELS}


def trainer_of(head, prefixes=(), **options):
    keras.utils.set_random_seed(0)
    embedder = build_embedder("small_cnn", SHAPE, dim=5)
    given = HeadOptions(prefixes=prefixes, **options)
    return embedder, build_trainer(embedder, 3, head, given)


@pytest.mark.parametrize("name", HEADS)
def test_every_head_gives_side_by_side_what_it_gives_for_a_prefix(name):
    options = {"sample_aware": {"memory_size": 8}}
    _, plain = trainer_of(name, **options)
    embedder, trainer = trainer_of(name, [2, 3], **options)
    widths, output = widths_of(trainer), to_numpy(trainer(INPUTS))
    assert len(widths) == 3 and sum(widths) == output.shape[1]
    # The whole embedding has the head that it has without prefixes.
    np.testing.assert_array_equal(
        output[:, -widths[-1] :], to_numpy(plain(INPUTS))
    )
    part = trainer.get_layer("prefix_3")
    head = keras.Model(embedder.input, embedder.get_layer("head").output)
    expected = part([to_numpy(head(IMAGES))[:, :3], LABELS])
    np.testing.assert_allclose(
        output[:, widths[0] : sum(widths[:2])], to_numpy(expected), rtol=1e-5
    )


def test_every_prefix_has_proxies_that_an_optimizer_finds_by_their_path():
    _, trainer = trainer_of("logits", [2, 3])
    shapes = {
        v.shape for v in trainer.trainable_variables if "proxies" in v.path
    }
    assert shapes == {(3, 2), (3, 3), (3, 5)}
    paths = [v.path.split("/")[0] for v in trainer.trainable_variables]
    assert paths.count("proxies") == 3
    found = proxies_of(trainer, 5)
    assert {size: one.proxies.shape for size, one in found.items()} == {
        size: (3, size) for size in (2, 3, 5)
    }


def test_every_prefix_has_a_memory():
    memory = layers.CrossBatchMemory(
        losses.Contrastive(), size=12, warm_up_steps=0, name="memory"
    )
    _, trainer = trainer_of("embeddings", [2], memory=memory)
    loss = losses.WithMemory(losses.Contrastive())
    trainer.compile("sgd", losses.Matryoshka(loss, widths_of(trainer)))
    trainer.fit(INPUTS, LABELS, batch_size=6, shuffle=False, verbose=0)
    own = trainer.get_layer("prefix_2").get_layer("memory")
    assert (int(memory.filled), int(own.filled)) == (6, 6)
    assert own.memory.shape == (12, 2)


def test_a_prefix_trains_its_numbers_alone():
    embedder, trainer = trainer_of("embeddings", [2])
    loss = losses.Matryoshka(losses.Contrastive(), [2, 5], [1.0, 0.0])
    head = embedder.get_layer("head")
    before = [to_numpy(one) for one in head.weights]
    trainer.compile(keras.optimizers.SGD(0.1), loss)
    trainer.fit(INPUTS, LABELS, verbose=0)
    moved = [
        np.abs(to_numpy(one) - old).max(axis=tuple(range(old.ndim - 1))) > 0
        for one, old in zip(head.weights, before, strict=True)
    ]
    for one in moved:
        assert one[:2].all() and not one[2:].any()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
def test_a_cut_embedder_gives_the_prefix_normalized_by_itself(
    normalization, normalize
):
    embedder = build_embedder(
        "small_cnn",
        SHAPE,
        dim=5,
        normalize=normalize,
        normalization=normalization,
    )
    cut = cut_embedder(embedder, 2)
    assert cut.output_shape == (None, 2)
    assert [one.name for one in cut.layers] == [
        one.name for one in embedder.layers
    ]
    rows = cut.predict(IMAGES, verbose=0)
    whole = embedder.predict(IMAGES, verbose=0)
    np.testing.assert_allclose(
        rows, prefix_rows(embedder, whole, 2), rtol=1e-4, atol=1e-6
    )
    if normalize or normalization == "l2":
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    elif normalization is None:
        np.testing.assert_allclose(rows, whole[:, :2], rtol=1e-5)


def test_kept_features_have_no_head_to_train_or_cut():
    features = keep_features(build_embedder("small_cnn", SHAPE, dim=5))
    message = "`embedder` must have an `EmbeddingHead`.*Identity"
    with pytest.raises(UsageError, match=message):
        cut_embedder(features, 2)
    with pytest.raises(UsageError, match=message):
        build_trainer(features, 3)
