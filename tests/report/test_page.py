import xml.etree.ElementTree as ElementTree

import jinja2
import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.report import charts
from keras_dml.report.page import page_title, render
from keras_dml.report.retrieval import QueryRow, Shown
from keras_dml.report.sections import flags
from keras_dml.wording import metric_meaning

EVIL = "<script>alert(\"1\")</script> & 'ones'"
PIXEL = "data:image/png;base64,"
HEADLINE = {
    "name": EVIL,
    "cells": [0.5, 0.1, 0.4],
    "gain": -0.1,
    "interval": None,
}


def values(**changes):
    """The least that a page needs, every text hostile."""
    metrics = {
        "pretrained_features": EVIL,
        "num_queries": 1234,
        "test_classes": 7,
        "train_classes": 9,
        "train_seconds": 3.2,
        "num_lone_queries": 1,
        "seen": True,
        "partial": False,
        "oracle": False,
        "versions": {EVIL: EVIL},
    }
    row = QueryRow(
        Shown(PIXEL, EVIL, EVIL), [Shown(PIXEL, EVIL, EVIL, 0.5, True)], 3, 0.1
    )
    lone = QueryRow(Shown(PIXEL, EVIL, EVIL), [], None, None)
    return {
        "title": EVIL,
        "first": [("result", EVIL)],
        "details": [("classes", EVIL)],
        "metrics": metrics,
        "config": EVIL,
        "tensorboard": EVIL,
        "columns": [EVIL, EVIL, EVIL],
        "results": [HEADLINE],
        "headline": HEADLINE,
        "conclusion": [],
        "flags": flags(metrics),
        "kept": EVIL,
        "epochs": 0,
        "refit_epochs": 0,
        "of_stage": "",
        "curves": [],
        "length": None,
        "minutes": None,
        "monitor": EVIL,
        "way": [],
        "typical": [row, lone],
        "worst": [row] * 6,
        "confusions": [
            {"query": lone.query, "found": lone.query, "count": 2, "of": 3}
        ],
        "score_name": EVIL,
        "has_gallery": False,
        "classes": [],
        "class_metrics": [EVIL],
        "hidden_classes": 3,
        "similarities": {"uri": PIXEL, "alt": EVIL},
        "thresholds": [],
        "calibrated_on": "classes",
        "caution": EVIL,
        "collapse": EVIL,
        "health": [EVIL],
        "spectrum": {"uri": PIXEL, "alt": EVIL},
        "map": None,
        **changes,
    }


def test_all_text_is_escaped():
    page = ElementTree.fromstring(render(**values()))
    assert len(list(page.iter("script"))) == 1
    assert page.find(".//h1").text == EVIL
    assert page.find(".//img").get("alt") == f"{EVIL}: {EVIL}"
    assert page.find(".//pre").text == EVIL


def test_only_flags_that_are_set_are_there():
    page = render(**values())
    assert "The test classes were seen in training" in page
    assert "published data set were missing" not in page
    assert "classes seen in training" in page
    metrics = values()["metrics"] | {"seen": False}
    page = render(**values(metrics=metrics, flags=flags(metrics)))
    assert 'class="flags"' not in page
    assert "classes never trained on.</p>" in page
    # Its own network trained on them.
    metrics["final"] = True
    page = render(**values(metrics=metrics, flags=flags(metrics)))
    assert "by the network of the run before, which did not train on" in page


def test_it_says_on_what_thresholds_were_calibrated():
    """Images of classes that trained were called validation classes."""
    one = {"target_fmr": 0.1, "at": 0.5, "fnmr": 0.2, "num_impostors": 90}
    page = render(**values(thresholds=[one], caution=" Too few."))
    assert "90 pairs of\ndifferent validation classes" in page
    assert "(false non-matches). Too few." in page
    page = render(**values(thresholds=[one], calibrated_on="images"))
    assert "pairs of\nvalidation images of different classes" in page


def test_it_says_what_is_searched():
    assert "images of its\nclass among all test images" in render(**values())
    page = render(**values(has_gallery=True))
    assert "of its class in the gallery of the data set" in page


def test_a_loss_is_no_gain():
    assert "(-0.100 over" in render(**values())


def cells(page, section):
    path = f".//section[@id='{section}']//table//tr"
    return [
        ["".join(cell.itertext()) for cell in row]
        for row in ElementTree.fromstring(page).findall(path)
    ]


