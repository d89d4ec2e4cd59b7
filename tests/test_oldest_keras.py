"""The oldest Keras that is allowed runs a whole command."""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import venv

import pytest


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter that sees everything of this one, but for an older Keras.

    The package index has it; the test is skipped where that is out of reach.
    """
    (keras,) = (
        one
        for one in importlib.metadata.requires("keras-dml")
        if re.match(r"keras[<>=]", one) and "extra ==" not in one
    )
    oldest = re.search(r">=([\d.]+)", keras)[1]
    folder = tmp_path_factory.mktemp("oldest")
    venv.create(folder)
    program = folder / "bin" / "python"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", program, "install"),
            *("--quiet", "--no-deps", f"keras=={oldest}.*"),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"Keras {oldest} could not be installed: {done.stderr}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # Also the packages that are installed there from a checkout.
    here = sysconfig.get_paths()["purelib"]
    (folder / "lib" / version / "site-packages" / "here.pth").write_text(
        f"import site; site.addsitedir({here!r})\n"
    )
    found = subprocess.check_output(
        [program, "-c", "import keras; print(keras.__version__)"], text=True
    )
    assert found.startswith(f"{oldest}.")
    return program


# Callbacks of Keras read the rates, unless these follow a schedule.
CONSTANT = [
    f"--set=optimizer.{group}.{setting}"
    for group in ("backbone", "head", "proxies")
    for setting in ("schedule=constant", "warmup_steps=0")
]
ON_TWO = ("--strategy=mirrored", "--devices=cpu:2", "--recipe=proxy_isa")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), (*ON_TWO, *CONSTANT)], ids=["one device", "two"]
)
def test_fit_with_its_page_and_exports(options, python, tmp_path):
    done = subprocess.run(
        [
            *(python, "-m", "keras_dml", "fit", "digits", "--epochs", "1"),
            *("--output", "run", "--set", "sampling.steps_per_epoch=5"),
            *options,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("report.html", "export/saved_model", "export/litert"):
        assert (tmp_path / "run" / part).exists()
