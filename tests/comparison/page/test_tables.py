import csv
import dataclasses
import io
import re

import pytest

from keras_dml.comparison.findings import check_findings
from keras_dml.comparison.jobs import Tuned
from keras_dml.comparison.page.results import results_tables
from keras_dml.comparison.page.table_formats import (
    Cell,
    Column,
    Table,
    escape_latex,
    to_csv,
    to_latex,
    to_markdown,
)
from keras_dml.comparison.page.tables import (
    findings_table,
    ranks_table,
    settings_table,
)
from keras_dml.comparison.ranks import rank_arms
from keras_dml.comparison.summary import summarize
from keras_dml.config.plan_sections import PaperTable
from keras_dml.tuning.trials import Trial, TuningResult
from tests.comparison.made_up import record, unfinished
from tests.comparison.test_findings import MAX, pair_runs

METRICS = ["recall@1", "map@r"]


def printed(arm="softmax", metric="recall@1", value=72.25, **changes):
    place = {
        "where": "A paper, Table 1, in percent.",
        "source": "CUB200-2011",
    }
    return PaperTable(values={arm: {metric: value}}, **(place | changes))


def cell(table, row, title):
    titles = [column.title for column in table.columns]
    (found,) = [each for each in table.rows if each[0].text == row]
    return found[titles.index(title)]


def three_seeds(arm, mean, **changes):
    return [
        record(arm, seed, mean + shift, **changes)
        for seed, shift in enumerate((-0.01, 0.0, 0.01))
    ]


def test_cells_hold_mean_and_deviation():
    records = three_seeds("softmax", 0.6) + three_seeds("bn", 0.5)
    (table,) = results_tables(records, METRICS)
    best = cell(table, "softmax", "R@1")
    assert (best.text, best.bold) == ("0.600 ± 0.010", True)
    expected = summarize([0.59, 0.6, 0.61])
    assert [float(number) for number in best.numbers] == pytest.approx(
        [expected.mean, expected.std, expected.low, expected.high], rel=1e-5
    )
    other = cell(table, "bn", "MAP@R")
    assert (other.text, other.bold) == ("0.500 ± 0.010", False)
    assert "sample standard deviation (n - 1 in" in table.caption
    assert "over 3 seeds" in table.caption


def test_networks_never_share_a_table():
    records = [
        record(value=0.1),
        record(value=0.2, backbone="resnet50"),
        record(value=0.3, backbone="resnet50", weights="imagenet"),
        record(value=0.4, source="/somewhere/grocery"),
        record(value=0.5, source="/elsewhere/grocery"),
    ]
    tables = results_tables(records, METRICS)
    found = [cell(table, "softmax", "R@1").text for table in tables]
    assert found == ["0.100", "0.200", "0.300", "0.400", "0.500"]
    names = [table.name for table in tables]
    assert len(set(names)) == 5
    assert "weights `imagenet`" in tables[2].caption
    assert "small_cnn, from scratch" in tables[0].caption
    assert not any("somewhere" in table.caption for table in tables)


def test_sizes_are_rows_with_a_best_each():
    records = [
        record("a", value=0.5, dim=128),
        record("b", value=0.6, dim=128),
        record("a", value=0.4),
        record("b", value=0.3),
    ]
    (table,) = results_tables(records, ["map@r"])
    rows = [[each.text for each in row[:3]] for row in table.rows]
    assert rows == [
        ["a", "64", "0.400"],
        ["b", "64", "0.300"],
        ["a", "128", "0.500"],
        ["b", "128", "0.600"],
    ]
    assert [row[2].bold for row in table.rows] == [True, False, False, True]
    assert "embedding sizes 64 and 128" in table.caption
    assert "nothing is known of the spread" in table.caption


def test_runs_are_counted_by_state():
    records = [
        *three_seeds("a", 0.5),
        record("b", 0),
        unfinished("b", 1, "failed"),
        unfinished("b", 2, "to do"),
        unfinished("c", 0, "failed"),
    ]
    (table,) = results_tables(records, METRICS)
    assert cell(table, "a", "runs").text == "3"
    assert cell(table, "b", "runs").text == "1 (1 to do, 1 failed)"
    assert cell(table, "c", "runs").text == "0 (1 failed)"
    assert cell(table, "c", "R@1").text == "-"
    assert cell(table, "b", "R@1").text == "0.500"


