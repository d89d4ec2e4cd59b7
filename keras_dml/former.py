"""Maps names of version 0.1, which old files still hold, to new names."""

# The `name` of a loss in a `config.yaml`.
LOSSES = {
    "arc_face": "arcface",
    "cos_face": "cosface",
    "lifted_structure": "lifted",
    "normalized_softmax": "norm_softmax",
    "proxy_nca": "proxynca",
    "proxy_nca_isa": "proxynca_isa",
    "proxy_nca_plus_plus": "proxynca_pp",
    "sub_centre_arc_face": "sub_center_arcface",
    "sup_con": "supcon",
}

# Keys and values of a `config.yaml`, a recipe or a plan, by their dotted key.
KEYS = {"model.proxies.centres": "centers"}
VALUES = {
    "augmentation.crop": {"centre": "center"},
    "model.proxies.regularizer": {"centre_distance": "center_distance"},
}
PRESETS = {"sub_centre": "sub_center"}

# Arguments of layers in a `.keras` file.
ARGUMENTS = {"centres": "centers"}


def renamed(config: dict) -> dict:
    """Returns the configuration of a layer with today's argument names.

    Args:
        config: Configuration that a `.keras` file holds.

    Example:

    >>> renamed({"centres": 2})
    {'centers': 2}
    """
    return {ARGUMENTS.get(key, key): value for key, value in config.items()}


def formerly(*names: str):
    """Lets Keras load a class by its former registered names.

    Args:
        *names: Class names of version 0.1, without the package.

    Example:

    ```python
    @formerly("CentreDistance")
    @keras.saving.register_keras_serializable(package="keras_dml")
    class CenterDistance(keras.regularizers.Regularizer): ...
    ```
    """

    import keras

    def register(cls):
        for name in names:
            keras.saving.get_custom_objects()[f"keras_dml>{name}"] = cls
        return cls

    return register
