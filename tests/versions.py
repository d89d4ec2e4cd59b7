"""Installs the wheel beside other packages' oldest and newest, and uses it.

    python tests/versions.py oldest|colab|newest|jax

Everything happens outside of the checkout, in an environment of the Python that
calls it: the blocks of README.md, a notebook, and commands that read the
package's own files. Needs the package index.
"""

import email
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Installed first; the wheel must not change them. `oldest` adds the lower
# bounds of all that the wheel needs.
CASES = {
    "oldest": ["tensorflow==2.20.*", "keras==3.13.*"],
    "colab": ["tensorflow==2.20.*", "keras==3.13.2"],
    "newest": ["tensorflow", "keras"],
    "jax": ["keras", "jax"],
}
NOTEBOOK = ROOT / "docs" / "guides" / "photos.ipynb"
COMMANDS = (
    "search runs/digits digit.png --k 3",
    "export runs/digits --format litert --quantize none --output phone",
    "datasets",
    "plans",
    "backbones",
    "compare demo --dry-run",
)
DIGIT = """
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
pixels = (load_digits().images[0] * 15.9).astype("uint8")
Image.fromarray(pixels).save("digit.png")
"""
WITHOUT_TENSORFLOW = """
import importlib.util
import keras
import numpy as np
import keras_dml
assert importlib.util.find_spec("tensorflow") is None
assert keras.backend.backend() == "jax"
rng = np.random.default_rng(0)
labels = np.repeat(np.arange(4), 8).astype("int32")
images = labels[:, None] + rng.normal(size=(32, 6)).astype("float32")
inputs = keras.Input((6,))
embedding = keras_dml.layers.EmbeddingHead(8)(inputs)
logits = keras_dml.layers.ScaledLogits(8.0)(
    keras_dml.layers.Proxies(4)(embedding)
)
trainer = keras.Model(inputs, logits)
trainer.compile(
    keras_dml.optimizers.PerVariable(
        keras.optimizers.Adam(1e-2), {"proxies.*": keras.optimizers.Adam(1e-1)}
    ),
    keras_dml.losses.NormalizedSoftmax(),
)
losses = trainer.fit(images, labels, epochs=5, verbose=0).history["loss"]
assert losses[-1] < losses[0], losses
nearest = keras_dml.metrics.RecallAtK(1)
vectors = keras.Model(inputs, embedding).predict(images, verbose=0)
exact = keras_dml.evaluate(vectors, labels, k=(1, 2))
print(exact)
nearest.update_state(labels, vectors)
assert np.isclose(float(nearest.result()), exact.flat()["recall@1"])
for pairs in (
    keras_dml.losses.MultiSimilarity(),
    keras_dml.losses.Triplet(mining="semi_hard"),
    keras_dml.losses.Triplet(mining="hard"),
    keras_dml.losses.Contrastive(miner="batch_hard"),
):
    assert np.isfinite(float(pairs(labels, vectors))), pairs
"""


def run(*words, cwd=None, **environment):
    print("$", *words, flush=True)
    subprocess.run(
        list(map(str, words)),
        check=True,
        cwd=cwd,
        env={**os.environ, **environment},
    )


def build(python: Path, folder: Path) -> Path:
    """Returns the wheel, built from the sdist."""
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def requirements(wheel: Path) -> list[str]:
    """Returns what the wheel needs, but for TensorFlow."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    return [
        one
        for one in metadata.get_all("Requires-Dist")
        if "extra ==" not in one and not one.startswith("tensorflow")
    ]


def lower_bounds(wheel: Path) -> list[str]:
    """Returns the oldest release of each package that the wheel allows."""
    found = [
        re.fullmatch(r"([\w-]+).*>=([\d.]+).*", one)
        for one in requirements(wheel)
    ]
    return [f"{one[1]}=={one[2]}.*" for one in found]


def blocks(language: str) -> str:
    """Returns the blocks of README.md in one language, as one program."""
    block = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    found = block.findall((ROOT / "README.md").read_text("utf-8"))
    assert found, language
    return "\n".join(found)


def notebook_program() -> str:
    """Returns the code of a notebook, but for how it installs the package."""
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    programs = ["".join(one["source"]) for one in cells[1:] if "outputs" in one]
    assert not any(text.startswith("%") for text in programs)
    return "\n".join(programs)


def use(bin_: Path, folder: Path) -> None:
    """Runs the README, the notebook and the commands in a folder."""
    python = bin_ / "python"
    for line in blocks("bash").splitlines():
        run(bin_ / "keras-dml", *line.split()[1:], cwd=folder)
    for name, program in (
        ("readme.py", blocks("python")),
        ("notebook.py", notebook_program()),
        ("digit.py", DIGIT),
    ):
        (folder / name).write_text(program, "utf-8")
        run(python, name, cwd=folder)
    for words in COMMANDS:
        run(bin_ / "keras-dml", *words.split(), cwd=folder)


def megabytes(folder: Path) -> int:
    """Returns the size of all files in a folder."""
    files = (one for one in folder.rglob("*") if not one.is_symlink())
    return sum(one.stat().st_size for one in files if one.is_file()) // 10**6


def main(case: str) -> None:
    start = time.time()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "env", with_pip=True)
        bin_ = folder / "env" / "bin"
        python = bin_ / "python"
        wheel = build(python, folder / "dist")
        pip = (python, "-m", "pip", "--quiet", "install")
        run(*pip, *CASES[case])
        sizes = [megabytes(folder / "env")]
        if case == "oldest":
            run(*pip, *CASES[case], *lower_bounds(wheel))
        freeze = (str(python), "-m", "pip", "freeze")
        before = subprocess.check_output(freeze, text=True).splitlines()
        if case == "jax":
            run(*pip, *requirements(wheel))
            run(*pip, "--no-deps", wheel)
        else:
            run(*pip, wheel)
        sizes.append(megabytes(folder / "env"))
        installed = time.time()
        if case == "jax":
            program = ("-c", WITHOUT_TENSORFLOW)
            run(python, *program, cwd=folder, KERAS_BACKEND="jax")
        else:
            use(bin_, folder)
        after = subprocess.check_output(freeze, text=True).splitlines()
        assert set(before) <= set(after), sorted(set(before) - set(after))
        print("\nPython", platform.python_version(), *after)
        print(f"From {sizes[0]} to {sizes[1]} MB.")
        print(
            f"{case}: installed in {installed - start:.0f} s, "
            f"used in {time.time() - installed:.0f} s"
        )


if __name__ == "__main__":
    main(sys.argv[1])
