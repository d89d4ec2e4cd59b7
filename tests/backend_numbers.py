"""What layers and losses compute, on the backend of this process.

Run as a script it prints the numbers as JSON, for `test_backends.py`.
"""

import functools
import json

import keras
import numpy as np
from keras import ops

from keras_dml import (
    evaluation,
    layers,
    losses,
    metrics,
    miners,
    regularizers,
)
from keras_dml.callbacks import EarlyStopping
from keras_dml.models.head import label_input
from keras_dml.ops.similarities import unit_rows
from keras_dml.optimizers import (
    DecayToZero,
    LearningRate,
    PerVariable,
    RowLazyAdam,
    TorchAdam,
)

CLASSES = 4
# One class has three rows, one a single row.
LABELS = np.array([0, 2, 1, 0, 1, 3, 0, 2], "int32")
RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((4, 3, 3, 5)).astype("float32")
FEATURES = RNG.standard_normal((8, 6)).astype("float32")
COSINES = RNG.uniform(-0.9, 0.9, (8, CLASSES, 3)).astype("float32")
TEACHER = RNG.standard_normal((8, 3)).astype("float32")

# What the losses take, by the name that `losses.input_of` gives it.
PREDICTIONS = {
    "logits": 9.0 * COSINES[:, :, 0],
    "similarities": COSINES[:, :, 0],
    "products_and_lengths": np.stack(
        [2.0 * COSINES[:, :, 0], np.full((8, CLASSES), 2.0, "float32")], axis=2
    ),
    "embeddings": FEATURES,
    "embeddings_and_boundaries": np.concatenate(
        # The last column is the step, which seeds the draw of negatives.
        [FEATURES, np.full((8, 1), 1.2), np.full((8, 1), 3.0)],
        axis=1,
    ).astype("float32"),
    "manifold_similarities": np.abs(COSINES[:, :, :2]),
    "predictions": np.concatenate([FEATURES[::-1], FEATURES], axis=1),
}


def layer_cases() -> dict:
    """Layers with weights that are not those of the start, and inputs."""
    cases = {
        "k_max": (layers.GlobalKMaxPooling2D(3), IMAGES),
        "average_plus_max": (layers.GlobalAveragePlusMaxPooling2D(), IMAGES),
        "generalized_mean": (
            layers.GlobalGeneralizedMeanPooling2D(trainable_p=True),
            IMAGES,
        ),
        "batch_norm": (layers.FrozenStatisticsBatchNormalization(), FEATURES),
        "logits": (layers.ScaledLogits(9.0, use_bias=True), FEATURES),
        "step": (layers.TrainingStep(), FEATURES),
        "boundaries": (layers.ClassBoundaries(CLASSES), [FEATURES, LABELS]),
        "predictor": (layers.Predictor(8), FEATURES),
        "manifold": (layers.ManifoldSimilarities(3), FEATURES),
        "memory": (
            layers.CrossBatchMemory(losses.Contrastive(), 16),
            [FEATURES, LABELS],
        ),
    }
    cases["moments"] = (
        layers.HighOrderMoments(3, 8),
        [FEATURES[:4], IMAGES],
    )
    layer = layers.Distillation(losses.Relational(), prefixes=[2])
    cases["distillation"] = (layer, [FEATURES, FEATURES, TEACHER])
    for mode in layers.token_pooling.MODES:
        layer = layers.TokenPooling(mode, prefix_tokens=2, k=3)
        cases[f"tokens_{mode}"] = (layer, IMAGES.reshape(4, 9, 5))
    for mode in layers.image_preprocessing.MODES:
        layer = layers.ImagePreprocessing(mode)
        cases[f"preprocessing_{mode}"] = (layer, 60.0 * IMAGES[..., :3])
    for normalization in (None, "l2", "batch_norm"):
        layer = layers.EmbeddingHead(5, normalization=normalization)
        cases[f"head_{normalization}"] = (layer, FEATURES)
    for metric in layers.proxies.METRICS:
        layer = layers.Proxies(CLASSES, metric, centers=2)
        cases[f"proxies_{metric}"] = (layer, FEATURES)
    x = keras.Input(FEATURES.shape[1:])
    network = keras.Model(x, keras.layers.Dense(3, "gelu")(x))
    cases["nested"] = (layers.NestedNetwork(network), FEATURES)
    rng = np.random.default_rng(1)
    for layer, inputs in cases.values():
        several = isinstance(inputs, list)
        layer.build([x.shape for x in inputs] if several else inputs.shape)
        for weight in layer.weights:
            if weight.dtype == "float32":
                weight.assign(abs(rng.standard_normal(weight.shape)))
    return cases


