"""What the commands print of results that are made up here."""

import dataclasses
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_dml.cli import commands, next_steps, printing, results
from keras_dml.comparison.comparison import Comparison
from keras_dml.export.exporting import ExportResult
from keras_dml.run.folder import RunFolder
from keras_dml.run.history import History
from tests.comparison.made_up import record


def row(artifact, **values):
    return {"artifact": artifact, "images": 264, "megabytes": 1.5, **values}


def printed(capsys, folder, **values):
    rows = [row("embedder", **values), row("saved_model", **values)]
    results.print_artifacts(ExportResult(rows, Path(folder)), {"run": "run"})
    return capsys.readouterr().out


def test_a_path_is_never_cut_over_two_lines(capsys, monkeypatch):
    monkeypatch.setattr(printing.output, "_force_terminal", True)
    monkeypatch.setattr(printing.output, "_width", 80)
    folder = f"/{'a folder/' * 20}phone"
    assert f"\n  {folder}/saved_model\n" in printed(capsys, folder)


def test_an_export_names_the_files_that_clients_load(capsys, tmp_path):
    (tmp_path / "litert").mkdir()
    (tmp_path / "litert" / "embedder.tflite").touch()
    (tmp_path / "saved_model").mkdir()
    rows = [row("embedder"), row("saved_model"), row("litert")]
    result = ExportResult(rows, tmp_path)
    assert result.models == [
        tmp_path / "saved_model",
        tmp_path / "litert" / "embedder.tflite",
    ]
    results.print_artifacts(result, {"run": "run"})
    lines = capsys.readouterr().out.partition("\nNext:")[0].splitlines()
    assert lines[-3:-1] == [f"  {path}" for path in result.models]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("ann_recall@10", "share of the 10 nearest found"),
        ("ann_recall@1", "share of the nearest found"),
        ("index_recall@1", "R@1 by the index"),
        ("recall@1", "R@1"),
        ("mean_cosine", "likeness to trained, mean"),
    ],
)
def test_measures_are_put_into_words(capsys, key, words):
    text = printed(capsys, "phone", **{key: 0.5})
    assert f" {words} " in text
    assert "_recall" not in text


def test_an_export_says_how_many_of_the_test_images_it_compared(capsys):
    rows = [row("embedder"), row("litert")]
    results.print_artifacts(
        ExportResult(rows, Path("phone"), of=2139), {"run": "run"}
    )
    words = " ".join(capsys.readouterr().out.split())
    assert "Compared on 264 of 2,139 test images ┏" in words
    seen = ExportResult(rows, Path("phone"), of=2139, trained=True)
    results.print_artifacts(seen, {"run": "run"})
    words = " ".join(capsys.readouterr().out.split())
    assert "of 2,139 test images whose classes trained" in words


@pytest.mark.parametrize(
    ("found", "good", "smaller"),
    [(0.596, "as good as", False), (0.594, "worse than", True)],
)
def test_an_export_ends_with_a_verdict_and_what_to_do(
    capsys, found, good, smaller
):
    rows = [
        row("embedder", **{"map@r": 0.6}),
        row("litert-int8", **{"map@r": found}) | {"megabytes": 0.45},
    ]
    result = ExportResult(rows, Path("phone"))
    results.print_artifacts(result, {"run": "runs/shoes"})
    text = " ".join(capsys.readouterr().out.split())
    assert (
        f"litert-int8 is {good} the trained network: MAP@R {found} "
        "against 0.600, in 30 % of its size."
    ) in text
    command = (
        "keras-dml export runs/shoes --output phone-float16 --format litert "
        "\\ --quantize float16"
    )
    assert (command in text) == smaller
    assert ("Next:" in text) == smaller


def test_an_export_that_finds_fewer_nearest_images_is_worse(capsys):
    rows = [
        row("embedder", **{"map@r": 0.6, "recall@1": 0.858}),
        row("litert-int8", **{"map@r": 0.598, "recall@1": 0.842}),
    ]
    result = ExportResult(rows, Path("phone"))
    assert result.worse == ["litert-int8"]
    assert result.conclusions() == [
        "litert-int8 is worse than the trained network: R@1 0.842 against "
        "0.858."
    ]


