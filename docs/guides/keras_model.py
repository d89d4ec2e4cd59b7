# %% [markdown]
# # Your own Keras model
#
# Layers, losses, samplers and callbacks are plain Keras: they work with stock
# `compile` and `fit`, and in any `keras.Model`.
#
# A `Proxies` layer holds one learned vector per class and returns similarities,
# `ScaledLogits` applies the temperature, and the loss is stateless. The
# embedder is the same network without these layers: it shares its weights with
# the trainer, so that it needs no training of its own.
#
# `ImageEmbedder` and exports give an embedder pixels from 0 to 255. So the
# layer that scales them, such as `Rescaling` or
# `keras_dml.layers.ImagePreprocessing`, belongs in the model, not in the
# dataset.

# %%
import keras
import numpy as np
import tensorflow as tf

import keras_dml
from keras_dml.data.sampling import balanced_batches

images = np.random.default_rng(0).uniform(0, 255, (64, 28, 28, 1))
labels = np.repeat(np.arange(8), 8)

inputs = keras.Input((28, 28, 1))
x = keras.layers.Rescaling(1 / 255)(inputs)
x = keras.layers.Conv2D(32, 3, strides=2, activation="relu")(x)
x = keras_dml.layers.GlobalKMaxPooling2D(k=4)(x)
embedding = keras_dml.layers.EmbeddingHead(16, normalization="l2", name="head")(
    x
)
similarity = keras_dml.layers.Proxies(8, name="proxies")(embedding)
logits = keras_dml.layers.ScaledLogits(16.0, name="logits")(similarity)

trainer = keras.Model(inputs, logits)
embedder = keras.Model(inputs, embedding)
trainer.compile(
    optimizer=keras_dml.optimizers.PerVariable(
        keras.optimizers.Adam(1e-3), {"proxies/.*": keras.optimizers.Adam(1e-2)}
    ),
    loss=keras_dml.losses.NormalizedSoftmax(),
)
EPOCHS = 3
drawn = [
    balanced_batches(labels, classes=4, images=4, seed=0, epoch=epoch)
    for epoch in range(EPOCHS)
]
rows = tf.data.Dataset.from_tensor_slices(np.concatenate(drawn))
trainer.fit(
    rows.map(lambda row: (tf.gather(images, row), tf.gather(labels, row))),
    steps_per_epoch=len(drawn[0]),
    epochs=EPOCHS,
    shuffle=False,
    verbose=0,
    callbacks=[
        keras_dml.callbacks.HeatUp(epoch=2, scale=4.0),
        keras_dml.callbacks.RetrievalEvaluation(
            embedder, tf.data.Dataset.from_tensors((images, labels))
        ),
        keras.callbacks.ModelCheckpoint(
            "best.keras",
            monitor="val_recall@1",
            mode="max",
            save_best_only=True,
        ),
    ],
)
print(
    keras_dml.evaluation.retrieval_metrics(
        embedder.predict(images, verbose=0), labels, k=(1, 2)
    )
)

# %% [markdown]
# - `PerVariable` gives each group of weights its own optimizer, by regular
#   expressions over the paths of the variables. Stock callbacks, such as
#   `keras.callbacks.LearningRateScheduler`, see all of them.
# - `balanced_batches` returns the rows of each batch of an epoch, the same ones
#   for the same seed and epoch, others for each epoch: here four images of each
#   of four classes, as pair losses need them.
# - `HeatUp` raises the temperature at an epoch (Heated-Up Softmax); from then
#   on all rates are a tenth (`learning_rate_factor`).
# - `RetrievalEvaluation` measures R@K and MAP@R on whatever batches it is
#   given, and writes them to the logs, so that the callbacks after it in the
#   list can watch them, with `mode="max"`.
# - `keras.models.load_model("best.keras", compile=False)` needs
#   `import keras_dml.layers`, which registers the layers; with the compiled
#   optimizer and loss also `keras_dml.optimizers` and `keras_dml.losses`. An
#   embedder that was saved loads by `keras_dml.models.load_embedder`.
#
# ## Photos from files
#
# `read` lists a folder with a sub-folder for each class, here of drawn
# characters, and `train_batches` reads, augments and batches the images. Its
# inputs are a dictionary of `"image"` and `"label"`; this model takes the
# image alone.

# %%
from pathlib import Path

from PIL import Image

from keras_dml.data.pipeline import train_batches

FOLDER = Path("model_photos")
if not FOLDER.exists():
    glyphs = keras_dml.data.read("glyphs")
    for number in range(16 * 20):
        place = FOLDER / f"class_{number // 20:02}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = glyphs.images[number, :, :, 0]
        Image.fromarray(pixels).save(place / f"{number % 20:02}.png")

photos = keras_dml.data.read(FOLDER).part("train")  # half of the classes
batches = train_batches(
    photos,
    lambda epoch: balanced_batches(photos.labels, 4, 4, seed=0, epoch=epoch),
    image_size=28,
    channels=1,
)
trainer.fit(
    batches.map(lambda inputs, label: (inputs["image"], label)),
    steps_per_epoch=5,
    epochs=2,
    shuffle=False,
    verbose=0,
)

# %% [markdown]
# ## Losses on pairs
#
# A loss on pairs takes the embeddings themselves, and so do the metrics of
# `keras_dml.metrics`. They compare every row with all others of the epoch, not
# with those of its batch only, up to 10,000 rows (`capacity`):

# %%
pairs = keras.Model(inputs, embedding)
pairs.compile(
    "adam",
    loss=keras_dml.losses.MultiSimilarity(),
    metrics=[keras_dml.metrics.RecallAtK(1), keras_dml.metrics.MAPAtR()],
)
batch = drawn[0][0]
history = pairs.fit(
    images[batch],
    labels[batch],
    validation_data=(images, labels),
    verbose=0,
)
print(history.history["val_map_at_r"])

# %% [markdown]
# ## Export
#
# Export what you trained like any run of the command line:

# %%
from keras_dml.export import export_saved_model

export_saved_model(embedder, "my_embedder")

# %% [markdown]
# [Recipes](../recipes.md) says how the command line puts the same parts
# together, [Distributed](../distributed.md) what changes under `tf.distribute`,
# and [Backbones](../backbones.md#a-network-of-your-own) how a pretrained
# network of yours becomes an embedder. [A loss of your own](custom_loss.ipynb)
# goes to `compile` too.
