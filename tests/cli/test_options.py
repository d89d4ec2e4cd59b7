"""Options are parameters of the library: names, types, helps, defaults."""

import importlib
import inspect
import typing
from pathlib import Path

import pytest
import typer

from keras_dml.cli.app import app
from keras_dml.cli.options import options_of
from keras_dml.cli.parsing import OTHER_NAMES
from keras_dml.cli.signatures import read_parameters
from keras_dml.errors import UsageError
from tests.cli.refusals import refused

COMMANDS = typer.main.get_command(app).commands
SOURCES = [
    "keras_dml.api:fit",
    "keras_dml.fit_options:TrainingOptions",
    "keras_dml.fit_options:FitOptions",
    "keras_dml.comparison.compare:compare",
    "keras_dml.comparison.plans:PlanOptions",
    "keras_dml.data.prepare:prepare",
    "keras_dml.embed.local:embed_source",
    "keras_dml.export.options:ExportOptions",
    "keras_dml.export.runs:export_run",
    "keras_dml.models.conversion.convert:convert_weights",
    "keras_dml.report.page:write_report",
    "keras_dml.run.evaluate:evaluate_run",
    "keras_dml.search.search:search_run",
]


@pytest.mark.parametrize("source", SOURCES)
def test_the_source_says_what_the_signature_says(source):
    module, name = source.split(":")
    known = getattr(importlib.import_module(module), name)
    read = {one.name: one for one in read_parameters(source)}
    if typing.is_typeddict(known):
        inherited = {
            one.name
            for other in SOURCES
            if other.startswith(f"{module}:") and other != source
            for one in read_parameters(other)
        }
        assert set(read) == set(known.__annotations__) - inherited
        return
    true = inspect.signature(known).parameters
    assert [*read] == [n for n, p in true.items() if p.kind != p.VAR_KEYWORD]
    for name, parameter in read.items():
        assert parameter.required == (true[name].default is inspect._empty)
        if isinstance(true[name].default, bool | int | str):
            shown = parameter.default.split(", ")[0]
            assert shown.replace(",", "") == str(true[name].default), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_short_help(name):
    for parameter in COMMANDS[name].params:
        assert parameter.help.endswith((".", "...`", "?")), parameter.name
        assert "Python" not in parameter.help
        assert len(parameter.help) < 200, parameter.name


@pytest.mark.parametrize(
    ("name", "option", "part"),
    [
        ("compare", "plan", "with `--recipes` a source of data"),
        ("compare", "dry_run", "but what `--measure` finds"),
        ("fit", "seed", "0, or that of a run that is trained again"),
        ("convert-weights", "force", "replace `--output`"),
        # These are values, one of them with the name of an option.
        ("fit", "freeze", "`weights` for the same"),
        ("compare", "protocol", "`recipe`, `oracle`"),
    ],
)
def test_a_help_names_options_and_marks_values(name, option, part):
    (found,) = (one for one in COMMANDS[name].params if one.name == option)
    shown = found.show_default
    assert part in f"{found.help} {shown}"
    assert '"' not in found.help and "`" not in str(shown)


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("fit", "source", ("source",)),
        ("compare", "source", ("--source",)),
        ("fit", "data_dir", ("--data-dir",)),
        ("fit", "resume", ("--resume",)),
        ("fit", "report", ("--report", "--no-report")),
        ("fit", "settings", ("--set",)),
        ("export", "references", ("--with-references",)),
        ("embed", "file_format", ("--format",)),
        ("compare", "plan", ("plan",)),
    ],
)
def test_names_and_flags_of_options(command, name, expected):
    (option,) = (one for one in COMMANDS[command].params if one.name == name)
    assert (*option.opts, *option.secondary_opts) == expected


def test_only_what_is_given_is_passed_on():
    given = {}

    @options_of("keras_dml.run.evaluate:evaluate_run")
    def command(*, as_json: bool = False, **options):
        given.update(options, as_json=as_json)

    command(k="1, 4", index=None, as_json=True)
    assert given == {"k": [1, 4], "as_json": True}


@pytest.mark.parametrize(
    ("words", "target", "expected"),
    [
        ("fit digits --teacher runs/a", "api.fit", {"teacher": "runs/a"}),
        ("fit digits --embed-batch 8", "api.fit", {"embed_batch": 8}),
        ("fit digits --matryoshka 8,16", "api.fit", {"matryoshka": [8, 16]}),
        (
            "fit digits --train-classes a.txt",
            "api.fit",
            {"train_classes": "a.txt"},
        ),
        (
            "export runs/a --dynamic-batch",
            "export.export_run",
            {"dynamic_batch": True},
        ),
        (
            "compare demo --dims 8,16 --measure",
            "comparison.compare.compare",
            {"dims": [8, 16], "measure": True},
        ),
    ],
)
def test_options_reach_the_library(
    words, target, expected, command, monkeypatch
):
    given = {}

    def record(*arguments, **options):
        given.update(options)
        raise UsageError("recorded")

    place, _, name = target.rpartition(".")
    module = importlib.import_module(f"keras_dml.{place}")
    monkeypatch.setattr(module, name, record)
    refused(command(*words.split()), "recorded")
    for name, value in expected.items():
        found = given[name]
        assert (str(found) if isinstance(found, Path) else found) == value


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["compare", "demo", "--seeds", "0;1"], "`--seeds` must be whole"),
        (["compare", "demo", "--dims", ""], "`--dims` must be whole"),
        (["compare", "demo", "--processes", "0"], "`--processes` must be"),
        (["compare", "demo", "--set", "model.dim"], "must be `key=value`"),
        (["evaluate", "--embeddings", "x.npz", "--k", "a"], "such as 1,2,4"),
        (["search", "absent", "x.png", "--k", "0"], "`--k` must be a pos"),
        (
            ["embed", "absent", "x", "--output", "y", "--shard-size", "0"],
            "`--shard-size` must be a positive",
        ),
        (
            ["embed", "absent", "x", "--output", "y", "--batch-size", "-1"],
            "`--batch-size` must be a positive",
        ),
        (["export", "absent", "--max-pixels", "0"], "`--max-pixels` must be"),
        (["export", "absent", "--max-drop", "-1"], "`--max-drop` must be"),
        (["fit", "digits", "--peer-timeout", "0"], "`--peer-timeout` must"),
        (["fit", "digits", "--seed", "-1"], "`--seed`"),
        # The names are those of the command, and of its settings.
        (["compare", "digits", "--recipes", "lm"], "`--recipes` must be"),
        (
            ["compare", "digits", "--recipes", "ln", "--backbones", "resnet"],
            "`--backbones` is unknown",
        ),
        (["fit", "digits", "--set", "lr=3"], "`optimizer.backbone.lr`"),
        (["fit", "digits", "--set", "epoch=3"], "key `epoch`"),
    ],
)
def test_the_library_refuses_what_is_out_of_range(
    command, arguments, part, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    refused(command(*arguments), part)
    assert not list(tmp_path.iterdir())


def test_other_names_are_of_options_and_of_one_in_each_command():
    options = {
        name: {word for one in command.params for word in one.opts}
        for name, command in COMMANDS.items()
    }
    assert OTHER_NAMES.keys() <= set().union(*options.values())
    for known in options.values():
        others = [
            word
            for option, words in OTHER_NAMES.items()
            if option in known
            for word in words.split()
        ]
        assert len(others) == len(set(others))
