"""Settings and YAML that are broken, hostile or beyond any machine."""

import json
import re

import pytest

from tests.config.test_yaml_files import BROKEN, LAUGHS
from tests.hostile.runner import Case, table

FIT = ("fit", "digits", "--output", "<run>", "--no-export", "--no-report")
DIGITS = "9" * 100_000

# What the configuration alone refuses, and a part of the message.
SETTINGS = {
    "seed=4294967296": "`--seed`.*less than 4294967296",
    "seed=-1": "`--seed` must be at least 0",
    "seed=.inf": "`--seed` must be a whole number",
    f"seed={DIGITS}": "a number has 100,000 characters",
    "model.dim=2000000": "`model.dim`.*65536",
    "model.dim=010": "`model.dim`.*'010'",
    "model.dim=1:30": "`model.dim`.*'1:30'",
    "model.scale=.nan": "`model.scale`",
    "model.scale=.inf": "`model.scale`",
    "model.scale=1e308": "`model.scale`.*1e\\+30",
    "model.scale=1e-300": "`model.scale`.*1e-30",
    "sampling.steps_per_epoch=100000000000000000000": "1000000",
    "model.proxies.centers=100000": "1000",
    "model.proxies.sample=1e-300": "`model.proxies.sample`",
    "loss.0.memory={size: 100000000000}": "`loss.0.memory.size`",
    "loss.0.weight=-.inf": "`loss.0.weight`",
    "data.image_size=1000000": "`data.image_size`.*8192",
    "evaluation.kmeans_starts=1000000000": "1000",
    "evaluation.k=[1, 100000000000000000000]": "`evaluation.k.1`",
    "optimizer.backbone.lr=1e308": "`optimizer.backbone.lr`",
    "stages.main.train.epochs=100000000000000000000": "epochs",
    "model.dim=[": "`model.dim` is not valid YAML",
    f"model.dim={'[' * 20_000}": "nests deeper than 32 levels",
    "model.dim=!!int x": "'x' is no int",
    "model.dim=!!timestamp x": "timestamp",
    "model.dim=!!python/object/apply:os.system [x]": "python/object",
    "model.dim=&a [*a]": "nests deeper",
    "model.dim=*x": "undefined alias",
    "model={dim: 1, dim: 2}": "the key 'dim' is there twice",
    'model.backbone="\\0"': "invalid character",
    'model.weights="\\ud800"': "invalid character",
    'model.weights="\\U00110000"': "an escape that is no character",
    'model.weights="\\UFFFFFFFF"': "an escape that is no character",
    "model=3": "`model`.*Received: 3",
    "optimizer.head=3": "`optimizer.head`",
    "stages=x": "`stages` must be a list",
    "stages.².name=x": "`stages.²` names none",
    "loss.²=3": "`loss.²` names none",
    "loss=[{name: [1]}]": "`loss.0.name`",
    "loss={1: {2: 3}}": "`loss.1` names none",
    "loss.0.arguments={1: 2}": "`loss.0.arguments.1",
    f"{'a.' * 5000}b=1": "at most 32 parts",
    f"{'k' * 100_000}=1": "Unknown configuration key `kkk",
    ".=1": "Unknown configuration key",
    "=1": "must be `key=value`",
    "recipe=triplet": "`--recipe` cannot be one of the settings",
    "stages.main=null": "`stages.main` must be a mapping",
    "loss.0=null": "`loss.0` must be a mapping",
    # Each is built, trained or measured.
    **{
        f"{key}=[{', '.join([value] * 3000)}]": f"{key}`.*at most {most} items"
        for key, value, most in (
            ("loss", "{name: contrastive}", 20),
            ("stages", "{phases: [{epochs: 1}]}", 100),
            ("evaluation.k", "1", 100),
            ("evaluation.interpolate", "0.5", 100),
            ("model.whitening", "0.5", 100),
        )
    },
    "dim": "must be `key=value`",
}
# What becomes known once there are data.
RUNS = {
    "memory": (
        ["data.image_size=8192", "sampling.batch_size=800"],
        r"A batch of 800 training images .* takes \d+ GB",
    ),
    "activations": (
        ["data.image_size=4096"],
        r"What the layer 'stem_convolution' makes of 128 images takes 275 GB",
    ),
    "evaluation": (
        ["data.image_size=2048", "evaluation.batch_size=1000000"],
        r"A batch of 1,000,000 test images .* takes [\d,]+ GB",
    ),
    "steps": (
        [
            "sampling={kind: balanced, images: 100000}",
            "sampling.steps_per_epoch=100000",
            "data.image_size=8",
        ],
        "`sampling.steps_per_epoch` or `sampling.batch_size`",
    ),
    "memory of embeddings": (
        ["loss=[{name: triplet, memory: {size: 1000000000}}]"],
        "`memory.size` of the loss",
    ),
    "loss": (["loss.0.arguments={margins: 3}"], "margins"),
    "argument of another type": (
        ["loss=[{name: triplet, arguments: {margin: [1]}}]"],
        "`margin` must be a finite number",
    ),
    "infinite argument": (
        ["loss=[{name: triplet, arguments: {margin: .inf}}]"],
        "`margin` must be a finite number",
    ),
    "argument beyond floats": (
        ["loss=[{name: triplet, arguments: {margin: 1%s}}]" % ("0" * 99)],
        "`margin` must be a number from -1e\\+30 to 1e\\+30",
    ),
    "bins of a loop": (
        ["loss=[{name: fast_ap, arguments: {bins: 1000000000}}]"],
        "`bins` must be an integer of at most 100",
    ),
    "bins of an array": (
        ["loss=[{name: histogram, arguments: {bins: 1000000000}}]"],
        "`bins` must be an integer of at most 100000",
    ),
    "margin of a loop": (
        ["loss=[{name: sphereface, arguments: {margin: 1000000}}]"],
        "`margin` must be an integer of at most 100",
    ),
    "ranks beyond integers": (
        [f"loss=[{{name: recall_surrogate, arguments: {{k: [{10**30}]}}}}]"],
        "must be 1 to 100 integers",
    ),
    "name that is no text": (
        ["loss=[{name: triplet, arguments: {name: 3}}]"],
        "`--loss`: Argument `name` must be a string",
    ),
    "name of a loss of dots": (["loss.0.name=.a"], "cannot be imported"),
    "loss of other labels": (
        ["loss=[{name: keras.losses.CTC, takes: logits}]"],
        "`--loss`: Targets `y_true`",
    ),
    "loss without a formula": (
        ["loss=[{name: keras.losses.Loss, takes: logits}]"],
        "`--loss`: it is not implemented",
    ),
    "proxies of other lengths": (
        ["model.proxies.unit=false"],
        "`model.proxies`: `unit_proxies=False` needs",
    ),
    "memory of proxies": (
        [
            "loss.0.name=proxy_isa",
            "model.proxies.sample_aware={memory_size: 1000000000000}",
        ],
        "A memory of 1,000,000,000,000 embeddings takes [0-9,]+ GB",
    ),
    "optimizer": (["optimizer.head.arguments={x: 3}"], "`optimizer.head`"),
    "optimizer's number": (
        ["optimizer.head.arguments={beta_1: x}"],
        "`optimizer.head.arguments.beta_1`",
    ),
    "regularizer": (
        [
            "model.proxies.regularizer=center_distance",
            "model.proxies.regularizer_arguments={x: 3}",
        ],
        "regularizer",
    ),
    "positions": (["model.pooling=k_max", "model.k=1000000"], "`?k`?"),
    "classes of a batch": (
        ["sampling={kind: balanced, classes: 1000000, images: 1}"],
        "A batch needs 1000000 classes",
    ),
    "network": (["model.backbone=[1]"], "`model.backbone`"),
}
OPTIONS = {
    "--devices": ("cpu:99999", "`--devices` must be.*from 1 to 99"),
    "--seed": ("99999999999", "`--seed`.*less than"),
    "--epochs": ("100000000000000000000", "epochs"),
    "--minutes": ("inf", "`--minutes`"),
    "--peer-timeout": ("1e308", "`--peer-timeout` must be a number in"),
}
PLANS = {
    "seeds: [4294967296]": "`seeds.0`",
    "seeds: {1: 2}": "`--seeds` must be a list",
    "arms: [3]": "`arms.0`",
    "grid: {model.dim: 3}": "`grid.model.dim`",
    "grid: {1: [2]}": "`grid.1",
    "tuning: {space: {a: {low: 0, high: 1e30, step: 1e-30}}}": "at most",
    "tuning: {space: {a: {low: 0, high: .inf}}}": "`tuning.space.a.high`",
    "tuning: {space: {a: [1]}, trials: 100000000000000}": "`tuning.trials`",
    "dims: [2000000]": "`dims.0`",
    "budget: {epochs: 100000000000000000}": "`budget.epochs`",
    "protocol: {kind: cross_validation, folds: 100000}": "1000",
    "metrics: 3": "`metrics`",
    "cases: [{skip: true}]": "must have at least one run",
    f"seeds: [{', '.join(map(str, range(9000)))}, 1]": "name twice",
    f"grid: {{{', '.join(f'k{n}: [1, 2]' for n in range(40))}}}": "at most",
}
PLAN = "title: x\nsources: [digits]\nrecipes: [triplet]\n"
CLUSTERS = {
    "{": "it is not JSON",
    "[" * 50_000: "it is not JSON",
    "3": "not a JSON object",
    json.dumps(
        {
            "cluster": {"worker": ["a:99999", "b:1"]},
            "task": {"type": "worker", "index": 0},
        }
    ): "no list of host:port",
    json.dumps(
        {
            "cluster": {"worker": ["a:1", "b:1"]},
            "task": {"type": ["worker"], "index": 0},
        }
    ): "is not in `cluster`",
    json.dumps(
        {
            "cluster": {"worker": ["a:1", "b:1"]},
            "task": {"type": "worker", "index": "9" * 5000},
        }
    ): "must be in 0..1",
}


