"""The sections on images: which, in which batches, and how they change."""

from typing import Annotated, Literal

from pydantic import (
    Field,
    model_validator,
)

from keras_dml.config.values import (
    AreaRange,
    Count,
    Fraction,
    Range,
    Section,
    Share,
    Side,
    Steps,
)
from keras_dml.errors import UsageError

# The kinds of batches of as many images of each class.
BY_CLASS = ("balanced", "hierarchical", "hard_classes", "views")
# The most steps of an epoch.
LONGEST_EPOCH = 100_000


class DataConfig(Section):
    """Which images, of which size, and which classes train and validate.

    Without `image_size`, images are as large as the network was designed for,
    but photos smaller than that grow by at most the factor `enlarge`; the side
    that they would have without growing is the `natural_size`. Where embedding
    them would take more than half of the `minutes`, they are smaller. Training
    images have `train_share` of that side: a network that is trained on
    smaller images sees objects as large as in tests, since training crops
    enlarge them, and learns faster.

    With `quarter_turns`, each class trains four times, turned by 0, 90, 180 and
    270 degrees: more classes to tell apart, where a turned image is of another
    class. It has no effect with the embeddings of a teacher, which are of
    images as they are.

    With `all_classes`, the test images train too: nothing is left to measure,
    so that only the second training of `final: all` may have it.
    `max_classes` keeps this many classes, spread evenly over the training and
    the test classes. `validation: test` chooses the epoch on the test classes
    themselves; such results are labeled `oracle`. Classes of two images or more
    validate if at least `validation_from` classes train; if fewer do, the share
    `validation_images` of the images of each class validates. At most
    `max_validation_images` do: of fewer classes where each would have less
    than five, else some of each class, spread evenly. With `folds`, the
    classes of the fold number `fold` validate instead of a
    `validation_fraction`.
    """

    source: str = ""
    data_dir: str | None = None
    allow_partial: bool = False
    image_size: Side | None = None
    enlarge: Annotated[float, Field(ge=1, le=100)] = 1.0
    natural_size: Side | None = None
    train_size: Side | None = None
    train_share: Share = 1.0
    channels: Literal[1, 3] | None = None
    quarter_turns: bool = False
    train_fraction: Fraction | None = None
    train_classes: list[str] | None = None
    test_classes: list[str] | None = None
    all_classes: bool = False
    max_classes: Annotated[int, Field(ge=4, le=10**9)] | None = None
    validation: Literal["classes", "test", "none"] = "classes"
    validation_fraction: Fraction = 0.1
    validation_from: Annotated[int, Field(ge=4, le=10**9)] = 20
    validation_images: Fraction | None = None
    max_validation_images: Annotated[int, Field(ge=10, le=10**9)] | None = None
    folds: Annotated[int, Field(ge=2, le=1000)] | None = None
    fold: Steps | None = None
    fold_split: Literal["random", "contiguous"] = "random"

    @model_validator(mode="after")
    def _fold_of_folds(self):
        if self.folds is None and self.fold is None:
            return self
        if self.folds is None or self.fold is None or self.fold >= self.folds:
            raise ValueError(
                "`data.fold` must be a number from 0 to `data.folds - 1`, and "
                f"one needs the other; folds is {self.folds}, fold {self.fold}"
            )
        return self

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels; known once the data are read."""
        if self.image_size is None or self.channels is None:
            raise UsageError(
                "`data.image_size` and `data.channels` must be set once the "
                f"data were read. Received: image_size={self.image_size}, "
                f"channels={self.channels}. Restore the run's `config.yaml`, "
                "or train again."
            )
        return (self.image_size, self.image_size, self.channels)

    @property
    def train_shape(self) -> tuple[int, int, int]:
        """The shape of a training image; known once the data are read."""
        size = self.train_size or self.image_shape[0]
        return (size, size, self.image_shape[2])

    @property
    def has_other_sizes(self) -> bool:
        """Whether the network sees images of another side than in tests."""
        others = {self.natural_size, self.train_size} - {None}
        return bool(others - {self.image_size})


class SamplingConfig(Section):
    """How a batch is drawn: `images` images of each class, or at random.

    `hierarchical` is `balanced` with the classes of a group together, and
    `inverse_frequency` is random with images of rare classes drawn more often.
    With `hard_classes` a batch holds a class and those that are most like it
    to the network at the start. With `views` each image is a class, drawn
    `images` times and changed at random each time: training knows no labels.
    With `triplets` a batch holds triplets of the CSV file of that name, with
    the columns `anchor`, `positive` and `negative`.
    If `classes` is `None`, it is the number of classes that fit into a batch,
    at most all classes. `embed_batch` is how many images the network embeds at
    once, in the memory of so many; `None` means the whole batch.
    """

    kind: Literal[
        "balanced",
        "hierarchical",
        "hard_classes",
        "views",
        "random",
        "inverse_frequency",
        "triplets",
    ] = "balanced"
    triplets: str | None = None
    batch_size: Count = 128
    embed_batch: Count | None = None
    classes: Count | None = None
    images: Count = 4
    drop_remainder: bool = False
    steps_per_epoch: Annotated[int, Field(ge=1, le=LONGEST_EPOCH)] | None = None

    @model_validator(mode="after")
    def _file_of_triplets(self):
        if (self.kind == "triplets") != (self.triplets is not None):
            raise ValueError(
                "`sampling.kind: triplets` needs `sampling.triplets`, a CSV "
                "file, and it alone takes one."
            )
        return self

    @property
    def by_class(self) -> bool:
        """Whether a batch holds `images` images of each of its classes."""
        return self.kind in BY_CLASS

    @property
    def most_rows(self) -> int:
        """The images of a batch; of few classes or images it holds fewer."""
        if not self.by_class:
            return self.batch_size
        fitting = max(1, self.batch_size // self.images)
        return (self.classes or fitting) * self.images

    @property
    def rows_together(self) -> int:
        """How many neighboring images of a batch belong together."""
        if self.kind == "triplets":
            return 3
        return self.images if self.by_class else 1


class AugmentationConfig(Section):
    """Random changes of training images, and the fixed crop of all others.

    Each is an argument of `data.augmentation.Augmentation`, which explains it.
    `flip: null` is what suits the data set.
    """

    crop: Literal["random_resized", "random", "center"] = "random_resized"
    area: AreaRange = (0.08, 1.0)
    aspect: Range = (0.75, 4 / 3)
    flip: bool | None = None
    rotation: Annotated[float, Field(ge=0, le=180)] = 0.0
    translation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    scale: Range = (1.0, 1.0)
    shear: Annotated[float, Field(ge=0, le=89)] = 0.0
    fill: Annotated[float, Field(ge=0, le=255)] | Literal["edge"] = 0.0
    brightness: Annotated[float, Field(ge=0, le=1)] = 0.0
    contrast: Annotated[float, Field(ge=0, le=1)] = 0.0
    saturation: Annotated[float, Field(ge=0, le=1)] = 0.0
    resize: Side | None = None
    squash: bool = False
