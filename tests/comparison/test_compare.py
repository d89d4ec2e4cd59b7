"""Plans from the command line to the report, with real trainings."""

import csv
import dataclasses
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from keras_dml.comparison.compare import Comparison
from keras_dml.config.plans import load_plan
from keras_dml.run.folder import RunFolder
from tests.comparison.made_up import record, unfinished
from tests.forking import Server
from tests.images import image_folder
from tests.thorough import ALL
from tests.zygote import Forked

SMALL = ("--epochs", "2", "--steps-per-epoch", "6", "--no-report")
RECIPES = ("--recipes", "ln,triplet", "--protocol", "recipe")
MADE_UP = (*("--backbones", "small_cnn"), "--set", "sampling.batch_size=32")


@pytest.fixture(scope="module")
def paint(tmp_path_factory):
    """12 classes of 12 images; half of the classes train."""
    folder = tmp_path_factory.mktemp("images") / "paint"
    return image_folder(folder, classes=12, images=12, size=16, suffix=".png")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture
def compare(server, tmp_path):
    """Function of words after `keras-dml compare`: how the command ended."""

    def run(*words, code=0):
        outcome = server(tmp_path, ("compare", *words))
        assert outcome.code == code, outcome.end
        assert "Traceback" not in outcome.err
        return outcome

    return run


def rows(folder):
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def times(folder):
    return {
        path.parent.name: path.stat().st_mtime_ns
        for path in folder.glob("runs/*/metrics.json")
    }


@pytest.mark.slow
def test_killed_and_started_again(tmp_path, paint, compare):
    """A kill -9 in the middle: nothing is repeated, nothing is lost."""
    folder = tmp_path / "plan"
    arguments = (paint, *RECIPES, *MADE_UP, *SMALL, "--output", folder)
    with open(os.devnull, "w") as nothing:
        process = Forked("keras_dml", "compare", *arguments, stderr=nothing)
    second = folder / "runs" / "paint-small_cnn-256d-triplet-seed0"
    while not RunFolder(second).last_checkpoint.is_file():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = times(folder)
    assert list(finished) == ["paint-small_cnn-256d-ln-seed0"]
    # The training notices that its starter is gone, and saves itself.
    again = compare(*arguments, "--json")
    assert json.loads(again.out)["done"] == 2
    after = times(folder)
    assert len(after) == 2
    assert {name: after[name] for name in finished} == finished
    epochs = RunFolder(second).history.read_text().splitlines()
    assert len(epochs) == 3  # a header and every epoch once
    found = rows(folder)
    assert {row["status"] for row in found} == {"done"}
    assert len({row["run"] for row in found}) == 2
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "2 runs: 2 done." in report

    # Another plan does not write into it.
    other = compare(
        *(paint, *RECIPES[:-2], *MADE_UP, *SMALL, "--output", folder), code=2
    )
    assert "`--protocol` was recipe, received fixed_validation" in other.err


@pytest.mark.slow
def test_a_plan_with_mistakes_starts_nothing(tmp_path, compare):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "title: T\n"
        "sources: [digits, omniglott]\n"
        "recipes: [norm_softmax, tripplet]\n"
        "set: {model.dmi: 8}\n"
    )
    done = compare(plan, "--output", tmp_path / "out", code=2)
    assert "Nearest: 'triplet'" in done.err
    assert "`model.dmi`" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_failed_run_stops_no_other(tmp_path, paint, compare):
    folder = tmp_path / "plan"
    plan = tmp_path / "plan.yaml"
    # A rate this high gives losses that are not finite.
    plan.write_text(
        "title: T\n"
        f"sources: ['{paint}']\n"
        "backbones: [small_cnn]\n"
        "arms:\n"
        "  - {name: wild, recipe: softmax, set: {optimizer.head.name: sgd,"
        " optimizer.head.lr: 1e11, optimizer.head.schedule: constant,"
        " optimizer.proxies.name: sgd, optimizer.proxies.lr: 1e11}}\n"
        "  - {name: tame, recipe: ln}\n"
        "set: {sampling.batch_size: 32}\n"
        "protocol: {kind: recipe}\n"
        "budget: {epochs: 1, steps_per_epoch: 4}\n"
    )
    done = compare(plan, "--no-report", "--output", folder, code=1)
    assert "1 of 2 runs failed" in done.err
    states = {row["arm"]: row["status"] for row in rows(folder)}
    assert states == {"wild": "failed", "tame": "done"}
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "## Failed runs" in report


