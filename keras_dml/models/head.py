"""Base class of what stands between an embedding and its loss."""

import abc
from collections.abc import Callable, Iterable
from typing import Any

import keras

from keras_dml import callbacks
from keras_dml.errors import UsageError
from keras_dml.models.head_options import HeadOptions


class Head(abc.ABC):
    """Base of the heads.

    Attributes:
        name: The value of `takes` of the losses that need this head.
        gives: Description of the input of the loss, for error messages.
        compares_rows: Whether the loss compares the rows of a batch with each
            other: it then needs batches with positive pairs, and the rows of
            all replicas.
        has_variables: Whether the head has trainable variables.
        has_class_columns: Whether the loss gets one column for each class,
            so that a sample of the classes can replace all of them.

    Example:

    >>> from keras_dml.losses import ProxyAnchor
    >>> from keras_dml.models import get_head
    >>> get_head(ProxyAnchor.takes).has_class_columns
    True
    """

    name = ""
    gives = ""
    compares_rows = False
    has_variables = True
    has_class_columns = False

    @abc.abstractmethod
    def connect(
        self,
        embedding: keras.KerasTensor,
        label: keras.KerasTensor,
        num_classes: int,
        options: HeadOptions,
    ) -> keras.KerasTensor:
        """Applies the layers of the head to an embedding.

        Args:
            embedding: Float32 `(batch, dim)`.
            label: Int32 `(batch,)`.
            num_classes: Number of classes in training.
            options: `HeadOptions`.

        Returns:
            The `y_pred` of the loss.
        """

    def check(self, options: HeadOptions, policy: str) -> None:
        """Raises if the head cannot use an option.

        Args:
            options: `HeadOptions`.
            policy: Dtype policy of the trainer.

        Raises:
            UsageError: If the head cannot use an option.
        """
        for layer in ("memory", "moments"):
            if getattr(options, layer) and self.name != "embeddings":
                raise UsageError(
                    f"`{layer}` needs a loss that takes embeddings. Received: "
                    f"{layer} and a loss that takes {self.name}"
                )
        others = {
            "memory": options.memory,
            "prefixes": options.prefixes,
            "distillation": options.distillation,
        }
        for name, other in others.items():
            if other and options.moments is not None:
                raise UsageError(
                    f"`moments` and `{name}` exclude each other. Received: "
                    "both. Leave one out."
                )
        if options.sample is not None:
            self._check_sample(options, policy)

    def check_replicas(self, loss: str, replicas: int) -> None:
        """Raises if a loss of another package would see one replica only.

        Args:
            loss: Name of the loss.
            replicas: Number of replicas.

        Raises:
            UsageError: If the loss compares rows on several replicas.
        """
        if replicas > 1 and self.compares_rows:
            raise UsageError(
                f"The loss {loss!r} compares the rows of each device only "
                "with each other, so that it would depend on the number of "
                f"devices. Received: {replicas} devices. Use a loss of "
                "keras_dml or one device."
            )

    def callbacks(
        self, labels: Callable[[int], Iterable[Any]], warn: Callable[[str], Any]
    ) -> list[keras.callbacks.Callback]:
        """Makes the callbacks that training with this head needs.

        Args:
            labels: Function of the epoch that returns the labels of its
                batches.
            warn: Function that takes a message.
        """
        if not self.compares_rows:
            return []
        return [callbacks.BatchCheck(labels, warn=warn)]

    def proxies(self, trainer: keras.Model) -> keras.layers.Layer | None:
        """Returns the layer whose proxies show whether classes collapse."""
        return trainer.get_layer("proxies") if self.has_class_columns else None

    def _check_sample(self, options, policy):
        """Raises for options that need the proxies of all classes in a step."""
        regularizer = options.proxies.get("regularizer")
        needs = {
            "a loss on logits or similarities": self.has_class_columns,
            "`regularizer=None`": regularizer is None,
            "`logits_bias=False`": not options.logits_bias,
            "another `policy` than mixed_float16, such as mixed_bfloat16": (
                policy != "mixed_float16"
            ),
        }
        for need, met in needs.items():
            if not met:
                raise UsageError(
                    f"`sample` needs {need}: a step sees the proxies of its "
                    f"sample only. Received: sample={options.sample}, "
                    f"regularizer={regularizer}, "
                    f"logits_bias={options.logits_bias}, policy={policy!r}, "
                    f"a loss that takes {self.name}"
                )


def label_input() -> keras.KerasTensor:
    """Returns the input of a trainer that takes the labels, used or not."""
    return unused_input((), dtype="int32", name="label")


def unused_input(*args: Any, **kwargs: Any) -> keras.KerasTensor:
    """Returns a `keras.Input` that the layers of a model need not take.

    Keras before 3.15 refuses a model with an input that nothing takes.
    """
    tensor = keras.Input(*args, **kwargs)
    keras.layers.Identity()(tensor)
    return tensor
