"""Trainings on N replicas: `python -m tests.run.replicas N FOLDER NAME...`.

They share a process, since starting one takes longer than the short ones.
"""

import sys
from pathlib import Path

import keras_dml
from tests.images import image_folder

# Five steps of low rates: batch normalization has not yet made rounding grow.
STEPS = (
    "sampling.steps_per_epoch=1",
    "stages.main.train.epochs=5",
    "optimizer.backbone.lr=3e-4",
    "optimizer.proxies.lr=1e-3",
)
# What a rest of images, of an epoch or of a memory could spoil.
RESTS = (
    "sampling={kind: balanced, classes: 8, images: 4}",
    "loss=[{name: contrastive, memory: {size: 50, warm_up_steps: 2}}]",
    "stages=[{phases: [{epochs: 3, refresh_bn: 9}]}]",
    "evaluation.every=2",
    "evaluation.batch_size=28",
    "model.dim=16",
    *(
        f"optimizer.{group}={{name: sgd, lr: 1e-3, schedule: constant}}"
        for group in ("backbone", "head")
    ),
)
# Features that were computed once are of images that do not change.
FROZEN = (
    "sampling.steps_per_epoch=2",
    "stages=[{phases: [{epochs: 2, freeze: all}]}]",
    "augmentation={crop: center, flip: false, rotation: 0, translation: 0, "
    "scale: [1, 1], shear: 0}",
)


def main(count: int, folder: Path, *names: str) -> None:
    """Trains each of these into its own folder."""
    photos = folder / "photos"
    # 43 classes train, 4 validate; no batch holds a multiple of 5 images.
    image_folder(photos, classes=94, images=5, size=24, suffix=".png")
    devices = {"strategy": "mirrored", "devices": f"cpu:{count}"}
    if count == 1:
        devices = {"strategy": "none"}
    trainings = {
        "steps": ("digits", STEPS),
        # A pass over 901 images has 7 batches of 128, and a rest.
        "whole": ("digits", ()),
        "rests": (str(photos), RESTS),
        "frozen": ("digits", FROZEN),
    }
    for name in names:
        source, settings = trainings[name]
        keras_dml.fit(
            source,
            backbone="small_cnn",
            settings=settings,
            output=folder / name,
            report=False,
            export=False,
            **devices,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
