"""`keras-dml recipes`, `datasets` and `backbones`: what there is."""

from keras_dml.cli.printing import print_rows


def recipes() -> None:
    """List the recipes: what each is and what its paper reports."""
    from keras_dml.config import load_recipe, recipe_names

    loaded = [load_recipe(name) for name in recipe_names()]
    print_rows(
        "Recipes",
        [
            {
                "name": one.name,
                "paper": one.paper,
                "reported": one.expected,
                "presets": " ".join(one.presets),
            }
            for one in loaded
        ],
    )


def datasets() -> None:
    """List the data sets that are known by name."""
    from keras_dml.config import dataset_facts, known_datasets

    known = [dataset_facts(name) for name in known_datasets()]
    print_rows(
        "Data sets",
        [
            {
                "name": one.name,
                "title": one.title,
                "published": one.paper,
                "images": f"{one.counts.get('images', 0):,}",
                "classes": f"{one.counts.get('classes', 0):,}",
                "recall at": ", ".join(map(str, one.recall_k)),
            }
            for one in known
        ],
    )


def backbones() -> None:
    """List the backbones."""
    from keras_dml.models import BACKBONES

    print_rows(
        "Backbones",
        [
            {
                "name": name,
                "paper": one.paper,
                "image size": str(one.image_size),
                "weights": "convert-weights"
                if one.checkpoint
                else one.pretrained,
            }
            for name, one in BACKBONES.items()
        ]
        + [
            {
                "name": "hub:PRESET",
                "paper": "an image network of keras-hub, or a folder of its "
                "`save_to_preset`: DINOv2, DINOv3, SigLIP, ViT, ...",
                "image size": "its own",
                "weights": "preset",
            }
        ],
    )
