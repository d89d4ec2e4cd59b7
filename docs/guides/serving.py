# %% [markdown]
# # Serving: image bytes in, labels out
#
# A SavedModel with an index inside answers with the nearest images: it decodes,
# resizes, embeds and searches by itself. The program that loads it needs
# TensorFlow, but neither Keras nor keras-dml.
#
# ## A run and its export
#
# A short run on small digits takes the place of yours,
# `run = keras_dml.Run("runs/NAME")`.

# %%
import keras_dml

run = keras_dml.fit(
    "digits",
    epochs=1,
    settings={"sampling.steps_per_epoch": 30},
    output="runs/digits",
    report=False,
    export=False,
    resume=True,
)

# %% [markdown]
# The gallery is the test images of the run, or `gallery=`, a folder of the
# images to find. The export compares what it wrote with the embedder:
# `index_recall@1` is the R@1 through the index.

# %%
print(run.export("saved_model", with_index=True))

# %% [markdown]
# ## Ask it
#
# As a server would, without keras-dml: the bytes of two files, one of them
# broken. A file that cannot be decoded gets `ok` false, empty labels and the
# lowest score of float32; the other files of the request are not touched.

# %%
import io
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

digit = keras_dml.data.read("digits").images[0]
file = io.BytesIO()
Image.fromarray(digit[:, :, 0]).save(file, "PNG")

folder = Path("runs/digits/export/saved_model")
served = tf.saved_model.load(str(folder))
answer = served.neighbors(
    image_bytes=tf.constant([file.getvalue(), b"no image"]), k=tf.constant(3)
)
print("ok", answer["ok"].numpy())
print("labels", np.char.decode(answer["labels"].numpy().astype("S")))
print("scores", answer["scores"].numpy())

# %% [markdown]
# `serve_image_bytes` returns the embeddings alone. They have length 1, so the
# product of two is their cosine:

# %%
photos = []
for pixels in (digit, np.roll(digit, 1, axis=1)):
    photo = io.BytesIO()
    Image.fromarray(pixels[:, :, 0]).save(photo, "PNG")
    photos.append(photo.getvalue())
first, second = served.serve_image_bytes(tf.constant(photos))["embedding"]
cosine = float(tf.tensordot(first, second, 1))
print("cosine", cosine)

# %% [markdown]
# ## What the manifest says
#
# `manifest.json` has what a client must know: the size of the images, the
# dimension, and the score from which on a neighbor is a match. The score is
# null where the run had no validation images, as here.

# %%
manifest = json.loads((folder / "manifest.json").read_text())
print(manifest["image"])
print(manifest["embedding"])
print(manifest["threshold"])
if manifest["threshold"]:
    print("the same:", cosine >= manifest["threshold"]["score"])

# %% [markdown]
# ## TensorFlow Serving
#
# The folder is a model that TensorFlow Serving takes as it is, with a warm-up
# file. The server must be built on TensorFlow 2.20 or newer. A REST request has
# one instance for each image:

# %%
import base64

instance = {
    "image_bytes": {"b64": base64.b64encode(file.getvalue()).decode("ascii")},
    "k": 3,
}
request = {"signature_name": "neighbors", "instances": [instance]}
print(json.dumps(request)[:90], "...")

# %% [markdown]
# [The example of a server](../../examples/serving/README.md) has the
# configuration, a REST client and a gRPC client;
# [Export](../export.md#tensorflow-serving) says what batching needs.
