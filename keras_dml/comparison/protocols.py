"""Protocols, and how they change the run of a recipe."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_dml.config import RunConfig, StageConfig
from keras_dml.config.plan_sections import ProtocolConfig
from keras_dml.wording import percent


def first_stage(stages: list[StageConfig]) -> list[StageConfig]:
    """Trains the first stage of a recipe only, on the `fit` classes.

    In a recipe with two stages, the first is the one whose schedule depends
    on the validation.
    """
    return [stages[0].changed(name="main", classes="fit", replay=None)]


@dataclasses.dataclass(frozen=True)
class Protocol:
    """How classes are split, and what chooses the epoch that is measured.

    Args:
        in_words: A sentence that says what chooses the measured epoch.
        data: Dict of changes to the `data` section of a run. Defaults to
            none.
        stages: Function from the stages of a recipe to those that are
            trained. Defaults to `first_stage`.
        folds: The folds that are trained. Defaults to `(None,)`: no
            cross-validation.
        holds_out: Whether held-out training classes choose the epoch.
            Defaults to `False`.
        concatenates: Whether the concatenated embeddings of all folds are
            measured. Defaults to `False`.
        refits: Whether runs are trained once more on all training classes if
            their recipe says so. Defaults to `False`.
    """

    in_words: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stages: Callable[[list[StageConfig]], list[StageConfig]] = first_stage
    folds: tuple[int | None, ...] = (None,)
    holds_out: bool = False
    concatenates: bool = False
    refits: bool = False

    def applied(self, config: RunConfig, fold: int | None = None) -> RunConfig:
        """Returns the run of a recipe under the protocol.

        Args:
            config: The run as the recipe defines it.
            fold: Number of the fold. Defaults to `None`.
        """
        data = dict(self.data) if fold is None else {**self.data, "fold": fold}
        return config.changed(
            data=data,
            stages=self.stages(config.stages),
            refit=config.refit and self.refits,
            final="measured",
        )


def get_protocol(section: ProtocolConfig) -> Protocol:
    """Makes the protocol of a section.

    Example:

    >>> from keras_dml.config import resolve
    >>> oracle = get_protocol(ProtocolConfig(kind="oracle"))
    >>> oracle.applied(resolve("hbn", "digits")).data.validation
    'test'
    """
    match section.kind:
        case "recipe":
            return Protocol("as each recipe says", stages=list, refits=True)
        case "oracle":
            return Protocol(
                "oracle: the test classes themselves choose the epoch",
                {"validation": "test"},
            )
        case "two_stage":
            return Protocol(
                "two stages: one half of the training classes finds the "
                "schedule on the other, then all of them train",
                stages=_two_stages,
            )
        case "fixed_validation":
            fraction = section.fraction
            return Protocol(
                f"fixed validation: {percent(fraction)} of the classes not in "
                "the test (images, if classes are few) choose the point of "
                "training whose network is tested",
                {"validation": "classes", "validation_fraction": fraction},
                holds_out=True,
            )
    return _cross_validation(section)


def tuning_protocol(section: ProtocolConfig) -> ProtocolConfig:
    """Returns the protocol that judges trials: never on the test classes."""
    return section if get_protocol(section).holds_out else ProtocolConfig()


def _cross_validation(section: ProtocolConfig) -> Protocol:
    sides = (
        " Tables of concatenated folds measure the embeddings of all folds "
        "side by side, the others each fold separately."
    )
    return Protocol(
        f"{section.folds}-fold cross-validation over the training classes, "
        f"{section.split} folds: the classes of a fold choose its epoch."
        f"{sides if section.concatenated else ''}",
        {
            "validation": "classes",
            "folds": section.folds,
            "fold_split": section.split,
        },
        folds=tuple(range(section.folds)),
        holds_out=True,
        concatenates=section.concatenated,
    )


def _two_stages(stages: list[StageConfig]) -> list[StageConfig]:
    """Finds the schedule on half of the classes, then trains on all."""
    if any(stage.replay is not None for stage in stages):
        return stages
    return [
        stages[0].changed(name="search", classes="first_half"),
        stages[0].changed(name="final", classes="all", replay="search"),
    ]
