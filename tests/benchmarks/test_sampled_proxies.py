"""The steps that the benchmark of sampled proxies compares, small."""

import argparse
import importlib.util
import math

import pytest

from tests.conftest import ROOT


def test_a_sample_takes_a_share_of_the_memory():
    path = ROOT / "benchmarks" / "sampled_proxies.py"
    spec = importlib.util.spec_from_file_location("sampled_proxies", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    arguments = argparse.Namespace(batch=64, sample=0.1)
    bytes_of, tables = {}, {}
    for kind in ("dense", "sampled"):
        step, tables[kind] = benchmark.make_step(kind, 10_000, arguments)
        bytes_of[kind] = benchmark.peak_growth(step)
    if math.isnan(bytes_of["dense"]):
        pytest.skip("TensorFlow counts no tensors on this processor.")
    assert 0 < bytes_of["sampled"] < 0.3 * bytes_of["dense"]
    proxies = 4 * 10_000 * benchmark.DIM
    assert tables["sampled"]["proxies"] == tables["dense"]["proxies"] == proxies
    # The moments as well, and a count for every row.
    assert 2 * proxies < tables["dense"]["state"]
    assert tables["dense"]["state"] < tables["sampled"]["state"] < 2.1 * proxies