def test_folds_are_said():
    seeds = [
        record(seed=s, fold=f, value=0.5 + s / 9 + f / 99)
        for s in range(2)
        for f in range(4)
    ]
    (table,) = results_tables(seeds, METRICS)
    assert "over 2 seeds, each the mean of its 4 folds" in table.caption
    (table,) = results_tables(seeds[:4], METRICS)
    assert "over 4 folds of one seed" in table.caption
    assert "Seed 0, 4 folds." in table.caption
    together = record(dim=256, value=0.9, concatenated=4)
    _, table = results_tables([*seeds, together], METRICS)
    assert "4 folds concatenated" in table.caption


@pytest.mark.parametrize("mixed", [False, True])
def test_results_chosen_on_the_test_are_oracle(mixed):
    records = [record("a", oracle=True), record("b", oracle=not mixed)]
    (table,) = results_tables(records, METRICS)
    first = table.rows[0][0].text
    if mixed:
        assert first == "a (oracle)"
        assert "Rows marked oracle: the epoch was" in table.caption
    else:
        assert first == "a"
        assert "All results are oracle" in table.caption
    (table,) = results_tables([record()], METRICS, protocol="as said.")
    assert "oracle" not in table.caption
    assert "Protocol: as said. " in table.caption


@pytest.mark.parametrize(
    "weights, name",
    [("none", "(raw pixels)"), ("imagenet", "(pretrained features)")],
)
def test_features_before_training_are_the_first_row(weights, name):
    first = {"recall@1": 0.25}
    records = three_seeds("a", 0.5, pretrained=first, weights=weights)
    (table,) = results_tables(records, METRICS)
    assert table.rows[0][0].text == name
    assert cell(table, name, "R@1").text == "0.250"
    assert cell(table, name, "MAP@R").text == "-"
    assert not any(each.bold for each in table.rows[0])


def test_features_that_differ_have_a_row_each_beside_what_is_printed():
    def arm(name, value):
        first = {"recall@1": value}
        return three_seeds(name, 0.5, pretrained=first, weights="imagenet")

    records = arm("avg", 0.25) + arm("max", 0.4) + arm("other max", 0.4)
    records += [unfinished("failed", 0, "failed", weights="imagenet")]
    tables = [printed("avg", pretrained={"other max": {"recall@1": 0.53}})]
    (table,) = results_tables(records, METRICS, paper_values=tables)
    rows = [[cell.text for cell in row[:3]] for row in table.rows[:3]]
    assert rows == [
        ["(pretrained features of avg)", "0.250", "-"],
        ["(pretrained features of max and other max)", "0.400", "0.53"],
        ["avg", "0.500 ± 0.010", "72.25"],
    ]


def test_folds_alone_do_not_part_features():
    """Each fold has features of its own; both arms have the same."""
    records = [
        record(arm, fold=fold, pretrained={"recall@1": 0.2 + fold / 10})
        for arm, folds in (("a", (0, 1)), ("b", (1, 2)))
        for fold in folds
    ]
    (table,) = results_tables(records, METRICS)
    assert table.rows[0][0].text == "(raw pixels)"
    assert cell(table, "(raw pixels)", "R@1").text == "0.300"


def test_a_number_of_a_row_is_printed_before_one_of_its_arm():
    """Which of them won depended on the hashes of their names."""
    runs = three_seeds("ln, scale 4", 0.6, line="ln")
    tables = [printed("ln", value=60.0)]
    tables[0].values["ln, scale 4"] = {"recall@1": 70.0}
    (table,) = results_tables(runs, METRICS, paper_values=tables)
    assert cell(table, "ln, scale 4", "R@1, paper").text == "70"


def test_printed_numbers_have_columns_of_their_own():
    records = three_seeds("softmax", 0.6) + three_seeds("bn", 0.5)
    tables = [
        printed(),
        printed(arm="unknown"),
        printed(metric="recall@8"),
    ]
    (table,) = results_tables(records, METRICS, paper_values=tables)
    titles = [column.title for column in table.columns]
    assert titles == ["arm", "R@1", "R@1, paper", "MAP@R", "runs"]
    assert cell(table, "softmax", "R@1, paper").text == "72.25"
    assert cell(table, "bn", "R@1, paper").text == "-"
    assert not cell(table, "softmax", "R@1, paper").bold
    assert (
        "Paper: A paper, Table 1, in percent (CUB200-2011); as printed "
        "there, not measured here." in table.caption
    )


