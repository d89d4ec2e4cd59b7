# %% [markdown]
# # Comparing recipes
#
# Which of two losses suits your images? One run of each does not tell, since
# another seed may turn the order around. `keras_dml.compare` trains every
# recipe with the same seeds, the same budget and the same protocol, and says
# how sure the differences are.
#
# ## Two recipes, two seeds
#
# A folder of photos takes the place of `"digits"`. The protocol `"recipe"`
# validates as each recipe says, which on these ten classes means not at all. On
# your own classes leave it out: the default trains on the same classes and
# chooses the weights on classes that are held out.
#
# Ten steps per run show how it works; their ranking means nothing.

# %%
import keras_dml

FOLDER = "runs/comparison"
recipes = ["norm_softmax", "triplet"]
budget = {"epochs": 1, "steps_per_epoch": 10, "protocol": "recipe"}
# Two runs at once, each in its own process; no page for each run.
how = {"processes": 2, "report": False}

# %%
planned = keras_dml.compare(
    "digits", FOLDER, recipes=recipes, seeds=2, dry_run=True, **budget
)
print(planned.count("to do"), "runs to train")

# %%
comparison = keras_dml.compare(
    "digits", FOLDER, recipes=recipes, seeds=2, **budget, **how
)
for title, rows in comparison.rankings():
    print(title)
    for row in rows:
        print("   ", row)

# %% [markdown]
# ## What intervals and verdicts mean
#
# The first table has the mean over seeds and their deviation. The second one
# has the paired difference from the best recipe: run by run of the same seed,
# image by image of the same queries.
#
# - `interval: seeds`: where the mean difference of many seeds may lie, by
#   Student's t. Two seeds give a very wide interval.
# - `interval: classes`: where it may lie on other test classes, by
#   a bootstrap.
# - `verdict`: `worse` if both intervals lie below 0, `open` if one of them
#   contains 0.
#
# "Open" is no tie: it asks for more seeds, or for more test classes.
#
# ## A third recipe, later
#
# Name the folder and what is new. Finished runs stay as they are. The budget
# and the protocol are those of the folder; another one is refused. Without
# `dry_run=True` the new runs are trained.

# %%
planned = keras_dml.compare(FOLDER, recipes=["proxy_anchor"], dry_run=True)
print(planned.count("done"), "runs are there,", planned.count("to do"), "to do")

# %% [markdown]
# `page.html` in the folder shows all of it. Without `report=False` each run has
# a page, too.

# %%
print(sorted(path.name for path in comparison.folder.iterdir()))

# %% [markdown]
# [Comparing fairly](../compare.md) has the protocols, plans in YAML files and
# the statistics, [Tuning](../tuning.md) tries settings before it compares.
