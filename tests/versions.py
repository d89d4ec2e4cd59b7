"""Installs the wheel with the oldest, the newest or no TensorFlow, and uses it.

    python tests/versions.py oldest|newest|jax

Everything happens outside of the checkout, in environments of the Python that
calls it. Needs the package index.
"""

import email
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Installed first; the wheel must not change them.
CASES = {
    "oldest": ["tensorflow==2.20.*", "keras==3.13.*"],
    "newest": ["tensorflow", "keras"],
    "jax": ["keras", "jax"],
}
FIT = "fit digits --output run --epochs 2 --set sampling.steps_per_epoch=10"
COMMANDS = (
    FIT,
    "search run digit.png --k 3",
    "export run --format saved_model --with-index --output served",
    "evaluate run --k 1,10",
    "compare --help",
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
vectors = keras.Model(inputs, embedding).predict(images, verbose=0)
print(keras_dml.evaluate(vectors, labels, k=(1, 2)))
pairs = keras_dml.losses.MultiSimilarity()(labels, vectors)
assert np.isfinite(float(pairs))
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
    """Returns what the wheel needs, but for TensorFlow and LiteRT."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    return [
        one
        for one in metadata.get_all("Requires-Dist")
        if "extra ==" not in one
        and not one.startswith(("tensorflow", "ai-edge-litert"))
    ]


def main(case: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "env", with_pip=True)
        bin_ = folder / "env" / "bin"
        python = bin_ / "python"
        wheel = build(python, folder / "dist")
        pip = (python, "-m", "pip", "--quiet", "install")
        run(*pip, *CASES[case])
        freeze = (str(python), "-m", "pip", "freeze")
        before = subprocess.check_output(freeze, text=True).splitlines()
        if case == "jax":
            run(*pip, *requirements(wheel))
            run(*pip, "--no-deps", wheel)
            program = ("-c", WITHOUT_TENSORFLOW)
            run(python, *program, cwd=folder, KERAS_BACKEND="jax")
        else:
            run(*pip, wheel)
            run(python, "-c", DIGIT, cwd=folder)
            for words in COMMANDS:
                run(bin_ / "keras-dml", *words.split(), cwd=folder)
        after = subprocess.check_output(freeze, text=True).splitlines()
        assert set(before) <= set(after), sorted(set(before) - set(after))
        names = ("tensorflow==", "keras==", "jax==", "numpy==")
        print("Works with", *(one for one in after if one.startswith(names)))


if __name__ == "__main__":
    main(sys.argv[1])
