# %% [markdown]
# # JAX and PyTorch
#
# Losses, layers and optimizers are written with `keras.ops`, so they run on any
# backend of Keras 3. `fit`, reading images and exporting need TensorFlow.
#
# A process has one backend. Keras reads it when it is first imported. In a
# notebook begin with this, and restart the kernel if Keras was imported before:
#
#     import os
#     os.environ["KERAS_BACKEND"] = "jax"  # or "torch"
#
# ## The same numbers
#
# This guide starts a process for each backend that is installed, with the same
# program, `one_backend.py`: a loss of fixed embeddings, and a model that trains
# with proxies.

# %% one_backend.py
import keras
import numpy as np

import keras_dml

rng = np.random.default_rng(0)
rows = rng.normal(size=(12, 4)).astype("float32")
labels = np.arange(12, dtype="int32") % 3
loss = keras_dml.losses.MultiSimilarity()
print("loss", round(float(loss(labels, rows)), 5))

inputs = keras.Input((4,))
embedding = keras_dml.layers.EmbeddingHead(8)(inputs)
similarity = keras_dml.layers.Proxies(3)(embedding)
model = keras.Model(inputs, similarity)
model.compile("adam", loss=keras_dml.losses.ProxyAnchor())
history = model.fit(rows, labels, batch_size=12, epochs=5, verbose=0)
first, *_, last = history.history["loss"]
print("training lowers the loss:", last < first)

# %%
import importlib.util
import os
import subprocess
import sys

answers = {}
for backend in ("tensorflow", "jax", "torch"):
    if importlib.util.find_spec(backend) is None:
        print(backend, "is not installed and left out.")
        continue
    done = subprocess.run(
        [sys.executable, "one_backend.py"],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        check=True,
    )
    answers[backend] = done.stdout
    print(backend, *done.stdout.splitlines(), sep="\n  ")

# %%
losses = [float(answer.split()[1]) for answer in answers.values()]
assert max(losses) - min(losses) < 1e-4
print("Equal on", ", ".join(answers))

# %% [markdown]
# ## What works where
#
# | part | without TensorFlow |
# |---|---|
# | `losses`, `layers`, `optimizers`, `regularizers`, `callbacks` | yes |
# | `evaluation`, `embeddings`, `data.sampling` | yes, they need no backend |
# | several devices | the losses see the rows of one device |
# | `fit`, `search`, `embed`, `export` | no |
#
# [Your own Keras model](keras_model.ipynb) shows the parts together. Its
# batches come as a `tf.data.Dataset`; without TensorFlow take arrays or a
# `keras.utils.PyDataset`.