def test_a_comparison_ends_with_what_to_do_next(capsys, monkeypatch):
    records = [
        dataclasses.replace(record(arm, 0, value), folder=Path("p/runs") / arm)
        for arm, value in (("ln", 0.5), ("bn", 0.6))
    ]
    words = ["compare", "my photos", "--seeds", "4", "--seeds=4", "--epochs=2"]
    monkeypatch.setattr(commands.sys, "argv", ["keras-dml", *words])
    again = commands._given_without("--seeds")
    results.print_comparison(
        Comparison(Path("p"), records, Path("p/report.md")), again
    )
    text = capsys.readouterr().out.partition("\nNext:\n")[2]
    assert "    p/page.html\n" in text
    commands_shown = [
        shlex.split(line) for line in text.splitlines() if "keras-dml" in line
    ]
    assert commands_shown == [
        ["keras-dml", "compare", "my photos", "--epochs=2", "--seeds", "0,1,2"],
        ["keras-dml", "search", "p/runs/bn", "PHOTO.jpg"],
        ["keras-dml", "export", "p/runs/bn"],
    ]


def finished(path, **values):
    """A run as far as it is printed."""
    known = {
        "folder": RunFolder(path),
        "metrics": {"partial": False, "seen": False},
        "config": SimpleNamespace(minutes=None),
        # The epochs of a refit repeat those before them.
        "history": History(["main/train"] * 20 + ["refit/train"] * 12),
        "rising": False,
        "gained": True,
        "kept": False,
        "trained": True,
        "final": None,
        "tested": lambda: "groceries",
        "rows": lambda: [{"metric": "MAP@R", "trained": 0.5}],
        "conclusion": list,
    }
    return SimpleNamespace(**{**known, **values})


def test_next_commands_fit_the_terminal_and_a_shell_takes_them(
    capsys, tmp_path
):
    path = tmp_path / "runs" / "photos of shoes-norm_softmax-0"
    path.mkdir(parents=True)
    (path / "report.html").touch()
    results.print_run(finished(path, rising=True))
    text = capsys.readouterr().out.partition("Next:\n")[2]
    assert f"    {path / 'report.html'}\n" in text
    said = text.replace(" \\\n", " ")
    commands = [
        shlex.split(line) for line in said.splitlines() if "keras-dml" in line
    ]
    again = ["keras-dml", "fit", "--config", str(path)]
    assert commands == [
        [*again, "--epochs", "40", "--output", f"{path}-longer"],
        ["keras-dml", "search", str(path), "PHOTO.jpg"],
        [*again, "--output", str(path), "--resume", "--final", "all"],
        [
            *("keras-dml", "export", str(path)),
            *("--format", "litert", "--quantize", "int8"),
        ],
    ]
    folder = str(path)
    for line in text.splitlines():
        assert len(line) <= 80 or folder in line


def test_a_long_command_keeps_its_flags_and_values_together():
    words = "keras-dml fit digits --epochs 400 --output a/long/folder/of/runs"
    flags = ["--no-export", "--no-report", "--resume"]
    lines = next_steps.command_line(*words.split(), *flags).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert " --output a/long/folder/of/runs" in lines[0]
    joined = "\n".join(lines).replace(" \\\n", " ")
    assert shlex.split(joined) == [*words.split(), *flags]


def test_what_was_trained_on_all_classes_is_shipped(capsys, tmp_path):
    final = finished(tmp_path / "final", metrics={"train_classes": 24})
    results.print_run(finished(tmp_path, final=final))
    words = capsys.readouterr().out.replace(" \\\n", " ").split()
    shipped = words[words.index("export") + 1]
    assert shipped == str(tmp_path / "final")


def test_a_kept_network_is_not_called_trained_on_all_classes(capsys, tmp_path):
    final = finished(tmp_path / "final", metrics={"train_classes": 24})
    results.print_run(finished(tmp_path, final=final, kept=True))
    text = capsys.readouterr().out
    assert "The pretrained network, for all 24 classes alike: " in text
    assert "Trained on all" not in text


