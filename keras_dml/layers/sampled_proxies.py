"""Proxies of many classes; each step reads a sample of them."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import own_config
from keras_dml.checks import positive_integer, require
from keras_dml.former import renamed
from keras_dml.layers.checks import check_labeled_rows, label_vector
from keras_dml.layers.proxies import Proxies
from keras_dml.ops.labels import among_classes
from keras_dml.ops.rows import distinct, read_rows
from keras_dml.ops.sampling import sample_classes
from keras_dml.ops.similarities import proxy_similarities


@keras.saving.register_keras_serializable(package="keras_dml")
class SampledProxies(keras.layers.Layer):
    """Computes similarities to the proxies of a sample of the classes.

    A step of `Proxies` costs time and memory in proportion to the number of
    classes. This layer compares with `sample_size` classes: the classes of the
    batch, in ascending order, and random others, drawn with equal probability.
    If the sample holds all classes, loss and gradients equal those of
    `Proxies`.

    The loss must know the column of the class of each row: wrap any loss on
    logits or similarities as `OnSampledClasses(loss)`.

    The layer reads the proxies of the sample only, and on TensorFlow the
    gradient of the table is sparse. The optimizer must keep it sparse:
    `RowLazyAdam` does, Keras' `Adam` does not. Under `tf.distribute` the
    sample holds the classes of all replicas and is the same on each. Outside
    of training the drawn classes are always the same.

    On TensorFlow the layer turns XLA off, because XLA would copy the table.

    Args:
        num_classes: Integer, the number of classes.
        sample_size: Integer, the number of classes in a step. A batch with
            more classes gives NaN.
        metric: See `Proxies`. Defaults to `"cosine"`.
        centers: See `Proxies`. Defaults to `1`.
        unit_proxies: See `Proxies`. Defaults to `True`.
        initializer: See `Proxies`. Defaults to `"normal_eighth"`.
        seed: Integer, the seed of the drawn classes. Defaults to `None`, a
            random seed.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Call arguments:
        inputs: List of the embeddings, a float tensor `(batch, dim)`, and the
            labels, an integer tensor `(batch,)` with values from 0 to
            `num_classes - 1`; others raise, or give NaN on an accelerator and
            under XLA.
        training: Boolean, whether to draw new classes.

    Output shape:
        2D float32 tensor `(batch, sample_size)`; with more than one center, 3D
        `(batch, sample_size, centers)`.

    Raises:
        ValueError: If an argument is out of range, or a label has no class.

    Example:

    ```python
    head = SampledProxies(1_000_000, sample_size=100_000, name="proxies")
    model = keras.Model(
        {"image": image, "label": label}, head([embedding, label])
    )
    model.compile(
        PerVariable(
            keras.optimizers.Adam(1e-3, name="network"),
            {"proxies/.*": RowLazyAdam(1e-2, name="proxies")},
        ),
        loss=OnSampledClasses(ArcFace()),
    )
    ```

    Reference:
        An et al., "Killing Two Birds with One Stone: Efficient and Robust
        Training of Face Recognition CNNs by Partial FC", 2022. The paper draws
        negatives from all classes at once; this layer draws one from each
        neighborhood of classes.
    """

    def __init__(
        self,
        num_classes,
        sample_size,
        metric="cosine",
        centers=1,
        unit_proxies=True,
        initializer="normal_eighth",
        seed=None,
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.similarity = Proxies(
            num_classes,
            metric=metric,
            centers=centers,
            unit_proxies=unit_proxies,
            initializer=initializer,
            dtype=self.dtype_policy,
            name="similarity",
        )
        self.num_classes = num_classes
        self.sample_size = positive_integer("sample_size", sample_size)
        require(
            sample_size <= num_classes,
            "sample_size",
            f"at most `num_classes`, {num_classes}",
            sample_size,
        )
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed, name="draws")
        # Keras saves weights, but not the state of a generator.
        self.draws = self.seed_generator.state
        self.supports_jit = keras.backend.backend() != "tensorflow"

    @property
    def proxies(self):
        """The weight that holds the proxies of all classes."""
        return self.similarity.proxies

    def build(self, input_shape):
        check_labeled_rows(input_shape, self.name)
        self.similarity.build(input_shape[0])

    def call(self, inputs, training=False):
        embeddings, labels = inputs
        labels = label_vector(labels, self.num_classes, self.name)
        known = among_classes(labels, self.num_classes)
        labels = distribute.all_gather(labels)
        _, count = distinct(labels)
        # NaN, because some devices lose an error inside a compiled step.
        known = ops.logical_and(known, count <= self.sample_size)
        embeddings = ops.where(known[:, None], embeddings, float("nan"))
        rows = read_rows(self.proxies, self._sample(labels, training))
        rows = ops.cast(rows, embeddings.dtype)
        return proxy_similarities(
            embeddings,
            rows,
            self.similarity.metric,
            self.similarity.unit_proxies,
        )

    def _sample(self, labels, training):
        uniform = keras.random.uniform(
            (self.sample_size + 1,),
            dtype="float32",
            seed=self.seed_generator if training else 0,
        )
        return sample_classes(
            labels, self.num_classes, self.sample_size, uniform
        )

    def assign_class_means(self, embeddings, labels) -> None:
        """Sets the proxies to class means, see `Proxies`."""
        if not self.built:
            self.build([tuple(embeddings.shape), tuple(labels.shape)])
        self.similarity.assign_class_means(embeddings, labels)

    def compute_output_shape(self, input_shape):
        columns = self.similarity.columns(self.sample_size)
        return (input_shape[0][0], *columns)

    def get_config(self):
        return {**super().get_config(), **own_config(self, self.similarity)}

    @classmethod
    def from_config(cls, config):
        return super().from_config(renamed(config))
