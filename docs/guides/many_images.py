# %% [markdown]
# # Many images
#
# `embed` writes the vectors of a folder of any size into shards. It can be
# interrupted, and lists the images that cannot be read.
#
# ## A run and a folder
#
# A short run on small digits takes the place of yours,
# `run = keras_dml.Run("runs/NAME")`, and `many_photos` that of your folder,
# with one file in it that is no image.

# %%
from pathlib import Path

from PIL import Image

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
FOLDER = Path("many_photos")
if not FOLDER.exists():
    digits = keras_dml.data.read("digits")
    for number in range(250):
        place = FOLDER / f"digit_{digits.labels[number]}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = digits.images[number, :, :, 0]
        Image.fromarray(pixels).save(place / f"{number:04}.png")
    (FOLDER / "digit_0" / "broken.jpg").write_bytes(b"no image")

# %% [markdown]
# ## Shards
#
# A shard holds the images of `shard_size` names in sorted order. It gets its
# name when it is whole. Memory does not grow with the number of images.
# `resume=True` goes on with what is there, and starts where nothing is.

# %%
done = run.embed(FOLDER, "vectors", shard_size=100, resume=True)
print(done.images, "images,", done.rows, "rows,", done.bad, "bad")
print(sorted(path.name for path in Path("vectors").iterdir()))
print(Path(done.bad_list).read_text())

# %% [markdown]
# ## Interruption
#
# A killed command leaves whole shards and, at most, an unfinished one, which
# does not count. This cell removes the last shard, as if the command had been
# killed before it. The same call makes what is missing, with the same values.

# %%
import numpy as np

from keras_dml.embeddings import iterate_embeddings, load_embeddings

before = load_embeddings("vectors")
Path("vectors", "shard-00002.npz").unlink()
again = run.embed(FOLDER, "vectors", shard_size=100, resume=True)
after = load_embeddings("vectors")
print(again.rows, "rows;", "equal:", np.array_equal(before.ids, after.ids))
np.testing.assert_array_equal(before.embeddings, after.embeddings)

# %% [markdown]
# `resume=True` is refused if an image was added, removed or changed, or if the
# weights are others, so that a folder never mixes two kinds of rows.
#
# ## Read and measure them
#
# One shard at a time, or all at once. The labels are the names of the
# sub-folders, if every image lies in one.

# %%
for shard in iterate_embeddings("vectors"):
    print(len(shard), "rows", shard.embeddings.shape[1], "numbers each")

print(keras_dml.evaluate("vectors", k=(1, 10)))

# %% [markdown]
# `evaluate` loads no model. It takes vectors of any program as an `.npz` file
# with `embeddings` and `labels`.
#
# ## Larger still
#
# - `output="vectors.npz"` writes one file, `file_format="parquet"` shards of
#   [Parquet](../embed.md#reading-the-vectors).
# - [Apache Beam](../embed.md#more-than-one-machine-apache-beam) embeds on many
#   machines.
# - [Search](search.ipynb) finds neighbors and near-duplicates of images.
