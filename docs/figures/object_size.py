"""R@1 by the share of the image that the object fills (ProxyNCA++, Figure 7).

    python docs/figures/object_size.py COMPARISON --data-dir DIR --output FOLDER

`COMPARISON` is the folder of `keras-dml compare proxynca_pp_figure7`, or of any
plan on one data set with boxes. Nothing is trained.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from figure_tools import save
from matplotlib.figure import Figure
from PIL import Image

from keras_dml import data


def shares(manifest):
    """Dict of an image's id to the share of its area that its box covers."""
    found = {}
    for name, path, box in zip(
        manifest.ids, manifest.paths, manifest.box, strict=True
    ):
        with Image.open(path) as image:
            width, height = image.size
        left, top, right, bottom = np.clip(box, 0, [width, height] * 2)
        found[name] = (right - left) * (bottom - top) / (width * height)
    return found


def by_share(run, filled, edges):
    """R@1 of the queries of each bin, NaN for a bin without any."""
    with np.load(run / "per_query.npz") as queries:
        bins = np.digitize([filled[one] for one in queries["ids"]], edges[1:-1])
        recall = queries["recall@1"]
    return [
        recall[bins == number].mean() if (bins == number).any() else np.nan
        for number in range(len(edges) - 1)
    ]


def compute(folder, data_dir, bins=10):
    """Measures every finished run of a comparison.

    Args:
        folder: The folder of the comparison, of one data set with boxes.
        data_dir: The folder that holds the data set.
        bins: Integer, into how many equal parts shares from 0 to 1 are cut.
            Defaults to `10`.

    Returns:
        The edges of the bins, and a dict of an arm to the R@1 of each run (a
        row) and bin (a column).
    """
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "done"]
    (source,) = {row["source"] for row in rows}
    # The table has a line for each metric of a run.
    arm_of = {row["run"]: row["arm"] for row in rows}
    filled = shares(data.read(source, data_dir, allow_partial=True))
    edges = np.linspace(0, 1, bins + 1)
    results = {arm: [] for arm in arm_of.values()}
    for run, arm in arm_of.items():
        values = by_share(folder / "runs" / run, filled, edges)
        results[arm].append(values)
    return edges, {arm: np.array(found) for arm, found in results.items()}


def draw(edges, results):
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    middles = 50 * (edges[1:] + edges[:-1])
    for arm, values in results.items():
        bars = values.std(axis=0, ddof=1) if len(values) > 1 else None
        axes.errorbar(middles, values.mean(axis=0), bars, label=arm)
    axes.set_xlabel("share of the image that the object fills (%)")
    axes.set_ylabel("R@1")
    axes.legend()
    return figure


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("comparison", type=Path, help="folder of a comparison")
    parser.add_argument(
        "--data-dir", required=True, help="folder that holds the data set"
    )
    parser.add_argument("--bins", type=int, default=10)
    parser.add_argument(
        "--output", default=".", help="folder of the picture (default: here)"
    )
    options = parser.parse_args(argv)
    edges, results = compute(options.comparison, options.data_dir, options.bins)
    for arm, values in results.items():
        means = " | ".join(f"{value:.3f}" for value in values.mean(axis=0))
        print(f"| {arm} | {means} |")
    save(draw(edges, results), options.output, "object_size")
    return results


if __name__ == "__main__":
    main()
