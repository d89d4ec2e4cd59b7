"""The health of the embeddings on the page of a run."""

import csv
import re

import pytest


@pytest.mark.slow
def test_the_health_is_that_of_the_run(command, run):
    outcome = command("report", run)
    assert outcome.code == 0, outcome.err
    page = (run / "report.html").read_text(encoding="utf-8")
    _, _, section = page.partition('<section id="health">')
    found = re.findall(r"<li>([^<]+)</li>", section.partition("</ul>")[0])
    assert any(line.startswith("Mean norm: 1 ") for line in found)
    with open(run / "history.csv", newline="", encoding="utf-8") as file:
        *_, last = csv.DictReader(file)
    occupied = (
        f"Proxy occupancy: {100 * float(last['val_proxy_occupancy']):.1f} % "
    )
    assert any(line.startswith(occupied) for line in found)