def test_printed_numbers_of_two_places_do_not_mix():
    tables = [printed(), printed(value=60.0, where="Another")]
    (table,) = results_tables([record()], METRICS, paper_values=tables)
    assert cell(table, "softmax", "R@1, paper 1").text == "72.25"
    assert cell(table, "softmax", "R@1, paper 2").text == "60"
    assert "Columns of papers: 1 A paper, Table 1" in table.caption
    assert "; 2 Another (CUB200-2011); as printed" in table.caption


def test_printed_numbers_stand_beside_their_own_network_and_size():
    records = [record(dim=64), record(dim=128)]
    tables = [
        printed(dim=64),
        printed(value=60.0, dim=128),
        printed(value=50.0, where="Another", backbone="resnet50"),
    ]
    (table,) = results_tables(records, METRICS, paper_values=tables)
    titles = [column.title for column in table.columns]
    assert titles[:4] == ["arm", "dim", "R@1", "R@1, paper"]
    found = {row[1].text: row[3].text for row in table.rows}
    assert found == {"64": "72.25", "128": "60"}
    assert "Another" not in table.caption


def test_printed_numbers_of_other_data_are_shown_on_ones_own_only():
    tables = [printed(source="cub200"), printed(where="B", source="omniglot")]
    (table,) = results_tables([record()], METRICS, paper_values=tables)
    assert "B (omniglot)" in table.caption
    assert "cub200" not in table.caption
    records = [record(source="./shoes")]
    (table,) = results_tables(records, METRICS, paper_values=tables)
    assert "B (omniglot)" in table.caption
    assert "(cub200)" in table.caption


def test_a_table_leaves_out_what_only_other_data_measure():
    records = [
        record(after={"recall@1": 0.5, "recall@10": 0.6}),
        record(source="sop", after={"recall@1": 0.5}),
    ]
    metrics = ["recall@1", "recall@10", "map@r"]
    first, second = results_tables(records, metrics)
    titles = [column.title for column in first.columns]
    assert titles == ["arm", "R@1", "R@10", "MAP@R", "runs"]
    titles = [column.title for column in second.columns]
    assert titles == ["arm", "R@1", "MAP@R", "runs"]
    tables = [printed(metric="recall@10", source="sop")]
    _, second = results_tables(records, metrics, paper_values=tables)
    assert "R@10, paper" in [column.title for column in second.columns]


def test_all_rows_have_all_columns():
    records = [
        *three_seeds("a", 0.5, pretrained={"map@r": 0.1}),
        *three_seeds("b", 0.5, dim=128),
        unfinished("c", 0, "to do"),
    ]
    (table,) = results_tables(records, METRICS, paper_values=[printed(arm="a")])
    for row in table.rows:
        assert len(row) == len(table.columns)
        for column, each in zip(table.columns, row, strict=True):
            assert len(each.numbers or (each.text,)) == len(
                column.parts or (column.title,)
            )
    lines = list(csv.reader(io.StringIO(to_csv(table))))
    assert len({len(line) for line in lines}) == 1


def test_ranks_are_a_table():
    scores = [[0.3, 0.2, 0.1], [0.3, 0.1, 0.1]]
    table = ranks_table(rank_arms(scores, "abc"), "recall@1")
    texts = [[each.text for each in row] for row in table.rows]
    assert texts == [
        ["a", "2", "1.00", "0.00"],
        ["b", "4.5", "2.25", "0.35"],
        ["c", "5.5", "2.75", "0.35"],
    ]
    assert "Ranks by R@1 in 2 experiments" in table.caption
    assert "are not independent" in table.caption
    assert "so the arms are not told apart" in table.caption