def loss_cases() -> dict:
    """Losses, and predictions that they take."""
    cases = {
        name: (losses.get(name), PREDICTIONS[losses.input_of(name)])
        for name in losses.LOSSES
        # The others take the output of `SampleAwareProxies`: see the models.
        if losses.input_of(name) in PREDICTIONS
    }
    for name in ("soft_triple", "sub_center_arcface"):
        cases[f"{name}_of_centres"] = (losses.get(name), COSINES)
    for mining in ("all_semi_hard", "facenet", "hard", "easy"):
        loss = losses.Triplet(mining=mining, margin=0.5, distance="euclidean")
        cases[f"triplet_{mining}"] = (loss, FEATURES)
    for form in ("pairs", "distance"):
        loss = losses.LiftedStructure(form=form)
        cases[f"lifted_structure_{form}"] = (loss, FEATURES)
    cases["contrastive_euclidean"] = (
        losses.Contrastive(form="euclidean", power=2.0),
        FEATURES,
    )
    for similarity in ("l1", "l2.5"):
        loss = losses.Contrastive(similarity=similarity)
        cases[f"contrastive_{similarity}"] = (loss, FEATURES)
    average = {"low": 0.1, "per_anchor": True}
    loss = losses.Triplet(0.5, mining="all", average=average)
    cases["triplet_by_anchor"] = (loss, FEATURES)
    cases["multi_similarity_mined"] = (
        losses.MultiSimilarity(mining_margin=0.1),
        FEATURES,
    )
    cases["margin_of_all"] = (
        losses.Margin(sampling="all"),
        PREDICTIONS["embeddings_and_boundaries"],
    )
    cases["weighted_sum"] = (
        losses.WeightedSum([losses.Contrastive(), losses.NPair()], [1.0, 2.0]),
        FEATURES,
    )
    groups = [0, 0, 1, 1]
    cases["hierarchical_triplet_of_groups"] = (
        losses.HierarchicalTriplet(groups),
        FEATURES,
    )
    cases["on_groups"] = (
        losses.OnGroups(losses.Softmax(), groups),
        PREDICTIONS["logits"],
    )
    cases["on_moments"] = (
        losses.OnMoments(losses.Contrastive(), 2),
        PREDICTIONS["predictions"],
    )
    cases["with_memory"] = (losses.WithMemory(losses.NTXent()), FEATURES)
    for name in miners.MINERS:
        miner = {"name": name}
        if name == "given":
            miner["triplets"] = [[0, 3, 1], [0, 6, 2], [1, 7, 4]]
        loss = losses.Contrastive(form="euclidean", miner=miner)
        cases[f"miner {name}"] = (loss, FEATURES)
        if isinstance(loss.miner, miners.TripletMiner):
            loss = losses.Triplet(margin=0.5, mining="all", miner=miner)
            cases[f"miner {name} of triplets"] = (loss, FEATURES)
    loss = losses.Contrastive(miner="distance_weighted")
    cases["at_step"] = (losses.AtStep(loss), FEATURES)
    loss = losses.Matryoshka(losses.NTXent(), [2, 4], [1.0, 2.0])
    cases["matryoshka"] = (loss, FEATURES)
    loss = losses.WithDistillation(losses.NTXent(), 0.5)
    cases["with_distillation"] = (loss, FEATURES)
    return cases


def distillation_cases() -> dict:
    """Losses on the embeddings of a teacher, by name."""
    return {name: cls() for name, cls in losses.DISTILLATIONS.items()}


def regularizer_cases() -> dict:
    """Regularizers, and weights that they take."""
    proxies = np.random.default_rng(2).standard_normal((CLASSES, 3, 6))
    proxies = proxies.astype("float32")
    return {
        "center_distance": (regularizers.CenterDistance(0.5), proxies),
        "proxy_repulsion": (regularizers.ProxyRepulsion(8.0), proxies[:, 0]),
        "center_invariance": (regularizers.CenterInvariance(), proxies[:, 0]),
        "regular_face": (regularizers.RegularFace(), proxies[:, 0]),
        "zero_mean": (regularizers.ZeroMean(), proxies[:, 0]),
        "lp_norm": (regularizers.LpNorm(p=3.0, power=2.0), proxies[:, 0]),
    }