def test_gains_have_their_intervals():
    headline = HEADLINE | {"interval": {"low": -0.2, "high": 0.05}}
    clusters = HEADLINE | {"name": "nmi"}
    page = render(**values(headline=headline, results=[headline, clusters]))
    head, first, second = cells(page, "result")
    assert head[-2:] == ["gain", "95 % interval"]
    assert first[-2:] == ["-0.100", "-0.200 to +0.050"]
    assert second[-2:] == ["-0.100", "-"]
    assert "resampled test classes" in page


def test_without_intervals_there_is_no_column_for_them():
    page = render(**values())
    assert [len(row) for row in cells(page, "result")] == [5, 5]
    assert "interval" not in page


def test_the_conclusion_is_part_of_the_verdict():
    page = ElementTree.fromstring(render(**values(conclusion=[EVIL, "Two."])))
    lines = page.findall(".//section[@id='result']/ul[@class='conclusion']/li")
    assert [line.text for line in lines] == [EVIL, "Two."]


def test_metrics_are_explained_where_they_stand_and_below():
    known = HEADLINE | {"name": "recall@4"}
    page = ElementTree.fromstring(
        render(**values(results=[known, HEADLINE], class_metrics=["mrr"]))
    )
    meaning = metric_meaning("recall@4")
    assert "4 nearest" in meaning
    (cell,) = page.findall(".//th[@scope='row']/abbr[@title]")
    assert (cell.text, cell.get("title")) == ("R@4", meaning)
    (term,) = page.findall(".//dl/dt")
    (definition,) = page.findall(".//dl/dd")
    assert (term.text, definition.text) == ("R@4", meaning)
    (button,) = page.findall(".//button[@title]")
    assert button.get("title") == metric_meaning("mrr")


def test_after_four_of_the_worst_the_others_are_folded():
    page = ElementTree.fromstring(render(**values()))
    (section,) = page.findall(".//section[@id='worst']")
    assert len(section.findall("div")) == 4
    (folded,) = section.findall("details")
    assert folded.find("summary").text == "2 more"
    assert len(folded.findall("div")) == 2


def test_the_length_of_training_is_told():
    long = {"steps": 12345, "passes": 9.26}
    page = render(**values(length=long, minutes=7.5))
    assert "12,345 steps showed every training\nimage 9.3 times" in page
    assert "was given\n7.5 minutes" in page
    page = render(**values(length=long, of_stage=" of the last stage"))
    assert "12,345 steps of the last stage showed" in page
    assert "steps showed" not in render(**values())
    assert "was given" not in render(**values())


def test_the_choice_on_the_way_is_marked():
    places = [
        {"place": "0 %", "value": 0.5, "chosen": False},
        {"place": "100 %", "value": 0.6, "chosen": True},
    ]
    head, row = cells(render(**values(way=places)), "training")
    assert head == ["weights", "0 %", "100 %"]
    assert row == [EVIL, "0.500", "✓ 0.600"]


def test_a_value_that_is_missing_is_an_error():
    incomplete = values()
    del incomplete["kept"]
    with pytest.raises(jinja2.UndefinedError, match="kept"):
        render(**incomplete)


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        lambda: charts.curves({"loss": np.array([1.0, np.nan, 2.0])}, []),
        lambda: charts.curves(
            {"a": np.array([1e-3, 1e-2]), "b": np.array([1.0, 2.0])},
            [(0, "main/warm"), (1, "main/train")],
            logarithmic=True,
            kept=1,
        ),
        lambda: charts.histograms(
            np.linspace(-1, 1, 5), np.array([0, 0, 0.5, 0.5]), np.zeros(4), "x"
        ),
        lambda: charts.spectrum(np.array([0.9, 0.1, 0.0])),
        lambda: charts.spectrum(np.zeros(3)),
    ],
)
def test_charts_are_drawn_alike_every_time(draw):
    first = draw()
    assert first.startswith("data:image/svg+xml;base64,")
    assert draw() == first


@pytest.mark.parametrize(
    "source, title",
    [
        ("digits", "digits, norm_softmax, seed 3"),
        ("/data/shoes/images", "shoes/images, norm_softmax, seed 3"),
    ],
)
def test_a_page_names_the_data_as_others_do(source, title):
    """Of several data sets each page was that of `images`."""
    config = resolve("norm_softmax", "digits", overrides=["seed=3"])
    assert page_title(config.changed(data={"source": source})) == title
