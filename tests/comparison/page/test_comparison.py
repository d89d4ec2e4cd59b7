import csv
import re

import numpy as np
import pytest
from PIL import Image

from keras_dml.comparison.page.comparison import write_comparison
from keras_dml.config.plan_sections import BudgetConfig, PlanConfig
from tests.comparison.made_up import record, unfinished, write_queries
from tests.comparison.page.test_tables import printed
from tests.comparison.test_findings import claim

VALUES = {"softmax": 0.50, "bn": 0.55, "proxy_anchor": 0.60, "triplet": 0.40}
FINDINGS = [
    claim(["proxy_anchor"], ["triplet"], "Proxy-Anchor beats triplet"),
    claim(["bn"], ["ln"], "BN improves on LN"),
]


def runs(folder, folds=(None,)):
    """Four arms, two networks, two sizes; one run failed and one is left."""
    records = []
    for place, backbone in enumerate(("small_cnn", "resnet50")):
        for dim in (64, 128):
            for arm, value in VALUES.items():
                for seed in range(3):
                    for fold in folds:
                        name = f"{backbone}-{arm}-{dim}-{seed}-{fold}"
                        generator = np.random.default_rng([place, dim, seed])
                        values = value + 0.1 * generator.random(24) + place / 9
                        records.append(
                            record(
                                arm,
                                seed,
                                float(values.mean()),
                                run=name,
                                dim=dim,
                                backbone=backbone,
                                fold=fold,
                                folder=write_queries(folder / name, values),
                                pretrained={"map@r": 0.1, "recall@1": 0.2},
                                train_seconds=60.0,
                            )
                        )
    records += [
        unfinished("ln", 0, "failed", error="RunError: loss | is NaN"),
        unfinished("ln", 1, "to do"),
    ]
    return records


def plan(**settings):
    """A plan of the sections that the page reads."""
    return PlanConfig.model_construct(**{"title": "T", **settings})


def write_all(records, folder):
    tournament = plan(
        title="A tournament",
        about="Losses against each other.",
        findings=FINDINGS,
        metrics=["recall@1", "map@r", "recall@9"],
        paper_values=[printed("proxy_anchor")],
        budget=BudgetConfig(epochs=60, steps_per_epoch=100),
    )
    return write_comparison(tournament, records, folder)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    records = runs(folder / "runs")
    return records, write_all(records, folder / "first")


@pytest.mark.slow
def test_the_page_says_what_was_run(written):
    text = written[1].read_text(encoding="utf-8")
    assert text.startswith("# A tournament\n\nLosses against each other.\n\n")
    assert "50 runs: 48 done, 1 to do, 1 failed. 5 arms on omniglot" in text
    assert "small_cnn and resnet50, embedding size 64 and 128, seeds" in text
    assert "Training took 48 min, 1 min in the median run." in text
    assert "\nProtocol: fixed validation: 10 % of the classes" in text
    assert "\n\nBudget: 60 epochs, 100 steps an epoch for every run.\n" in text
    assert "No run measured `recall@9`." in text
    assert "nan" not in re.sub("NaN", "", text)


def test_the_page_has_all_its_parts(written):
    text = written[1].read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == [
        "Verdict",
        "Results",
        "Behind the best",
        "Ranks",
        "Findings",
        "Figures",
        "Runs",
        "Failed runs",
    ]
    assert "| ln | 0 (1 to do, 1 failed) |" in re.sub(
        r"\| ln +\|.*\| (\S+ \(.*\)) \|", r"| ln | \1 |", text
    )
    assert "Not ranked, sharing too few experiments: `ln`." in text
    assert "RunError: loss \\| is NaN" in text
    assert "72.25" in text


def test_findings_have_verdicts(written):
    text = written[1].read_text(encoding="utf-8")
    found = re.findall(r"^- (Proxy-Anchor.*): (\S+)$", text, re.MULTILINE)
    assert len(found) == 4
    for sentence, verdict in found:
        assert verdict == "confirmed"
        assert "+0.200 MAP@R, seeds +0.200 to +0.200, classes +" in sentence
    assert text.count("BN improves on LN (omniglot, small_cnn") == 2
    assert (
        "embeddings of 64 numbers): not measured (`ln` failed in 1 run)" in text
    )


def test_every_file_that_is_named_is_there(written):
    page = written[1]
    links = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert len(links) == len(set(links)) > 10
    for link in links:
        assert (page.parent / link).stat().st_size > 0
    for path in page.parent.rglob("*.png"):
        with Image.open(path) as image:
            assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
    pictures = sorted(path.name for path in page.parent.rglob("*.svg"))
    assert pictures == [
        "critical-difference-map-r.svg",
        "map-r-by-embedding-size.svg",
        "map-r-of-each-arm.svg",
    ]


