"""The pages of the keys of a run and of a plan, from their sections."""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from keras_dml.config.flags import FLAGS
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.sections import RunConfig
from keras_dml.models import HEADS
from site_pages.docstrings import linked
from site_pages.markdown import as_code, as_yaml, page
from site_pages.origins import origin_text
from site_pages.symbols import docstring

RUN, PLAN = "reference/configuration.md", "reference/plan_files.md"

_FILE = Path(__file__).with_name("key_texts.yaml")
TEXTS = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_HEADS = "; ".join(f"`{one.name}`, {one.gives}" for one in HEADS.values())
TEXTS["LossConfig"]["takes"] += f" One of: {_HEADS}."
# How a key names an item of a list that goes by name; others go by `[]`.
NAMED = {
    "loss": "loss.LOSS",
    "stages": "stages.STAGE",
    "stages.STAGE.phases": "stages.STAGE.PHASE",
}
# Whose arguments the keys of a section are, for their texts.
ARGUMENTS_OF = {
    "RunConfig": ("fit_options:TrainingOptions", "fit_options:FitOptions"),
    "DataConfig": ("fit_options:TrainingOptions", "fit_options:FitOptions"),
    "SamplingConfig": (
        "data.sampling:balanced_batches",
        "fit_options:TrainingOptions",
    ),
    "AugmentationConfig": ("data.augmentation:Augmentation",),
    "ModelConfig": (
        "models.embedder:build_embedder",
        "layers.embedding_head:EmbeddingHead",
        "models.head_options:HeadOptions",
        "layers.global_k_max_pooling_2d:GlobalKMaxPooling2D",
        "api:fit",
    ),
    "ProxiesConfig": (
        "layers.proxies:Proxies",
        "models.head_options:HeadOptions",
    ),
    "MemoryConfig": (
        "layers.cross_batch_memory:CrossBatchMemory",
        "losses.with_memory:WithMemory",
    ),
    "MomentsConfig": ("layers.high_order_moments:HighOrderMoments",),
    "DistillationConfig": (
        "layers.distillation:Distillation",
        "fit_options:TrainingOptions",
    ),
    "GroupConfig": ("optimizers.layer_decay:layer_decay",),
    "HeatConfig": (
        "callbacks.heat_up:HeatUp",
        "callbacks.gradual_heat_up:GradualHeatUp",
    ),
    "PlateauConfig": ("callbacks.reduce_lr_on_plateau:ReduceLROnPlateau",),
    "PhaseConfig": ("fit_options:TrainingOptions",),
    "EvaluationConfig": ("evaluation.retrieval:evaluate_retrieval",),
    "PlanConfig": (
        "comparison.plans:PlanOptions",
        "comparison.compare:compare",
    ),
    "ProtocolConfig": ("data.class_folds:fold_classes",),
    "BudgetConfig": ("comparison.plans:PlanOptions",),
}
_ARGS = re.compile(r"^(?:Args|Attributes):\n(.+?)(?:\n\n|\Z)", re.S | re.M)
_ARG = re.compile(r"^    (\w+): (.+?)(?=\n    \S|\Z)", re.S | re.M)


def settings_pages() -> Iterator[tuple[str, str, str]]:
    """Yields path, title and text of both pages."""
    yield (
        RUN,
        "Configuration",
        page(
            "# Configuration",
            "Every key of a run. A recipe sets them, `--set KEY=VALUE` changes "
            "one, `keras-dml config` shows all with the place that set each, "
            "and `config.yaml` of a run holds them. [Recipes](../recipes.md) "
            "says how they are put together.",
            "An unknown key is an error that names the nearest one; so is a "
            "value of another type or outside its bounds. A default holds "
            "where neither a recipe nor the data sets the key. *On photos* "
            "is what a run on photos without options has, with the part of "
            "a recipe, or the facts of the data set, that it comes from; "
            "*set by* names the recipes that say something about the key.",
            "Terms of a loss, stages and phases go by name or number: "
            "`loss.triplet.margin`, `stages.main.train.epochs`, "
            "`stages.0.phases.0.epochs`.",
            *_sections(RunConfig),
        ),
    )
    yield (
        PLAN,
        "Plan files",
        page(
            "# Plan files",
            "Every key of a plan, the file that `keras-dml compare` runs; see "
            "[Comparing](../compare.md#plans). `[]` stands for the items of a "
            "list.",
            *_sections(PlanConfig),
        ),
    )


def keys(model: type) -> Iterator[tuple[str, list[str], Mapping[str, Any]]]:
    """Yields the sections of a model, the outer ones first.

    Yields:
        The name of a section's class, the dotted places where it is used, and
        the JSON schemas of its keys.
    """
    whole = model.model_json_schema()  # type: ignore[attr-defined]
    places: dict[str, list[str]] = {}

    def walk(name: str, schema: Mapping[str, Any], prefix: str) -> None:
        places.setdefault(name, []).append(prefix)
        for key, value in schema["properties"].items():
            place = f"{prefix}.{key}".lstrip(".")
            for inner, is_item in _inner(value, False):
                item = NAMED.get(place, f"{place}[]") if is_item else place
                walk(inner, whole["$defs"][inner], item)

    walk(model.__name__, whole, "")
    for name, prefixes in places.items():
        schema = whole if name == model.__name__ else whole["$defs"][name]
        yield name, prefixes, schema


