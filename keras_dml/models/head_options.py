"""The settings of the layers between an embedding and its loss."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from keras_dml.layers import CrossBatchMemory, Distillation, HighOrderMoments


@dataclass(frozen=True)
class HeadOptions:
    """Settings of the layers between an embedding and its loss.

    A head ignores the settings of other heads.

    Attributes:
        proxies: Arguments of `Proxies`. Defaults to none.
        sample: Share of the classes that a step compares with, or `None` for
            all classes. Defaults to `None`.
        sample_at_least: Smallest number of classes in a sample; set it to the
            number of classes that a batch can hold. Defaults to `1`.
        sample_aware: Arguments of `SampleAwareProxies`. Defaults to none.
        scale: Initial scale of `ScaledLogits`. Defaults to `16.0`.
        logits_bias: Whether `ScaledLogits` learns a bias. Defaults to `False`.
        boundary: Initial value of `ClassBoundaries`. Defaults to `1.2`.
        memory: Memory of past embeddings. Defaults to `None`.
        moments: Embeddings of higher moments beside the embedding, in
            training. Defaults to `None`.
        step: Whether the loss takes the step, see
            `keras_dml.losses.AtStep`. Defaults to `False`.
        prefixes: Sizes of the prefixes of the embedding that the loss takes
            as well, see `keras_dml.losses.Matryoshka`. Defaults to none.
        distillation: Comparison with the embeddings of a teacher. Defaults to
            `None`.
        teacher_dim: Size of the embeddings of the teacher. Defaults to
            `None`, no teacher.

    Example:

    >>> HeadOptions(proxies={"initializer": "normal"}, scale=8.0).sample is None
    True
    """

    proxies: Mapping[str, Any] = field(default_factory=dict)
    sample: float | None = None
    sample_at_least: int = 1
    sample_aware: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 16.0
    logits_bias: bool = False
    boundary: float = 1.2
    memory: CrossBatchMemory | None = None
    moments: HighOrderMoments | None = None
    step: bool = False
    prefixes: Sequence[int] = ()
    distillation: Distillation | None = None
    teacher_dim: int | None = None

    def renewed(self) -> Self:
        """Returns the settings of one more head, which needs its own memory."""
        if self.memory is None:
            return self
        memory = type(self.memory).from_config(self.memory.get_config())
        return dataclasses.replace(self, memory=memory)
