# %% [markdown]
# # JAX and PyTorch
#
# Everything is written with `keras.ops`, so it runs on any backend of Keras 3:
# your own model with these losses and layers, and `keras-dml fit` too.
#
#     KERAS_BACKEND=jax keras-dml fit photos --backbone mobilenet_v2
#
# TensorFlow is still installed beside it: it reads and augments the images, on
# the processor, and writes the exports. The model, the loss, the optimizer and
# the training step are the backend's. Install it first, `pip install jax` or
# `pip install torch`; on a GPU as their own pages say.
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
# program, `one_backend.py`: a loss of fixed embeddings, and a run.

# %% one_backend.py
import keras
import numpy as np

import keras_dml

rng = np.random.default_rng(0)
rows = rng.normal(size=(12, 4)).astype("float32")
labels = np.arange(12, dtype="int32") % 3
loss = keras_dml.losses.MultiSimilarity()
print("loss", round(float(loss(labels, rows)), 5))

run = keras_dml.fit(
    "digits",
    epochs=1,
    settings={"sampling.steps_per_epoch": 30},
    output=f"runs/digits-{keras.backend.backend()}",
    export=False,
    report=False,
)
for name in ("pretrained", "after"):
    print(name, round(run.metrics[name]["map@r"], 2))

# %%
import importlib.util
import os
import subprocess
import sys


def run_on(backend, program, **variables):
    """Prints and returns what a program prints on a backend."""
    if importlib.util.find_spec(backend) is None:
        print(backend, "is not installed and left out.")
        return None
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "KERAS_BACKEND": backend, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print(backend, *done.stdout.splitlines(), sep="\n  ")
    return done.stdout


backends = ("tensorflow", "jax", "torch")
answers = [run_on(backend, "one_backend.py") for backend in backends]

# %%
losses = [float(answer.split()[1]) for answer in answers if answer]
gained = [float(answer.split()[-1]) for answer in answers if answer]
assert max(losses) - min(losses) < 1e-4
assert max(gained) - min(gained) < 0.2

# %% [markdown]
# From a pretrained network the same seed starts with the same weights on every
# backend and sees the same batches, so that the losses of the epochs agree in
# four digits. Random weights are drawn by the backend: a run that starts with
# them ends like one with another seed.
#
# `evaluate`, `embed` and `search` take a run on any backend, whichever trained
# it. `metrics.json` says which one did.
#
# ## Several devices of JAX
#
# Under `keras.distribution` a batch that is cut over the devices remains one
# batch: every loss gives what it gives on one device, those that compare the
# rows of a batch as well. Proxies of very many classes can be shared out too,
# so that no device holds them all. Here on two virtual devices:

# %% sharded.py
import keras
import numpy as np

import keras_dml

devices = keras.distribution.DeviceMesh((1, 2), ("batch", "model"))
layout = keras.distribution.LayoutMap(devices)
layout["proxies/proxies"] = ("model", None)  # halves of the classes
keras.distribution.set_distribution(
    keras.distribution.ModelParallel(layout_map=layout)
)

inputs = keras.Input((16,))
embedding = keras_dml.layers.EmbeddingHead(8)(inputs)
proxies = keras_dml.layers.Proxies(1000, name="proxies")
model = keras.Model(inputs, proxies(embedding))
model.compile("adam", loss=keras_dml.losses.ProxyAnchor())
rows = np.random.default_rng(0).normal(size=(64, 16)).astype("float32")
labels = np.arange(64, dtype="int32")
model.fit(rows, labels, batch_size=32, verbose=0)
for shard in proxies.proxies.value.addressable_shards:
    print(shard.device, "holds proxies", shard.data.shape)

# %%
flags = "--xla_force_host_platform_device_count=2"
held = run_on("jax", "sharded.py", XLA_FLAGS=flags)
assert held is None or held.count("(500, 8)") == 2

# %% [markdown]
# `keras.distribution.set_distribution(keras.distribution.DataParallel())`
# before the model is built cuts the batches alone.
#
# ## What works where
#
# | part | JAX, PyTorch | without TensorFlow |
# |---|---|---|
# | `ops`, `initializers`, `regularizers`, `optimizers` | yes | yes |
# | `layers`, `miners`, `losses`, `metrics`, `callbacks` | yes | yes |
# | `evaluation`, `embeddings`, `data.sampling` | yes | yes |
# | `fit`, `evaluate`, `embed`, `search`, the page of a run | yes | no |
# | export of a run | by a process of TensorFlow, started for it | no |
# | `fit` on several devices (`--strategy`, `--devices`) | no | no |
# | several devices in your own model | JAX, by `keras.distribution` | JAX |
#
# JAX and TensorFlow compile the training step, PyTorch runs it operation by
# operation, and a loss waits for Python between them: on one NVIDIA H200 the
# forward and backward pass of `MultiSimilarity` on 512 embeddings took 0.13 ms
# under JAX and 3.4 ms under PyTorch
# ([all losses](../lab/performance.md#on-a-gpu)).
#
# [Your own Keras model](keras_model.ipynb) shows the parts together. Its
# batches come as a `tf.data.Dataset`; without TensorFlow take arrays or a
# `keras.utils.PyDataset`.
