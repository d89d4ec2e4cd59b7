"""Builds the trainer: an embedder with the head that its loss needs."""

import keras

from keras_dml.errors import UsageError
from keras_dml.models.derived import embedding_head, with_image_size
from keras_dml.models.head import Head, label_input
from keras_dml.models.head_options import HeadOptions
from keras_dml.models.heads import get_head
from keras_dml.models.precision import dtype_policy
from keras_dml.models.prefixes import connect_head


def build_trainer(
    embedder: keras.Model,
    num_classes: int,
    head: str | Head = "logits",
    options: HeadOptions | None = None,
    policy: str = "float32",
    image_size: int | None = None,
    embed_batch: int | None = None,
    on_features: bool = False,
) -> keras.Model:
    """Builds the model that `fit` trains around an embedder.

    It shares the layers of the embedder up to "head", so that training it
    trains the embedder. It leaves "unit" out, because proxies and most losses
    normalize the embeddings. Batch normalization that does not change is
    folded into convolutions, which makes training faster.

    Args:
        embedder: Result of `build_embedder`.
        num_classes: Number of classes in training.
        head: The value of `takes` of the loss, a key of
            `keras_dml.models.HEADS`; or a `Head`. Defaults to `"logits"`.
        options: Settings of the layers of the head. Defaults to `None`, which
            means `HeadOptions()`.
        policy: Dtype policy of the backbone; Keras scales the loss of a
            trainer under `"mixed_float16"`. Defaults to `"float32"`.
        image_size: Side of the training images, if it differs from that of
            the embedder, which then needs `any_size=True`. Defaults to
            `None`.
        embed_batch: Number of images that the backbone takes at once, see
            `keras_dml.layers.InChunks`. Defaults to `None`, all of a batch.
        on_features: Whether the trainer takes pooled features instead of
            images, to train the head alone. Defaults to `False`.

    Input shape:
        Dict of "image", as the embedder takes it or its pooled features, and
        "label", int32 `(batch,)`; with `options.distillation` also "teacher",
        float32 `(batch, options.teacher_dim)`.

    Output shape:
        Float32, see the classes of `keras_dml.models.heads`; with
        `options.prefixes` what `keras_dml.losses.Matryoshka` takes.

    Raises:
        UsageError: If `head` is unknown or cannot use one of the `options`, or
            `embedder` has no `EmbeddingHead`.

    Example:

    ```python
    embedder = build_embedder("small_cnn", (28, 28, 1), dim=64)
    trainer = build_trainer(embedder, num_classes=10)
    trainer.compile("adam", keras_dml.losses.NormalizedSoftmax())
    trainer.fit({"image": images, "label": labels}, labels)
    ```
    """
    if not isinstance(head, Head):
        head = get_head(head)
    options = options or HeadOptions()
    head.check(options, policy)
    projection = embedding_head(embedder)
    size = image_size or embedder.input_shape[1]
    if on_features:
        features = embedder.get_layer("pooling").output
        image = keras.Input(features.shape[1:], name="image")
        embedding = projection(image)
        if options.moments is not None:
            raise UsageError(
                "`moments` needs the features of a network before pooling, "
                "and this one does not train, so that only pooled features "
                "are kept. Received: moments and a frozen network. Train the "
                "network, or leave `moments` out."
            )
    else:
        network = with_image_size(
            embedder, size, fold=True, chunk_size=embed_batch, with_maps=True
        )
        image, (embedding, maps) = network.inputs[0], network.outputs
        if options.moments is not None:
            embedding = options.moments([embedding, maps])
    label = label_input()
    output = connect_head(
        head,
        embedding,
        label,
        num_classes,
        options,
        projection.prefix,
    )
    inputs = {"image": image, "label": label}
    if options.distillation is not None:
        teacher = keras.Input((options.teacher_dim,), name="teacher")
        output = options.distillation([output, embedding, teacher])
        inputs["teacher"] = teacher
    with dtype_policy(policy):
        return keras.Model(inputs, output, name="trainer")
