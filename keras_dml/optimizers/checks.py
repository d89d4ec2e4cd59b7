"""Checks of the arguments of the Adam family."""


def check_adam(beta_1: float, beta_2: float, **not_negative: float) -> None:
    """Raises if an argument of the Adam family is out of range.

    Args:
        beta_1: Float, in `[0, 1)`.
        beta_2: Float, in `[0, 1)`.
        **not_negative: Further arguments, such as `epsilon`.

    Raises:
        ValueError: If a value is out of range.
    """
    for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
        if not 0 <= beta < 1:
            raise ValueError(
                f"`{name}` must lie in [0, 1). Received: {name}={beta!r}"
            )
    for name, value in not_negative.items():
        if not value >= 0:
            raise ValueError(
                f"`{name}` must not be negative. Received: {name}={value!r}"
            )