def test_the_caption_of_ranks_says_what_was_left_out():
    ranks = dataclasses.replace(
        rank_arms([[0.3, 0.2]], "ab", "seeds"),
        blocks_left_out=2,
        arms_left_out=("c", "d"),
    )
    table = ranks_table(ranks, "map@r")
    assert "There is one experiment, so its seeds are ranked" in table.caption
    assert "2 seeds left out" in table.caption
    assert (
        "Not ranked, sharing too few experiments: `c` and `d`." in table.caption
    )
    assert "nan" not in to_markdown(table)


def test_findings_are_a_table():
    results = check_findings([MAX], pair_runs())
    (row,) = findings_table(results).rows
    texts = [each.text for each in row]
    assert texts[3:] == ["+0.025", "+0.013 to +0.037", "-", "confirmed"]
    (row,) = findings_table(check_findings([MAX], [])).rows
    assert [each.text for each in row][3:] == ["-"] * 3 + ["not measured"]


HARD = Table(
    "hard",
    "50 % of `a_b` & more: $5 #1 {x} ~ ^ \\ ± 2.",
    (Column("a_b", numeric=False), Column("R@1 %", ("mean", "std"))),
    (
        (Cell("k=8 & | *x* <b> [1]\nnext"), Cell("0.5 ± 0.1", ("0.5", "0.1"))),
        (Cell("100 %_#"), Cell("-", ("", ""), bold=True)),
    ),
)


def test_markdown_keeps_cells_apart():
    head, line, *rows = to_markdown(HARD).splitlines()[2:]
    assert line == f"|:{'-' * 31}|{'-' * 10}:|"
    assert head == f"| a_b{' ' * 27} |     R@1 % |"
    assert rows[0] == ("| k=8 & \\| \\*x\\* \\<b> \\[1\\] next | 0.5 ± 0.1 |")
    assert rows[1] == f"| 100 %_#{' ' * 23} |     **-** |"


def test_csv_reads_back():
    rows = list(csv.reader(io.StringIO(to_csv(HARD))))
    assert rows == [
        ["a_b", "mean", "std"],
        ["k=8 & | *x* <b> [1]\nnext", "0.5", "0.1"],
        ["100 %_#", "", ""],
    ]


def test_latex_escapes_and_balances():
    text = to_latex(HARD)
    assert text.isascii()
    assert r"50 \% of \texttt{a\_b} \& more: \$5 \#1 \{x\}" in text
    assert r"\textasciitilde{} \textasciicircum{} \textbackslash{}" in text
    assert r"\textbf{-}" in text
    body = re.sub(r"\\[\\&%$#_{}]", " ", text)
    assert body.count("{") == body.count("}")
    assert "#" not in body and "%" not in body and "_" not in body
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert len(rows) == 3
    columns = re.search(r"\\begin{tabular}{(\w+)}", text)[1]
    assert columns == "lr"
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1
    for name in ("table", "tabular"):
        assert rf"\begin{{{name}}}" in text and rf"\end{{{name}}}" in text


@pytest.mark.parametrize("text", ["one ` tick", "`a`b`c", "`a_b` c"])
def test_latex_survives_odd_ticks(text):
    escaped = escape_latex(text)
    assert escaped.count("{") == escaped.count("}")
    assert escaped.count(r"\texttt") == (text.count("`") % 2 == 0)


@pytest.mark.parametrize("write", [to_markdown, to_csv, to_latex])
def test_the_same_records_give_the_same_bytes(write):
    records = three_seeds("a", 1 / 3) + three_seeds("b", 2 / 3)
    first, second = (
        write(results_tables(list(records), METRICS)[0]) for _ in range(2)
    )
    assert first == second


def test_settings_that_were_found():
    trials = [
        Trial(0, {"model.scale": 4.0}, "complete", 0.5),
        Trial(1, {"model.scale": 8.0}, "complete", 0.61234),
        Trial(2, {"model.scale": 9.0}, "pruned", 0.7),
    ]
    result = TuningResult("map@r", trials)
    tuned = Tuned("data/shoes", "resnet50", "ln")
    table = settings_table({tuned: result})
    assert [entry.text for entry in table.rows[0]] == [
        *("ln", "shoes, resnet50", "model.scale 8.0", "0.612", "3", "1")
    ]
    assert "0.61234" in to_csv(table)
    assert "validation MAP@R" in to_markdown(table)
