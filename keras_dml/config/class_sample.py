"""What a sample of the classes asks of the other sections."""

from collections.abc import Mapping
from typing import Any

# The default of `keras.optimizers.AdamW`.
ADAMW_DECAY = 0.004


def settle_class_sample(values: Any, sampling: Mapping[str, Any]) -> Any:
    """Fills in what follows from `model.proxies.sample`.

    The sample holds at least as many classes as a batch may have. The terms
    of the loss become `sampled`, and `adam` or `adamw` of the
    proxies becomes `row_lazy_adam`. Other optimizers stay: plain `sgd` leaves
    the proxies outside of the sample alone too, the rest goes through all.

    Args:
        values: The plain values of a run's configuration; anything else is
            returned as it is.
        sampling: The defaults of the section `sampling`.

    Returns:
        The values, copied where they change.
    """
    if _at(values, "model", "proxies", "sample") is None:
        return values
    sampling = {**sampling, **(values.get("sampling") or {})}
    proxies = {
        **values["model"]["proxies"],
        "sample_at_least": _classes_of_batch(sampling),
    }
    model = {**values["model"], "proxies": proxies}
    optimizer = dict(values.get("optimizer") or {})
    optimizer["proxies"] = _row_lazy(
        _at(optimizer, "backbone") or {}, _at(optimizer, "proxies") or {}
    )
    loss = [{**term, "sampled": True} for term in values.get("loss", [])]
    return {**values, "model": model, "optimizer": optimizer, "loss": loss}


def _classes_of_batch(sampling):
    """The most that a batch may have; `None` where a number is no number."""
    rows, classes, images = (
        sampling.get(key) for key in ("batch_size", "classes", "images")
    )
    if sampling.get("kind") == "random":
        return rows
    if classes is None and isinstance(rows, int) and isinstance(images, int):
        return -(-rows // max(1, images))
    return classes


def _row_lazy(backbone, proxies):
    name = proxies.get("name") or backbone.get("name") or "adam"
    if name not in ("adam", "adamw"):
        return proxies
    decay = proxies.get("weight_decay") or backbone.get("weight_decay")
    if name == "adamw" and not decay:
        decay = ADAMW_DECAY
    filled = {**proxies, "name": "row_lazy_adam"}
    return {**filled, "weight_decay": decay} if decay else filled


def _at(values, *keys):
    """The value at a path of keys; `None` where there is none."""
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values
