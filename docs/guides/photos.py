# %% [markdown]
# # Your own photos, from Python
#
# From a folder with one sub-folder for each class to an embedder, a search and
# the files of a service or a phone. [Your own photos](../first_run.md) does the
# same in a shell.
#
# ## The photos
#
# Put the path of your folder into `FOLDER`. Each sub-folder is a class: one
# product, one person, one animal.

# %%
from pathlib import Path

FOLDER = Path("photos")  # your path

# %% [markdown]
# If the folder does not exist, this cell fills it with 24 drawn characters, 20
# images of each, so that the guide runs as it is. Leave the cell out if you
# have photos.

# %%
from PIL import Image

import keras_dml

if not FOLDER.exists():
    glyphs = keras_dml.data.read("glyphs")
    for number in range(24 * 20):
        name = glyphs.class_names[glyphs.labels[number]].rpartition(" ")[2]
        place = FOLDER / f"letter_{name.lower()}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = glyphs.images[number, :, :, 0]
        Image.fromarray(pixels).save(place / f"{number % 20:02}.png")

classes = sorted(path.name for path in FOLDER.iterdir())
print(len(classes), "classes:", ", ".join(classes[:4]), "...")

# %% [markdown]
# ## Train
#
# Half of the classes train, in the order of their names, and the other half
# tests. Some of the training classes validate: they set the threshold of a
# match below.
#
# The settings here suit small drawings and a quick look: a small network from
# random weights, one short epoch, validation from six training classes on. For
# photos take the last line instead: MobileNetV2 with ImageNet's weights, for
# ten minutes.

# %%
run = keras_dml.fit(
    FOLDER,
    backbone="small_cnn",
    epochs=1,
    batch_size=64,
    settings={"sampling.steps_per_epoch": 25, "data.validation_from": 6},
    output="runs/photos",
    export=False,
    resume=True,
)
# run = keras_dml.fit(FOLDER, backbone="mobilenet_v2", output="runs/mobilenet")

# %% [markdown]
# ## What the result says
#
# `run` prints a table of the test classes. "Gain" is the embedder minus what
# there was before training: the plain pixels if the network starts from random
# weights, else the features of the pretrained network. If the 95 % interval of
# the gain contains 0, the test classes do not show that training helped.
# `conclusion` says it in sentences;
# [Training](../training.md#what-the-result-says) explains them.

# %%
print(run)
for sentence in run.conclusion():
    print(sentence)
print("The page of the run:", run.folder.report)

# %% [markdown]
# ## Search
#
# The gallery is the test images unless you name another folder. The query is
# one of them here, and a file does not find itself. `match` says whether the
# nearest image is near enough; [Search and thresholds](search.ipynb) says what
# that means.

# %%
query = sorted((FOLDER / classes[-1]).iterdir())[0]
result = run.search(query, k=5)
print(query)
for neighbor in result.answers[0].neighbors:
    print(f"{neighbor.distance:.4f}", neighbor.label, neighbor.id)
print("match:", result.answers[0].match)

# %% [markdown]
# ## Export
#
# A SavedModel takes the bytes of image files, a `.tflite` file pixels. Each is
# compared with the embedder on test images: a cosine of 1 means the same
# embedding. Without `export=False` above, `fit` does this at its end.

# %%
print(run.export("saved_model", "litert"))
print(sorted(path.name for path in run.folder.export.iterdir()))

# %% [markdown]
# Next: [serve the SavedModel](serving.ipynb), [put it on a phone](phone.ipynb),
# or [embed a large folder](many_images.ipynb).