@pytest.mark.slow
def test_dry_run_writes_nothing(tmp_path, compare):
    folder = tmp_path / "plan"
    done = compare(
        *("digits", *RECIPES, *SMALL, "--output", folder),
        *("--dry-run", "--json"),
    )
    summary = json.loads(done.out)
    assert (summary["to_do"], summary["report"]) == (2, None)
    assert "2 runs: 0 done, 2 to do." in done.err
    assert not folder.exists()


@pytest.mark.slow
def test_some_arms_of_a_plan(tmp_path, compare):
    arguments = ("demo", "--no-estimate", "--dry-run", "--json")
    folder = ("--output", tmp_path / "plan")
    done = compare(*arguments, *folder, "--arms", "triplet,norm_softmax")
    assert json.loads(done.out)["to_do"] == 4
    wrong = compare(*arguments, *folder, "--arms", "tripplet", code=2)
    assert "you mean 'triplet'" in wrong.err


@pytest.mark.slow
def test_a_comparison_grows(tmp_path, compare):
    """A third recipe and a second seed: only their runs are trained."""
    folder = tmp_path / "plan"
    output = (*MADE_UP, *SMALL, "--output", folder)
    first = compare("digits", *RECIPES, *output, "--json")
    before = times(folder)
    assert len(before) == json.loads(first.out)["done"] == 2

    more = ("--recipes", "ln,triplet,bn", "--seeds", "0,1", *RECIPES[2:])
    second = compare("digits", *more, *output)
    after = times(folder)
    assert len(after) == 6
    assert {name: after[name] for name in before} == before
    trained = re.findall(r"\d of 6 done: ([^,]+),", second.err)
    assert sorted(trained) == sorted(after.keys() - before)
    assert "Added to" in second.err
    assert "`bn` and seed 1." in second.err
    assert "6 runs: 2 done, 4 to do." in second.err
    assert "likely" in second.err

    # The ranking, the differences, and where the page is.
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", second.out)
    tables, explained, words = second.out.partition("\n\nAn arm is ")
    *tables, conclusion = tables.splitlines()
    assert explained and max(map(len, tables)) <= 80
    assert conclusion.startswith(("ln ", "triplet ", "bn ")), conclusion
    assert " by MAP@R" in conclusion and "trained once" not in conclusion
    words, _, then = words.partition("\nNext:\n")
    *_, words, _, text, networks, names = words.splitlines()
    assert words.startswith("The gap is an arm's value minus that of the lead")
    assert "With other seeds or test classes the gap would lie" in words
    assert "R@1" in second.out and " ± " in second.out
    assert "After ± stands" in second.out
    assert "interval: seeds" in second.out and "interval: classes" in second.out
    assert text == f"Report as text: {folder / 'report.md'}"
    assert networks == f"Run folders: {folder / 'runs'}"
    assert "named by images, network" in names
    assert f"\n    {folder / 'page.html'}\n" in then
    lines = then.replace(" \\\n", " ").splitlines()
    best = next(line for line in lines if "dml search" in line)
    assert best.split()[2] in map(str, (folder / "runs").iterdir())
    assert (folder / "page.html").is_file()

    # The folder alone says the rest; a dry run trains nothing.
    started = time.perf_counter()
    third = compare(folder, "--seeds", "0,1,2", "--dry-run", "--json")
    assert json.loads(third.out)["to_do"] == 3
    assert "from this comparison" in third.err
    # 10 s on two cores that do nothing else.
    assert time.perf_counter() - started < 30
    assert times(folder) == after


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not ALL, reason="It trains eight runs for minutes.")
def test_small_tournament(test_data, tmp_path, compare):
    """Four recipes with two seeds on unseen characters."""
    folder = tmp_path / "plan"
    arms = load_plan("omniglot_small").recipes
    compare(
        *("omniglot_small", "--arms", ",".join(arms)),
        *("--data-dir", test_data, "--output", folder, "--processes", 2),
    )
    found = rows(folder)
    assert {row["status"] for row in found} == {"done"}
    assert len({row["run"] for row in found}) == len(arms) * 2
    assert {row["oracle"] for row in found} == {"False"}
    gains = [
        float(row["value"]) - float(row["before"])
        for row in found
        if row["metric"] == "recall@1"
    ]
    assert min(gains) > 0.05
    report = (folder / "report.md").read_text(encoding="utf-8")
    for part in ("## Results", "## Ranks", "## Findings", "## Figures"):
        assert part in report
    assert (folder / "figures" / "critical-difference-map-r.png").is_file()


