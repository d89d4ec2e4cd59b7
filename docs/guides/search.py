# %% [markdown]
# # Search and thresholds
#
# The nearest images of a photo, whether any of them is near enough to be a
# match, and which images of a folder are near-duplicates.
#
# ## An embedder
#
# `search_photos` stands for your folder, with a sub-folder for each class. If
# it does not exist, it is filled with drawn characters. If you have a finished
# run, open it by `run = keras_dml.Run("runs/NAME")` instead.

# %%
from pathlib import Path

import numpy as np
from PIL import Image

import keras_dml

FOLDER = Path("search_photos")
if not FOLDER.exists():
    glyphs = keras_dml.data.read("glyphs")
    for number in range(32 * 20):
        place = FOLDER / f"class_{number // 20:02}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = glyphs.images[number, :, :, 0]
        Image.fromarray(pixels).save(place / f"{number % 20:02}.png")

validation = {"data.validation_from": 6, "data.validation_fraction": 0.5}
run = keras_dml.fit(
    FOLDER,
    backbone="small_cnn",
    epochs=1,
    batch_size=64,
    settings={"sampling.steps_per_epoch": 20, **validation},
    output="runs/search",
    report=False,
    export=False,
    resume=True,
)

# %% [markdown]
# ## The nearest images
#
# The gallery is the run's test images, or all images of the source that
# `gallery` names. The distance is one minus the cosine. A file of the gallery
# does not find itself.

# %%
classes = sorted(path.name for path in FOLDER.iterdir())
query = FOLDER / classes[-1] / "00.png"
found = run.search(query, k=3)
for neighbor in found.answers[0].neighbors:
    print(f"{neighbor.distance:.4f}", neighbor.id, neighbor.accepted)

# %% [markdown]
# ## Match or no match
#
# A photo of something new has a nearest image, too. So there is a threshold:
# the largest distance of a match. It is set on the validation classes, which
# did not train, for a rate of false matches that you choose; a smaller rate
# loses more true ones. [Search](../search.md#is-any-of-them-near-enough) tells
# what the rate counts for each `decision`.

# %%
print(found.threshold.meaning)
for decision in ("pairs", "nearest"):
    strict = run.search(query, max_false_match_rate=0.2, decision=decision)
    rates = strict.threshold.threshold
    print(
        f"{decision}: distance up to {strict.threshold.distance:.4f}, "
        f"false matches {rates.fmr:.3f}, true ones lost {rates.fnmr:.3f}"
    )

# %% [markdown]
# A rate for which the validation images are too few is an error. Where you
# name no rate, the strictest usual one is taken for which they suffice.

# %%
from keras_dml.errors import UsageError

try:
    run.search(query, max_false_match_rate=0.0001)
except UsageError as error:
    print(error)

# %% [markdown]
# ## Near-duplicates
#
# `ImageEmbedder` maps any files to embeddings, `ExactIndex` finds the nearest
# ones of each. The most similar pairs come first: look at some of them to see
# at which cosine copies end. A copy that was cropped or made smaller lies
# further down than one that was compressed. Here two copies of an image lie
# beside the images of a class, one of them as a JPEG.

# %%
inbox = Path("inbox")
inbox.mkdir(exist_ok=True)
for path in sorted((FOLDER / classes[-1]).iterdir()):
    Image.open(path).save(inbox / path.name)
original = Image.open(inbox / "00.png")
original.save(inbox / "again.png")
original.save(inbox / "compressed.jpg", quality=90)

# %%
from keras_dml.evaluation import ExactIndex

SHOWN = 10
files = sorted(path for path in inbox.rglob("*") if path.is_file())
names = np.array([str(path.relative_to(inbox)) for path in files])
embed = keras_dml.ImageEmbedder(run.folder.path)
vectors = embed(files)

index = ExactIndex().build(vectors, names)
ids, scores = index.search(vectors, k=5, exclude_ids=names)
pairs = [
    (float(score), name, other)
    for name, row, others in zip(names, scores, ids, strict=True)
    for score, other in zip(row, others, strict=True)
    if name < other
]
for score, name, other in sorted(pairs, reverse=True)[:SHOWN]:
    print(f"{score:.4f}", name, other)

# %% [markdown]
# Without a run or labels a network of ImageNet will do. This saves one as a
# file that `ImageEmbedder` opens like the embedder of a run. Keras downloads
# the weights, or takes those of a file, `weights="FILE.weights.h5"`:
#
#     import keras
#
#     shape = (224, 224, 3)
#     network = keras.applications.MobileNetV2(
#         input_shape=shape, include_top=False, pooling="avg"
#     )
#     pixels = keras.Input(shape)
#     scaled = keras.layers.Rescaling(1 / 127.5, offset=-1)(pixels)
#     rows = keras.layers.UnitNormalization()(network(scaled))
#     keras.Model(pixels, rows).save("imagenet.keras")
#     embed = keras_dml.ImageEmbedder("imagenet.keras")
#
# An embedder that was trained to find classes calls two images of one class
# similar; so the nearest pairs are copies only where the classes are narrow,
# such as one product each. [Search](../search.md) explains the options, and
# how far a threshold holds.