def of_settings():
    for setting, message in SETTINGS.items():
        yield Case(setting[:60], ("config", f"--set={setting}"), message)
    for name, (settings, message) in RUNS.items():
        words = [f"--set={setting}" for setting in settings]
        yield Case(f"fit: {name}", (*FIT, *words), message)
    name, ((setting,), message) = "bins of a loop", RUNS["bins of a loop"]
    words = ("config", "digits", f"--set={setting}")
    yield Case(f"config: {name}", words, message)
    long = "x" * 5000
    words = ("config", "digits", f"--backbone={long}")
    yield Case("a backbone of 5,000 letters", words, "`--backbone` is unknown")
    words = ("report", f"/{long}")
    yield Case("a path of 5,000 letters", words, "File name too long")
    for option, (value, message) in OPTIONS.items():
        words = (*FIT, "--strategy=mirrored", f"{option}={value}")
        yield Case(f"{option}={value}", words, message)


def of_files():
    """Each broken text as a recipe, as a run's settings and as a plan."""
    commands = {
        "recipe": ("config", "--recipe", "<file>"),
        "config": ("fit", "--config", "<file>", "--output", "<run>"),
        "diff": ("config", "--diff", "<file>", "<file>"),
        "plan": ("compare", "<file>", "--output", "<run>"),
    }
    texts = {
        **{text: re.escape(message) for text, message in BROKEN.items()},
        "1: 2": "Configuration key `1`: Keys should be strings",
        "- 1": "mine.yaml must hold a mapping of keys to values.*list",
        "": "mine.yaml must hold a mapping of keys to values.*NoneType",
    }
    for kind, words in commands.items():
        for number, (text, pattern) in enumerate(texts.items()):
            name = f"{kind} {number}: {text[:20]!r}"
            yield writing(name, words, text, pattern)
    for line, message in PLANS.items():
        yield writing(line[:60], commands["plan"], PLAN + line, message)


def writing(name, words, text, message):
    """A case of a file with this text."""

    def harm(place):
        content = text.encode("utf-8", "surrogatepass")
        (place / "mine.yaml").write_bytes(content)

    return Case(name, words, message, harm=harm)


@pytest.mark.parametrize("case", table([*of_settings(), *of_files()]))
def test_hostile_settings(case, capsys, monkeypatch, tmp_path):
    case.harm(tmp_path)
    run = tmp_path / "run"
    file = tmp_path / "mine.yaml"
    case.check(capsys, monkeypatch, file=file, run=run)
    assert not run.exists()


@pytest.mark.parametrize("text", CLUSTERS, ids=lambda text: text[-60:])
def test_hostile_clusters(text, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_CONFIG", text)
    case = Case("", (*FIT, "--strategy=multi_worker"), CLUSTERS[text])
    case.check(capsys, monkeypatch, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["config --recipe", "compare"])
def test_anchors_eat_neither_time_nor_memory(command, tmp_path):
    """In a process of its own: version 0.1 took minutes and gigabytes."""
    path = tmp_path / "mine.yaml"
    path.write_text(LAUGHS)
    words = (*command.split(), str(path))
    Case("", words, "more than 50,000 values", apart=True).check(None, None)
