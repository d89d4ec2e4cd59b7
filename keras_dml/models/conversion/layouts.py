"""How public checkpoints name the weights of a network."""

from dataclasses import dataclass

# The weight of a convolution and that of a batch normalization share a name.
TORCH_VARIABLES = {
    "weight": ("kernel", "gamma"),
    "bias": ("bias", "beta"),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}
TENSORFLOW_VARIABLES = {
    "weights": ("kernel",),
    "beta": ("beta",),
    "moving_mean": ("moving_mean",),
    "moving_variance": ("moving_variance",),
}


@dataclass(frozen=True)
class Layout:
    """Which entry of a checkpoint is for which variable.

    Attributes:
        framework: `"torch"` or `"tensorflow"`, whichever wrote it.
        classifier: What the names of entries begin with that are not for the
            backbone.
        scope: What all other names begin with.
    """

    framework: str
    classifier: tuple[str, ...]
    scope: str = ""

    def leaves_out(self, key: str) -> bool:
        """Whether an entry is for a classifier or for training."""
        counter = key.endswith("num_batches_tracked") or key == "global_step"
        return counter or key.startswith(self.classifier)

    def places(self, key: str) -> list[tuple[str, str]]:
        """Names of layer and variable that an entry may be for.

        Args:
            key: Name of the entry.

        Returns:
            Pairs of which the network has one at most.
        """
        torch = self.framework == "torch"
        separator = "." if torch else "/"
        owner, _, leaf = key.removeprefix(self.scope).rpartition(separator)
        variables = TORCH_VARIABLES if torch else TENSORFLOW_VARIABLES
        layer = owner.replace(separator, "_")
        return [(layer, variable) for variable in variables.get(leaf, ())]


LAYOUTS = {
    # The earlier files call the classifier `fc`.
    "bn_inception": Layout("torch", ("last_linear.", "fc.")),
    "googlenet": Layout("torch", ("fc.", "aux1.", "aux2.")),
    "resnet50_v1_5": Layout("torch", ("fc.",)),
    "inception_v1": Layout(
        "tensorflow", ("InceptionV1/Logits/",), scope="InceptionV1/"
    ),
}
