"""Trains a stage once more, with the classes that validated among the others.

Which weights to keep is chosen on classes that do not train; the network that
is kept need not do without them. As after a cross-validation, the same training
is repeated on all training classes: from the same start, for as many epochs,
with rates that fall after the same ones, and as far of the way as validation
has chosen. The decay of a `stop_tail` is not repeated: the rates stay high.
"""

import numpy as np

from keras_dml import distribute
from keras_dml.config import RunConfig, StageConfig
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet, save_embeddings
from keras_dml.run.data import StageData
from keras_dml.run.folder import RunFolder
from keras_dml.run.recorder import RunState


def is_refit(config: RunConfig, state: RunState) -> bool:
    """Whether the present stage is the one that `refit` adds."""
    return state.stage == len(config.stages)


def may_refit(config: RunConfig, last: StageData) -> bool:
    """Whether a refit follows the stages if some of the training is kept.

    Args:
        config: The configuration.
        last: Images of the last stage, some of which must validate.
    """
    asked = len(config.trainings) > len(config.stages)
    return asked and last.validation is not None


def refit_follows(config: RunConfig, state: RunState) -> bool:
    """Whether the stage that has just ended is to be trained once more.

    It is not if nothing validated, or if no step of the training was kept.
    """
    chosen = state.interpolation
    return (
        state.stage + 1 == len(config.stages) < len(config.trainings)
        and bool(chosen.get("values"))
        and not chosen["kept"]
        and chosen["share"] > 0
    )


def refit_config(config: RunConfig, state: RunState) -> RunConfig:
    """Returns the settings of the refit: what validation chose is settled."""
    whitens = state.shrinkage is not None
    return config.changed(
        model={"whitening": [state.shrinkage] if whitens else []},
        evaluation={"interpolate": [state.interpolation["share"]]},
    )


def refit_stage(config: RunConfig, state: RunState) -> StageConfig:
    """Returns the stage of the refit, as long as what was kept had trained.

    That is the whole first training, or its part up to the best epoch where
    `evaluation.select` is `"best"`.
    """
    stage = config.trainings[-1]
    record = state.records[config.stages[-1].name]
    trained = record["epochs"]
    if config.evaluation.select == "best":
        last = record["best_phase"]
        trained = [*trained[:last], record["best_epoch"] + 1]
    phases = [
        phase.changed(epochs=epochs)
        for phase, epochs in zip(stage.phases, trained, strict=False)
    ]
    return stage.changed(phases=phases)


def keep_unseen(rows: np.ndarray, images: Manifest, folder: RunFolder) -> None:
    """Keeps how the validation images look to a network that saw none of them.

    The network of the refit cannot tell how near images of other classes are,
    so the thresholds of a match are those of this one.

    Args:
        rows: What the network that validation has chosen makes of the images.
        images: The validation images.
        folder: The run folder.
    """
    if distribute.is_chief():
        save_embeddings(
            folder.unseen,
            EmbeddingSet(
                rows, images.labels, images.ids, None, images.class_names
            ),
        )