@pytest.mark.parametrize(
    ("minutes", "rising", "longer"),
    [
        (None, False, ""),
        (None, True, "--epochs 40"),
        (10, True, "--minutes 20"),
    ],
)
def test_a_training_that_still_rose_may_go_on_longer(
    capsys, tmp_path, minutes, rising, longer
):
    settings = SimpleNamespace(minutes=minutes)
    results.print_run(finished(tmp_path, config=settings, rising=rising))
    text = capsys.readouterr().out
    assert ("twice as long, as validation still rose" in text) == rising
    assert longer in text


def test_no_longer_training_is_proposed_where_stages_have_no_one_length(
    capsys, tmp_path
):
    stages = History(["search/warm_up"] * 2 + ["search/train"] * 9)
    results.print_run(finished(tmp_path, rising=True, history=stages))
    text = capsys.readouterr().out
    assert "twice as long" not in text and "--epochs" not in text


def test_a_gain_that_may_be_chance_asks_for_a_longer_training(capsys, tmp_path):
    results.print_run(finished(tmp_path, gained=False))
    text = capsys.readouterr().out
    assert "train again, twice as long, as no gain is sure so far" in text
    assert "--epochs 40" in text and "still rose" not in text
    assert "--final" not in text


def test_who_gained_nothing_from_scratch_is_told_how_to_start_elsewhere(
    capsys, tmp_path
):
    settings = SimpleNamespace(
        minutes=None, data=SimpleNamespace(source="photos", data_dir="/sets")
    )
    rows = [{"metric": "MAP@R", "raw pixels": 0.4, "trained": 0.4}]
    run = finished(tmp_path, config=settings, gained=False, rows=lambda: rows)
    results.print_run(run)
    words = capsys.readouterr().out.replace(" \\\n", " ").split()
    start = "keras-dml fit photos --data-dir /sets --backbone mobilenet_v2"
    assert start in " ".join(words)


def test_a_kept_network_is_not_trained_on_all_classes(capsys, tmp_path):
    results.print_run(finished(tmp_path, kept=True))
    assert "--final" not in capsys.readouterr().out
    results.print_run(finished(tmp_path))
    assert "--final" in capsys.readouterr().out


def test_raw_pixels_are_explained_where_they_are_compared_with(
    capsys, tmp_path
):
    rows = [{"metric": "MAP@R", "raw pixels": 0.2, "trained": 0.5}]
    results.print_run(finished(tmp_path, rows=lambda: rows))
    assert "Raw pixels: the photos themselves" in capsys.readouterr().out
    results.print_run(finished(tmp_path))
    assert "Raw pixels" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("has_threshold", "metric", "said"),
    [
        (True, "cosine", "distance, 1 minus the cosine similarity, two images"),
        (True, "euclidean", "up to which distance, the Euclidean one, two"),
        (False, "cosine", "go in and what comes out. Embed the images"),
    ],
)
def test_an_export_promises_what_its_manifest_has(
    capsys, has_threshold, metric, said
):
    rows = [row("embedder"), row("saved_model")]
    result = ExportResult(
        rows, Path("export"), has_threshold=has_threshold, metric=metric
    )
    results.print_artifacts(result, {"run": "run"})
    out = " ".join(capsys.readouterr().out.split())
    assert said in out
    nearest = "smallest Euclidean distance"
    assert (nearest in out) is (metric == "euclidean")


def test_ctrl_c_in_embed_says_how_to_go_on(monkeypatch, capsys):
    def stopped(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_dml.embed.local.embed_source", stopped)
    words = ["embed", "runs/shoes", "photos", "--output", "vectors"]
    monkeypatch.setattr(sys, "argv", ["keras-dml", *words])
    with pytest.raises(KeyboardInterrupt):
        commands.embed(run="runs/shoes", source="photos", output="vectors")
    said = capsys.readouterr().err
    assert f"keras-dml {' '.join(words)} --resume" in said
