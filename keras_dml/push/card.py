"""Writes the card of a run: the page that people see first on the Hub."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from keras_dml.config import RunConfig
from keras_dml.run.conclusion import (
    CAVEATS,
    conclusion,
    has_trained,
    result_rows,
    tested,
)
from keras_dml.run.embedder_check import embedding_dim
from keras_dml.wording import metric_meaning, metric_title, slug

TAGS = (
    "metric-learning",
    "image-retrieval",
    "image-similarity",
    "keras",
    "keras-dml",
)
TASK = "image-feature-extraction"
# The metrics in the Hub's own table of results.
LISTED = ("map@r", "recall@1")
# Flags of results that the Hub's table would show beside others' as equal.
NOT_LISTED = ("final", "oracle", "partial")


def model_card(
    config: RunConfig,
    metrics: Mapping[str, Any],
    repository: str,
    exports: Sequence[str] = (),
    license_name: str | None = None,
) -> str:
    """Returns the `README.md` of a run as a repository of the Hub.

    Args:
        config: The settings of the run.
        metrics: The content of `metrics.json`.
        repository: `"OWNER/NAME"`.
        exports: The folders of exports in it. Defaults to none.
        license_name: The Hub's identifier of a license, such as
            `"apache-2.0"`. Defaults to `None`, none.

    Returns:
        Markdown after a head in YAML.
    """
    name = repository.partition("/")[2]
    head = yaml.safe_dump(_head(metrics, name, license_name), sort_keys=False)
    made = "Trained" if has_trained(metrics) else "Made"
    version = metrics["versions"].get("keras_dml", "")
    parts = [
        f"---\n{head}---",
        f"# {name}",
        f"It maps an image to {embedding_dim(config, metrics)} numbers, its "
        "embedding, so that images of one class lie near each other. "
        f"{made} with keras-dml {version}.",
        "## Results",
        *_results(metrics),
        "## Use",
        *_use(config.model.backbone, repository, name, exports),
        "## Training",
        _training(config, metrics),
    ]
    return "\n\n".join(parts) + "\n"


def _head(
    metrics: Mapping[str, Any], name: str, license_name: str | None
) -> dict[str, Any]:
    """Returns the part of a card that the Hub searches."""
    head: dict[str, Any] = {
        "library_name": "keras-dml",
        "pipeline_tag": TASK,
        "tags": list(TAGS),
    }
    if license_name is not None:
        head = {"license": license_name, **head}
    if any(metrics.get(flag) for flag in NOT_LISTED):
        return head
    after, data = metrics["after"], metrics["dataset"]
    values = [
        {"type": slug(one), "name": metric_title(one), "value": after[one]}
        for one in LISTED
        if one in after
    ]
    result = {
        "task": {"type": TASK},
        "dataset": {"type": slug(data), "name": data},
        "metrics": values,
    }
    return {**head, "model-index": [{"name": name, "results": [result]}]}


def _results(metrics: Mapping[str, Any]) -> list[str]:
    texts = [
        f"{_escaped(tested(metrics))}.",
        _table(result_rows(metrics)),
        " ".join(conclusion(metrics)),
    ]
    texts += [text for flag, text in CAVEATS.items() if metrics.get(flag)]
    if metrics.get("final"):
        texts.append(
            "These are the results of the same training on a part of the "
            "classes. This network was trained on all of them, so it has no "
            "results of its own."
        )
    meanings = [f"{metric_title(one)}: {metric_meaning(one)}" for one in LISTED]
    texts.append(
        "A query is a test image that is looked up among the others. "
        f"{'. '.join(meanings)}."
    )
    return [text for text in texts if text]


def _use(
    backbone: str, repository: str, name: str, exports: Sequence[str]
) -> list[str]:
    extra = "[hub]" if backbone.startswith("hub:") else ""
    files = [
        ("embedder.keras", "the network, for Keras and keras-dml"),
        *((f"{one}/", "an export; `manifest.json` in it") for one in exports),
        ("config.yaml", "every setting of the training"),
        ("metrics.json", "all results"),
        ("history.csv", "losses and metrics of each epoch"),
    ]
    return [
        "```sh\n"
        f"pip install 'keras-dml{extra}' huggingface-hub\n"
        f"hf download {repository} --local-dir {name}\n"
        f"keras-dml search {name} PHOTO.jpg --gallery PHOTOS\n"
        "```",
        "In Python:",
        "```python\n"
        "from keras_dml import ImageEmbedder\n\n"
        f'embedder = ImageEmbedder("{name}")\n'
        'rows = embedder(["PHOTO.jpg"])\n'
        "```",
        "\n".join(f"- `{file}`: {text}" for file, text in files),
        f"To measure it on other photos: `keras-dml evaluate {name} --source "
        "PHOTOS`.",
    ]


def _training(config: RunConfig, metrics: Mapping[str, Any]) -> str:
    size = config.data.image_size
    facts = {
        "recipe": f"{metrics['recipe']}, section {metrics['section']}",
        "network": metrics["backbone"],
        "initial weights": config.model.weights,
        "images": f"{size} x {size} pixels",
        "classes": f"{metrics['train_classes']:,}",
        "seed": str(metrics["seed"]),
    }
    if has_trained(metrics) and metrics.get("length"):
        facts["steps"] = f"{metrics['length']['steps']:,}"
    rows = [{"setting": key, "value": value} for key, value in facts.items()]
    return _table(rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [[*rows[0]], ["---"] * len(rows[0])]
    lines += [[_cell(value) for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else _escaped(str(value))


def _escaped(text: str) -> str:
    """Returns a text whose characters mean nothing to Markdown or HTML."""
    return re.sub(r"([\\|<*`\[#])", r"\\\1", text)