def measured() -> dict:
    """The metrics of rows that come in three batches."""
    rows = np.random.default_rng(5).standard_normal((20, 6)).astype("float32")
    labels = np.resize(LABELS, 20)
    found = {}
    for metric in (
        metrics.RecallAtK(2, capacity=30),
        metrics.PrecisionAt1(30),
        metrics.RPrecision(9, 30),
        metrics.MAPAtR(9, 30),
    ):
        for part in (slice(0, 8), slice(8, 16), slice(16, 20)):
            metric.update_state(labels[part], rows[part])
        found[f"metric {metric.name}"] = metric.result()
    return found


def sum_of_squares(layer, labels, x):
    """A scalar that depends on every output of a layer."""
    return ops.sum(ops.square(layer([x, *labels] if labels else x)))


def values_and_gradients(cases) -> dict:
    """Scalars and their gradients, by the means of the backend.

    Args:
        cases: For each name a function of an array, and the array.
    """
    inputs = {name: ops.convert_to_tensor(x) for name, (_, x) in cases.items()}
    if keras.backend.backend() == "jax":
        import jax

        functions = {
            name: jax.value_and_grad(function)
            for name, (function, _) in cases.items()
        }
        # Together they compile in a third of the time.
        return jax.jit(
            lambda inputs: {
                name: functions[name](inputs[name]) for name in inputs
            }
        )(inputs)
    found = {}
    for name, (function, _) in cases.items():
        x = inputs[name]
        if keras.backend.backend() == "torch":
            x.requires_grad_()
            value = function(x)
            value.backward()
            found[name] = (value, x.grad)
        else:
            import tensorflow as tf

            with tf.GradientTape() as tape:
                tape.watch(x)
                value = function(x)
            found[name] = (value, tape.gradient(value, x))
    return found


def computed() -> dict[str, list]:
    """Outputs, values and gradients of fixed inputs and weights, by name."""
    found = {"zero rows": unit_rows(0 * FEATURES)}
    cases = {}
    for name, (layer, inputs) in layer_cases().items():
        found[f"layer {name}"] = layer(inputs)
        x, *labels = inputs if isinstance(inputs, list) else [inputs]
        squares = functools.partial(sum_of_squares, layer, labels)
        cases[f"layer {name}"] = (squares, x)
    for name, (loss, y_pred) in loss_cases().items():
        cases[f"loss {name}"] = (functools.partial(loss, LABELS), y_pred)
    for name, loss in distillation_cases().items():
        cases[f"loss {name}"] = (functools.partial(loss, TEACHER), FEATURES)
    for name, (regularizer, weights) in regularizer_cases().items():
        cases[f"regularizer {name}"] = (regularizer, weights)
    for name, (value, gradient) in values_and_gradients(cases).items():
        found[f"value of {name}"] = value
        found[f"gradient of {name}"] = gradient
    found |= measured()
    return {name: as_list(value) for name, value in found.items()}


def as_list(tensor) -> list:
    """The numbers of a tensor, with all digits."""
    return np.asarray(ops.convert_to_numpy(ops.stop_gradient(tensor))).tolist()


