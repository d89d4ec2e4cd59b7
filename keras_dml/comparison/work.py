"""What a run computes, in training steps."""

import dataclasses

from keras_dml.config import RunConfig

# Network, side of a training image, batch: what runs of one pace share.
Kind = tuple[str, int, int]
# A step goes forward and twice as long backward.
FORWARD = 1 / 3
# How often a run embeds its test images.
TEST_PASSES = 3


@dataclasses.dataclass(frozen=True)
class Work:
    """What a run computes.

    Args:
        backbone: Name of its network.
        size: Side of a training image in pixels.
        batch: Images of a training step.
        steps: Training steps. Defaults to `0.0`.
        validated: What measuring the validation images takes during the
            training, in training steps. Defaults to `0.0`.
        tested: What measuring the other images takes, in training steps.
            Defaults to `0.0`.
    """

    backbone: str
    size: int
    batch: int
    steps: float = 0.0
    validated: float = 0.0
    tested: float = 0.0

    @property
    def kind(self) -> Kind:
        """Network, size and batch, which runs of the same pace share."""
        return self.backbone, self.size, self.batch

    @classmethod
    def of(
        cls,
        config: RunConfig,
        steps: int = 0,
        validated: int = 0,
        tested: int = 0,
        batch: int | None = None,
    ) -> "Work":
        """Returns the work of a run.

        Args:
            config: The settled configuration.
            steps: Its training steps. Defaults to `0`.
            validated: How many images it embeds to validate. Defaults to `0`.
            tested: How many test images it has. Defaults to `0`.
            batch: Images of a training step. Defaults to `None`, as many as
                the settings ask for, which a few classes may not have.
        """
        large = config.data.image_size or 0
        size = config.data.train_size or large
        batch = batch or config.sampling.most_rows
        image = FORWARD * (large / size) ** 2 / batch
        return cls(
            config.model.backbone,
            size,
            batch,
            steps,
            image * validated,
            image * tested * TEST_PASSES,
        )
