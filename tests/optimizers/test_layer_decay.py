import itertools
import re

import keras
import numpy as np
import pytest

from keras_dml import layers
from keras_dml.optimizers import (
    PerVariable,
    group_table,
    layer_blocks,
    layer_decay,
    layer_decay_rules,
)
from tests.conformance import to_numpy

X = np.random.default_rng(0).standard_normal((8, 8, 8, 3)).astype("float32")
OTHERS = ("head/", "proxies/", "logits/")


class Block(keras.layers.Layer):
    """A transformer layer in small."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = keras.layers.LayerNormalization()
        self.mixer = keras.layers.Dense(4)
        self.inner = keras.Sequential([keras.layers.Dense(4)])

    def build(self, shape):
        for layer in (self.norm, self.mixer, self.inner):
            layer.build(shape)

    def call(self, x):
        return x + self.inner(self.mixer(self.norm(x)))


class Encoder(keras.layers.Layer):
    """Its position embeddings come first, its last norm last."""

    def __init__(self, depth, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [Block(name=f"block_{i}") for i in range(depth)]
        self.norm = keras.layers.LayerNormalization(name="last")

    def build(self, shape):
        self.position = self.add_weight(shape=(1, *shape[1:]), name="position")
        for layer in (*self.blocks, self.norm):
            layer.build(shape)

    def call(self, x):
        x = x + self.position
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def transformer(depth=11):
    """More than ten blocks: `block_1` starts as `block_10` does."""
    x = keras.Input((8, 8, 3))
    y = keras.layers.Conv2D(4, 4, strides=4, name="patches")(x)
    y = keras.layers.Reshape((4, 4))(y)
    return keras.Model(x, Encoder(depth, name="encoder")(y))


def residual():
    """A stem, a plain unit, one with a projection, one with two branches."""
    x = keras.Input((8, 8, 3))

    def conv(y, name, width=4):
        y = keras.layers.Conv2D(width, 3, padding="same", name=name)(y)
        return keras.layers.BatchNormalization(name=f"{name}_bn")(y)

    y = keras.layers.ReLU()(conv(x, "stem"))
    y = keras.layers.Add()([y, conv(conv(y, "one_a"), "one_b")])
    y = keras.layers.ReLU()(y)
    y = keras.layers.Add()([conv(y, "two_skip"), conv(y, "two_a")])
    y = keras.layers.Concatenate()([conv(y, "three_a"), conv(y, "three_b")])
    return keras.Model(x, y)


def names(blocks):
    return [{v.path.partition("/")[0] for v in block} for block in blocks]


def test_blocks_of_residual_units_and_branches():
    assert names(layer_blocks(residual())) == [
        {"stem", "stem_bn"},
        {"one_a", "one_a_bn", "one_b", "one_b_bn"},
        {"two_skip", "two_skip_bn", "two_a", "two_a_bn"},
        {"three_a", "three_a_bn", "three_b", "three_b_bn"},
    ]


def test_blocks_of_a_transformer():
    blocks = layer_blocks(transformer(3))
    paths = [[variable.path for variable in block] for block in blocks]
    assert all(path.startswith("patches/") for path in paths[0])
    assert paths[1] == ["encoder/position"]
    for number in range(3):
        start = f"encoder/block_{number}/"
        inside = [path for path in paths[2 + number] if path.startswith(start)]
        assert len(inside) == 6
    # The last normalization has no matrix.
    assert paths[-1][-2:] == ["encoder/last/gamma", "encoder/last/beta"]
    assert len(paths) == 5


@pytest.mark.parametrize("make", [residual, transformer])
def test_every_variable_is_in_one_block(make):
    network = make()
    found = [id(v) for block in layer_blocks(network) for v in block]
    assert sorted(found) == sorted(id(v) for v in network.weights)


def test_wrappers_are_opened():
    network = residual()
    x = keras.Input((8, 8, 3))
    nested = keras.Model(x, keras.layers.ReLU()(network(x)))
    inside = names(layer_blocks(network))
    assert names(layer_blocks(nested)) == inside
    assert names(layer_blocks(layers.NestedNetwork(network))) == inside
    assert names(layer_blocks(keras.Sequential([network]))) == inside


@pytest.mark.parametrize(
    "name, blocks",
    [
        # Stem and 16 units.
        ("ResNet50", 17),
        # Stem, 18 units and 3 reductions.
        ("ConvNeXtTiny", 22),
    ],
)
def test_published_networks(name, blocks):
    network = getattr(keras.applications, name)(
        include_top=False, weights=None, input_shape=(32, 32, 3)
    )
    assert len(layer_blocks(network)) == blocks


def test_factors_fall_toward_the_input():
    factors = layer_decay(residual(), 0.5)
    assert factors["stem/kernel"] == factors["stem_bn/gamma"] == 0.125
    assert factors["one_b/bias"] == 0.25
    assert factors["two_skip/kernel"] == 0.5
    assert factors["three_b_bn/beta"] == 1.0


@pytest.mark.parametrize("make", [residual, transformer])
def test_rules_match_their_block_and_nothing_else(make):
    network = make()
    factors = layer_decay(network, 0.9)
    rules = layer_decay_rules(network, 0.9, OTHERS)
    for variable in network.trainable_variables:
        matching = [
            factor
            for rule, (_, factor) in rules.items()
            if re.fullmatch(rule, variable.path)
        ]
        expected = factors[variable.path]
        assert matching == ([] if expected == 1.0 else [expected])
    for other, rule in itertools.product(OTHERS, rules):
        assert not re.fullmatch(rule, f"{other}kernel")


def test_rules_of_transformers_are_short():
    rules = list(layer_decay_rules(transformer(), 0.9, OTHERS))
    assert rules[0] == "patches/.*"
    assert rules[1] == "encoder/position"
    assert rules[3] == "encoder/block_1/.*"


def test_starts_that_others_share_are_not_used():
    """One common start of "proj" and "pos" would match "proxies/" too."""
    x = keras.Input((3,))
    y = keras.layers.Add()(
        [
            keras.layers.Dense(3, name="proj")(x),
            keras.layers.Dense(3, name="pos")(x),
        ]
    )
    network = keras.Model(x, keras.layers.Dense(2, name="last")(y))
    (rule,) = layer_decay_rules(network, 0.5, OTHERS)
    assert rule == "pos/.*|proj/.*"


def optimizer(network, decay, make=keras.optimizers.SGD, rate=0.1, **arguments):
    rules = {
        rule: make(rate * factor, name=f"block_{block}", **arguments)
        for rule, (block, factor) in layer_decay_rules(
            network, decay, OTHERS
        ).items()
    }
    return PerVariable(make(rate, name="backbone", **arguments), rules)


def train(network, chosen):
    keras.utils.set_random_seed(0)
    for weight in network.trainable_weights:
        weight.assign(0.3 * np.random.standard_normal(weight.shape))
    network.compile(chosen, "mse", run_eagerly=True)
    before = {v.path: to_numpy(v) for v in network.trainable_variables}
    shape = (len(X), *network.output_shape[1:])
    network.train_on_batch(X, np.ones(shape))
    return {
        v.path: to_numpy(v) - before[v.path]
        for v in network.trainable_variables
    }


@pytest.mark.parametrize(
    "make", [residual, lambda: transformer(2)], ids=["maps", "tokens"]
)
def test_steps_of_sgd_are_in_the_ratio_of_the_factors(make):
    network = make()
    plain = train(network, keras.optimizers.SGD(0.1))
    decayed = train(network, optimizer(network, 0.5))
    factors = layer_decay(network, 0.5)
    assert len({factors[path] for path in plain}) > 3
    for path, step in plain.items():
        np.testing.assert_allclose(
            decayed[path], factors[path] * step, rtol=1e-3, atol=1e-6
        )


def test_decoupled_weight_decay_follows_the_rate():
    """Without a gradient AdamW moves by rate * factor * decay alone."""
    network = residual()
    chosen = optimizer(
        network, 0.5, keras.optimizers.AdamW, rate=0.1, weight_decay=0.5
    )
    variables = network.trainable_variables
    for variable in variables:
        variable.assign(np.ones(variable.shape))
    zeros = [keras.ops.zeros(variable.shape) for variable in variables]
    chosen.apply(zeros, variables)
    factors = layer_decay(network, 0.5)
    for variable in variables:
        np.testing.assert_allclose(
            to_numpy(variable), 1 - 0.05 * factors[variable.path], rtol=1e-5
        )


def test_no_decay_is_plain_training():
    """No rule is left: the optimizer of all variables is the plain one."""
    network = residual()
    assert layer_decay_rules(network, 1.0, OTHERS) == {}
    assert set(layer_decay(network, 1.0).values()) == {1.0}
    chosen = optimizer(network, 1.0, keras.optimizers.Adam, rate=0.01)
    plain = keras.optimizers.Adam(0.01)
    steps = []
    for one in (plain, chosen):
        variables = [keras.Variable(np.ones(2), name=name) for name in "ab"]
        for gradient in ([1.0, -2.0], [0.5, 3.0]):
            one.apply([keras.ops.convert_to_tensor(gradient)] * 2, variables)
        steps.append([to_numpy(variable) for variable in variables])
    np.testing.assert_array_equal(*steps)


def test_frozen_variables_have_no_rule():
    network = residual()
    network.get_layer("stem").trainable = False
    network.get_layer("stem_bn").trainable = False
    rules = layer_decay_rules(network, 0.5, OTHERS)
    # The numbers and factors are those of the whole network.
    assert list(rules.values()) == [(1, 0.25), (2, 0.5)]
    optimizer(network, 0.5).build(network.trainable_variables)
    network.trainable = False
    assert layer_decay_rules(network, 0.5, OTHERS) == {}


def test_the_table_shows_every_block():
    network = residual()
    rows = group_table(optimizer(network, 0.5), network.trainable_variables)
    assert [(row.group, row.learning_rate) for row in rows] == [
        ("block_0", pytest.approx(0.0125)),
        ("block_1", pytest.approx(0.025)),
        ("block_2", pytest.approx(0.05)),
        ("backbone", pytest.approx(0.1)),
    ]


@pytest.mark.parametrize("decay", [0.0, -1, 1.1])
def test_refuses_a_decay_out_of_range(decay):
    with pytest.raises(ValueError, match=rf"\(0, 1\]. Received: decay={decay}"):
        layer_decay(residual(), decay)


def test_refuses_paths_that_are_not_unique():
    x = keras.Input((3,))
    first = keras.Model(x, keras.layers.Dense(3, name="same")(x))
    second = keras.Model(x, keras.layers.Dense(3, name="same")(x))
    network = keras.Model(x, second(first(x)))
    with pytest.raises(ValueError, match="different blocks are 'same/kernel'"):
        layer_decay(network, 0.5)