def test_the_html_page_shows_the_same_and_needs_no_other_file(written):
    page = written[1].with_name("page.html")
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^<h2 id=.*>(.*)</h2>$", text, re.MULTILINE)
    markdown = written[1].read_text(encoding="utf-8")
    assert heads == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert text.count("data:image/svg+xml;base64,") == 3
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert "<code>ln</code>" in text
    assert "RunError: loss | is NaN" in text
    assert "nan" not in re.sub('NaN|base64,[^"]*', "", text)


def test_runs_lead_to_their_pages(tmp_path):
    folder = tmp_path / "runs" / "a & b"
    folder.mkdir(parents=True)
    (folder / "report.html").touch()
    records = [record("a", run="a & b", folder=folder), record("b", run="c")]
    page = write_comparison(plan(), records, tmp_path)
    text = page.with_name("page.html").read_text(encoding="utf-8")
    assert re.findall(r'<a href="(runs[^"]*)">([^<]*)<', text) == [
        ("runs/a &amp; b/report.html", "a &amp; b")
    ]


def test_tables_of_two_metrics_fit_a_terminal(tmp_path):
    long = "proxynca_pp_no_scale"
    records = [
        record(arm, seed, 0.5 + seed / 100)
        for arm in (long, "ln")
        for seed in range(3)
    ]
    page = write_comparison(plan(), records, tmp_path)
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) > 10
    assert max(map(len, rows)) <= 80


def test_networks_have_tables_of_their_own(written):
    tables = written[1].parent / "tables"
    names = sorted(path.name for path in tables.glob("results*.csv"))
    assert names == [
        "results-omniglot-resnet50-none.csv",
        "results-omniglot-small-cnn-none.csv",
    ]
    for name in names:
        with open(tables / name, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        best = max(
            (row for row in rows if row["dim"] == "64"),
            key=lambda row: float(row["MAP@R mean"] or 0),
        )
        assert best["arm"] == "proxy_anchor"
        assert best["done"] == "3"


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(written, tmp_path):
    records, page = written
    again = write_all(records, tmp_path)
    files = sorted(
        path.relative_to(page.parent)
        for path in page.parent.rglob("*")
        if path.is_file()
    )
    assert len(files) > 15
    for name in files:
        first, second = page.parent / name, again.parent / name
        assert first.read_bytes() == second.read_bytes(), name


def test_nothing_done_is_still_a_page(tmp_path):
    records = [unfinished("a", 0, "failed"), unfinished("b", 0, "to do")]
    page = write_comparison(plan(findings=FINDINGS), records, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "2 runs: 0 done, 1 to do, 1 failed." in text
    assert "Not ranked: no two arms finished the same experiment." in text
    assert "not measured (`proxy_anchor` is not among the runs" in text
    assert "## Figures" not in text
    assert "no message" in text


def test_usual_metrics_stand_where_none_are_named(tmp_path):
    records = [record(arm, after={"recall@1": 0.5, "nmi": 0.4}) for arm in "ab"]
    page = write_comparison(plan(), records, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert re.search(r"\| arm +\| +R@1 \| runs \|", text)
    assert "Ranks by R@1 in 1 seed" in text
    records = [record(arm, after={"nmi": 0.4}) for arm in "ab"]
    page = write_comparison(plan(), records, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert re.search(r"\| arm +\| +NMI \| runs \|", text)


def test_swept_settings_and_folds_have_their_figures(tmp_path):
    records = [
        record(
            f"a, scale {scale}",
            value=0.5 + scale / 100 + fold / 1000,
            line="a",
            factors={"loss.scale": scale},
            fold=fold,
        )
        for scale in (1, 9, 30)
        for fold in range(3)
    ]
    page = write_comparison(plan(metrics=["map@r"]), records, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "figures/map-r-by-loss-scale.svg" in text
    assert "of-each-arm" not in text
    assert "Ranks by MAP@R in 3 folds" in text
    assert "over 3 folds of one seed" in text
    assert "seed 0, 3 folds." in text


def test_a_full_disk_leaves_the_earlier_page(tmp_path, monkeypatch):
    records = [record("a"), record("b")]
    page = write_comparison(plan(metrics=["map@r"]), records, tmp_path)
    before = page.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_dml.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_comparison(plan(metrics=["map@r"]), records[:1], tmp_path)
    assert page.read_bytes() == before
    assert not list(tmp_path.rglob("*partial*"))