def model_cases() -> dict:
    """Compiled models, one for each way in which losses meet layers."""
    x = keras.Input((6,), name="image")
    label = label_input()

    def head():
        return layers.EmbeddingHead(5, name="head")(x)

    def proxies(**arguments):
        return layers.Proxies(CLASSES, name="proxies", **arguments)(head())

    def compiled(output, loss, optimizer=None):
        model = keras.Model({"image": x, "label": label}, output)
        model.compile(optimizer or keras.optimizers.SGD(0.05), loss)
        return model

    several = PerVariable(
        TorchAdam(0.01, epsilon=1.0, l2=0.1),
        {"proxies/.*": keras.optimizers.SGD(0.5)},
    )
    centers = {"centers": 3, "regularizer": regularizers.CenterDistance(0.5)}
    memory = layers.CrossBatchMemory(
        losses.MultiSimilarity(), size=12, warm_up_steps=1, name="memory"
    )
    boundaries = layers.ClassBoundaries(CLASSES, name="boundaries")

    def sample_aware(loss):
        informed = layers.SampleAwareProxies(
            CLASSES,
            scale=8.0,
            memory_size=12,
            volume=5.0,
            memory_epoch=0,
            filter_epoch=0,
            name="proxies",
        )
        return compiled(informed([head(), label]), loss)

    keras.utils.set_random_seed(0)
    network = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(4, name="inner")]
    )
    # Of eight rows: a chunk and a rest.
    chunked = layers.InChunks(network, 5, name="backbone")(x)

    # All of them: which classes are drawn is the backend's own.
    sampled = layers.SampledProxies(CLASSES, CLASSES, seed=1, name="proxies")
    row_lazy = PerVariable(
        keras.optimizers.SGD(0.05), {"proxies/.*": RowLazyAdam(0.01)}
    )

    return {
        "proxynca_pp": compiled(
            layers.ScaledLogits(9.0, name="logits")(proxies()),
            losses.ProxyNCAPlusPlus(),
            several,
        ),
        "soft_triple": compiled(proxies(**centers), losses.SoftTriple()),
        "our_loss_1": compiled(
            proxies(regularizer=regularizers.ProxyRepulsion(8.0)),
            losses.OurLoss1(8.0),
        ),
        "proxy_isa": sample_aware(losses.ProxyISA()),
        "proxynca_isa": sample_aware(losses.ProxyNCAISA()),
        "sampled": compiled(
            sampled([head(), label]),
            losses.OnSampledClasses(losses.ArcFace(scale=8.0)),
            row_lazy,
        ),
        "in_chunks": compiled(
            layers.EmbeddingHead(5, name="head")(chunked), losses.SupCon()
        ),
        "triplet": compiled(head(), losses.Triplet(margin=0.5)),
        "margin": compiled(boundaries([head(), label]), losses.Margin(nu=0.1)),
        "with_memory": compiled(
            memory([head(), label]), losses.WithMemory(losses.Contrastive())
        ),
    }


def covered() -> set:
    """The classes of all layers, losses and regularizers here."""
    found = {type(layer) for layer, _ in layer_cases().values()}
    found |= {type(loss) for loss, _ in loss_cases().values()}
    found |= {type(loss) for loss in distillation_cases().values()}
    found |= {
        type(regularizer) for regularizer, _ in regularizer_cases().values()
    }
    for model in model_cases().values():
        found |= {type(layer) for layer in model.layers} | {type(model.loss)}
    return {cls for cls in found if cls.__module__.startswith("keras_dml")}


def trained() -> dict[str, list]:
    """All weights of each model after three steps, and the loss of each."""
    found = {}
    rows = np.random.default_rng(3).standard_normal((24, 6)).astype("float32")
    labels = np.tile(LABELS, 3)
    for name, model in model_cases().items():
        rng = np.random.default_rng(4)
        for weight in model.trainable_weights:
            if "boundaries" not in weight.path:
                weight.assign(rng.standard_normal(weight.shape))
        history = model.fit(
            {"image": rows, "label": labels},
            labels,
            batch_size=8,
            shuffle=False,
            verbose=0,
        )
        LearningRate(model.optimizer).multiply(0.5)
        found[f"{name}: loss"] = history.history["loss"]
        for weight in model.weights:
            found[f"{name}: {weight.path}"] = as_list(weight.value)
    assert evaluation.retrieval_metrics(rows, labels)
    return found | {"tail": tail()}


def tail() -> list[float]:
    """The steps of a weight whose rate ends early, by gradients of 1."""
    inputs = keras.Input((1,))
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Model(inputs, layer(inputs))
    sgd = keras.optimizers.SGD(DecayToZero(0.1, steps=4))
    model.compile(sgd, lambda _, y_pred: y_pred)
    stop = EarlyStopping("loss", 1, "max", tail=2, steps_per_epoch=2)
    ones, weights = np.ones((4, 1), "float32"), []
    after = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: weights.append(as_list(layer.kernel.value))
    )
    model.fit(
        ones,
        ones,
        2,
        epochs=9,
        shuffle=False,
        verbose=0,
        callbacks=[stop, after],
    )
    return weights


if __name__ == "__main__":
    print(json.dumps({"computed": computed(), "trained": trained()}))
