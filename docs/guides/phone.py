# %% [markdown]
# # On a phone: LiteRT
#
# A `.tflite` file takes uint8 pixels and returns an embedding. This guide
# writes one in float32 and one in int8, compares both with the embedder, and
# searches references as a device does.
#
# ## A run and its exports
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
# The int8 file is calibrated on training images of the run. The table has the
# size of each file, the cosines of its embeddings to those of the embedder, and
# the retrieval. `max_drop` refuses a file whose R@1 or MAP@R falls by more.

# %%
exported = run.export(
    "litert", quantize=("none", "int8"), references=True, max_drop=0.05
)
for row in exported:
    print(
        f"{row['artifact']:12} {row['megabytes']:.2f} MB, "
        f"worst cosine {row['worst_cosine']:.4f}, MAP@R {row['map@r']:.4f}"
    )

# %% [markdown]
# ## Embed as a device does
#
# `embed` needs numpy and LiteRT alone, `pip install ai-edge-litert`. Its images
# have the size that the embedder takes; the device decodes, resizes and crops
# as `manifest.json` says.
#
# Embeddings have length 1 but for the rounding of an int8 file, so `unit`
# divides by the length before cosines are compared here. On a device that
# matters only close to the threshold.

# %%
import json
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

digits = keras_dml.data.read("digits")
images, labels = digits.images[:20], digits.labels[:20]


def embed(folder, images):
    """Embeds uint8 images one by one."""
    interpreter = Interpreter(str(folder / "embedder.tflite"))
    serve = interpreter.get_signature_runner("serve")
    return np.concatenate(
        [serve(image=one[None])["embedding"] for one in images]
    )


def unit(rows):
    """Divides rows by their length."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


expected = unit(run.embedder.predict(images.astype("float32"), verbose=0))
for name in ("litert", "litert-int8"):
    folder = Path("runs/digits/export", name)
    cosines = np.sum(unit(embed(folder, images)) * expected, axis=1)
    print(name, "cosine to the embedder, the worst:", cosines.min())

# %% [markdown]
# ## Search on the device
#
# `references=True` wrote the test images of the run beside each model, as int8
# rows that the file itself made. A product with them gives the cosines.

# %%
notes = json.loads((folder / "references.json").read_text())
rows = np.fromfile(folder / "references.bin", dtype="int8")
rows = rows.reshape(notes["rows"], notes["dim"])

vectors = unit(embed(folder, images))
scores = notes["scale"] * (vectors @ rows.T.astype("float32"))
nearest = [notes["labels"][row] for row in scores.argmax(axis=1)]
print("nearest", nearest)
print("digits ", labels.tolist())

# %% [markdown]
# [The example of a phone](../../examples/litert/README.md) has a client in
# Kotlin and one in Python; [Export](../export.md#litert) lists the other
# quantizations.