def _inner(value: Any, is_item: bool) -> Iterator[tuple[str, bool]]:
    """Yields the sections in the schema of a key, and whether of its items."""
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2], is_item
        for key, part in value.items():
            if key not in ("default", "$defs"):
                items = key in ("items", "additionalProperties")
                yield from _inner(part, is_item or items)
    elif isinstance(value, list):
        for part in value:
            yield from _inner(part, is_item)


def _sections(model: type) -> Iterator[str]:
    homes = {name: _anchor(prefixes) for name, prefixes, _ in keys(model)}
    for name, prefixes, schema in keys(model):
        title = ", ".join(f"`{one}`" for one in prefixes if one)
        yield f"## {title or 'At the top'} {{ #{homes[name]} }}"
        yield linked(schema.get("description", ""))
        required = schema.get("required", ())
        for key, value in schema["properties"].items():
            text = _key(prefixes, key, value, key in required)
            if model is RunConfig:
                origin = origin_text(_places(prefixes, key), places(model))
                text += f" {origin}." if origin else ""
            text = re.sub(
                r"(a|A) section `(\w+)`",
                lambda found: f"[{found[1]} section](#{homes[found[2]]})",
                text,
            )
            about = text_of(name, key, value)
            yield f"{text}\n\n    {linked(about)}" if about else text


def _anchor(prefixes: list[str]) -> str:
    return f"section-{prefixes[0].replace('[]', '') or 'top'}"


def _key(
    prefixes: list[str], key: str, value: Mapping[str, Any], required: bool
) -> str:
    """Returns the definition of a key: its type, bounds, default, option."""
    own = _places(prefixes, key)
    first, *others = (f"{as_code(one)}{{ #{anchor_of(one)} }}" for one in own)
    inner = [*_inner(value, False)]
    about = kind(value)
    if required:
        about += ". Required"
    elif not any(not is_item for _, is_item in inner):
        about += f". Default: {as_code(as_yaml(value.get('default')))}"
    options = [
        as_code(f"--{name.replace('_', '-')}")
        for name, flags in FLAGS.items()
        if {*flags.replace("main.train", "STAGE.PHASE").split()} & {*own}
    ]
    if options:
        about += f". Option: {', '.join(options)}"
    about = about[:1].upper() + about[1:]
    return f"{', '.join([first, *others])}\n:   {about}."


def _places(prefixes: list[str], key: str) -> list[str]:
    return [f"{one}.{key}".lstrip(".") for one in prefixes]


@functools.cache
def places(model: type) -> tuple[str, ...]:
    """Returns the place of every key of a model."""
    return tuple(
        place
        for _, prefixes, schema in keys(model)
        for key in schema["properties"]
        for place in _places(prefixes, key)
    )


def anchor_of(place: str) -> str:
    """Returns the anchor of a key on its page."""
    return place.replace("[]", "")


def kind(value: Mapping[str, Any]) -> str:
    """Returns the type and the bounds of a key in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"a section {as_code(name)}"
    if "enum" in value:
        return " or ".join(as_code(as_yaml(one)) for one in value["enum"])
    if "const" in value:
        return as_code(as_yaml(value["const"]))
    for forms in ("anyOf", "oneOf"):
        if forms in value:
            return " or ".join(dict.fromkeys(map(kind, value[forms])))
    match value.get("type"):
        case "array" if "prefixItems" in value:
            return f"a pair: {kind(value['prefixItems'][0])}"
        case "array":
            least = " of at least one" if value.get("minItems") else ""
            items = value.get("items")
            return f"list{least}" + (f", each {kind(items)}" if items else "")
        case "object":
            items = value.get("additionalProperties")
            inside = kind(items) if isinstance(items, Mapping) else ""
            return "mapping" + (f" to {inside}" if inside else "")
        case "integer" | "number" as number:
            return f"{number}{_bounds(value)}"
        case "string":
            return "text"
        case "boolean":
            return "`true` or `false`"
        case "null":
            return "`null`"
    return "any value"


def _number(value: float) -> str:
    is_small = abs(value) < 2**60 and value == int(value)
    return f"{int(value):,}" if is_small else f"{value:g}"


def _bounds(value: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    found = [
        f"{word} {_number(value[bound])}"
        for bound, word in words.items()
        if bound in value
    ]
    return f" {' and '.join(found)}" if found else ""


def text_of(section: str, key: str, value: Mapping[str, Any]) -> str:
    """Returns the text of a key, or of the argument that it is."""
    if known := TEXTS.get(section, {}).get(key):
        return known
    for home in ARGUMENTS_OF.get(section, ()):
        module, name = home.split(":")
        found = _ARGS.search(docstring(f"keras_dml.{module}", name))
        texts = dict(_ARG.findall(found[1] if found else ""))
        about = texts.get(key) or texts.get(f"{key}_proxies", "")
        if about:
            # Defaults of arguments are not those of keys.
            line = re.sub(r" Defaults to .*", "", " ".join(about.split()))
            if "enum" in value and not re.search(
                r"\w", re.sub(r"`[^`]*`|\b(or|and)\b", "", line)
            ):
                return ""  # the same choices once more
            return line[:1].upper() + line[1:]
    return ""