def test_a_comparison_prints_its_ranking():
    records = [record("ln", seed, 0.5 + seed / 10) for seed in range(2)]
    records += [record("bn", value=0.75), unfinished("bn", 1, "to do")]
    text = repr(Comparison(Path("runs/plan"), records)).splitlines()
    assert "4 runs: 3 done, 1 to do" in text[0]
    assert [line.split()[:2] for line in text[2:]] == [
        ["bn", "0.7500"],
        ["ln", "0.5500"],
    ]
    assert "<td>bn</td>" in Comparison(Path("p"), records)._repr_html_()


@pytest.mark.parametrize(
    ("seeds", "further"),
    [((0,), [0, 1, 2]), ((4, 5, 6), [0, 1, 2, 4, 5, 6])],
)
def test_seeds_that_would_tell_more(seeds, further):
    equal = [record(arm, seed) for arm in ("ln", "bn") for seed in seeds]
    assert Comparison(Path("plan"), equal).further_seeds() == further


def test_what_is_settled_or_alone_needs_no_more_seeds():
    settled = [
        record(arm, seed, value + seed / 100)
        for arm, value in (("ln", 0.5), ("bn", 0.1))
        for seed in range(3)
    ]
    assert Comparison(Path("plan"), settled).further_seeds() == []
    assert Comparison(Path("plan"), settled[:3]).further_seeds() == []


def test_the_best_arm_has_a_run_to_search_with():
    runs = [record("ln", 0, 0.5), record("bn", 0, 0.6), record("bn", 1, 0.7)]
    compared = [
        dataclasses.replace(one, folder=Path(f"runs/{one.arm}-{one.seed}"))
        for one in runs
    ]
    assert Comparison(Path("plan"), compared).best == Path("runs/bn-0")
    other = dataclasses.replace(compared[0], source="elsewhere")
    assert Comparison(Path("plan"), [*compared, other]).best is None
    assert Comparison(Path("plan"), [unfinished("ln", 0, "to do")]).best is None
    # Concatenated folds are no run, and no other experiment.
    joined = dataclasses.replace(compared[0], run="joined", concatenated=2)
    both = Comparison(Path("plan"), [*compared, joined])
    assert both.best == Path("runs/bn-0")
    assert both.count("done") == len(compared)


def test_folds_of_one_seed_do_not_settle_what_other_seeds_would():
    folds = [
        record(arm, 0, value + fold / 100, fold=fold)
        for arm, value in (("ln", 0.5), ("bn", 0.1))
        for fold in range(4)
    ]
    assert Comparison(Path("plan"), folds).further_seeds() == [0, 1, 2]
