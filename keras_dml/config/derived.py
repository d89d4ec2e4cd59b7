"""Derives settings from other settings of a configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from keras_dml.config.data_sections import BY_CLASS, SamplingConfig
from keras_dml.config.merging import Layer, Merged
from keras_dml.config.training_sections import GroupConfig

# The default of `keras.optimizers.AdamW`.
ADAMW_DECAY = 0.004
# The optimizer of the proxies of a sample.
LAZY = "row_lazy_adam"


def complete(merged: Merged) -> Merged:
    """Adds the layers that follow from the merged settings.

    `optimizer.head` and `optimizer.proxies` copy from `optimizer.backbone`
    the values that they do not set, or set to `null`; proxies take `adam`
    where the backbone has `muon`. With `model.proxies.sample`, the sample holds
    at least as many classes as a batch may have, the terms of the loss are
    `sampled`, and `adam`, `adamw` or `muon` of the proxies becomes
    `row_lazy_adam`. Other optimizers stay: plain `sgd` does not change the
    proxies outside the sample either.
    """
    for derive in (_class_sample, _groups):
        for layer in derive(merged.values):
            merged.add(layer)
    return merged


def underived(values: Mapping[str, Any], origin: str) -> Layer:
    """Returns the layer that takes back what follows from a sample.

    `complete` derives it again if the sample stays. `row_lazy_adam` becomes
    `adam`, which is the same if every step compares with all proxies.

    Args:
        values: Completed values.
        origin: The origin of the layer.
    """
    if _section(values, "model", "proxies").get("sample") is None:
        return Layer(origin, {})
    back: dict[str, Any] = {
        "model": {"proxies": {"sample_at_least": None}},
        "loss": {place: {"sampled": False} for place in range(_terms(values))},
    }
    if _section(values, "optimizer", "proxies").get("name") == LAZY:
        back["optimizer"] = {"proxies": {"name": "adam"}}
    return Layer(origin, back)


def _groups(values: Mapping[str, Any]) -> Iterator[Layer]:
    """Yields what head and proxies copy: all values but `layer_decay`."""
    backbone = _section(values, "optimizer", "backbone")
    for group in ("head", "proxies"):
        own = _section(values, "optimizer", group)
        # `clip_value: null` is a setting: nothing is clipped.
        given = {
            key
            for key, value in own.items()
            if value is not None or key == "clip_value"
        }
        taken = {
            key: 1.0 if key == "layer_decay" else value
            for key, value in backbone.items()
            if key not in given
        }
        # Proxies are no map between features, which muon is for.
        copied = group == "proxies" and backbone.get("name") == "muon"
        if copied and own.get("name") != "muon":
            usual = {"name": "adam", "arguments": {}}
            taken |= {key: usual[key] for key in usual if key in taken}
        for key in {*own} - given - {*taken}:
            field = GroupConfig.model_fields.get(key)
            if field is not None:
                taken[key] = field.get_default(call_default_factory=True)
        if taken:
            yield Layer("optimizer.backbone", {"optimizer": {group: taken}})


def _class_sample(values: Mapping[str, Any]) -> Iterator[Layer]:
    proxies = _section(values, "model", "proxies")
    if proxies.get("sample") is None:
        return
    sampling = {**SamplingConfig().model_dump(), **_section(values, "sampling")}
    classes = _classes_of_batch(sampling)
    yield Layer(
        "model.proxies.sample",
        {
            "model": {"proxies": {"sample_at_least": classes}},
            "optimizer": {"proxies": _row_lazy(values)},
            "loss": {
                place: {"sampled": True} for place in range(_terms(values))
            },
        },
    )


def _terms(values: Mapping[str, Any]) -> int:
    """Returns the number of terms of the loss."""
    terms = values.get("loss")
    return len(terms) if isinstance(terms, list) else 0


def _classes_of_batch(sampling: Mapping[str, Any]) -> Any:
    """Returns the most classes of a batch; `None` if a number is invalid."""
    rows, classes, images = (
        sampling.get(key) for key in ("batch_size", "classes", "images")
    )
    if sampling.get("kind") not in BY_CLASS:
        return rows
    if classes is None and isinstance(rows, int) and isinstance(images, int):
        return -(-rows // max(1, images))
    return classes


def _row_lazy(values: Mapping[str, Any]) -> dict[str, Any]:
    backbone = _section(values, "optimizer", "backbone")
    proxies = _section(values, "optimizer", "proxies")
    name = proxies.get("name") or backbone.get("name") or "adam"
    if name not in ("adam", "adamw", "muon"):
        return {}
    decays = (one.get("weight_decay") for one in (proxies, backbone))
    decay = next((one for one in decays if one is not None), None)
    if name == "adamw" and decay is None:
        decay = ADAMW_DECAY
    return {"name": LAZY, "weight_decay": decay}


def _section(values: Any, *keys: str) -> Mapping[str, Any]:
    """Returns the section at a path of keys; empty if it is missing."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}
