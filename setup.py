"""Packaging of keras-dml.

`export/` and `configs/` sit at the top level of the repository and are
installed inside the package, so that site-packages gets one name only.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'__version__ = "(.+)"', (ROOT / "keras_dml" / "version.py").read_text()
).group(1)

HOME = "https://github.com/keras-dml/keras-dml"


def absolute(text: str) -> str:
    """Returns a page whose links and pictures also work elsewhere."""
    pictures = f"{HOME.replace('github.com', 'raw.githubusercontent.com')}/main"
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{pictures}/", text)
    return re.sub(
        r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\1{HOME}/blob/main/", text
    )


EXTRAS = {
    # TensorFlow's libraries for NVIDIA's GPUs, on Linux.
    "gpu": ["tensorflow[and-cuda]>=2.20,<2.22"],
    # Data sets by `tfds:NAME`; it imports importlib_resources undeclared.
    "tfds": ["tensorflow-datasets>=4.9.10", "importlib_resources"],
    "scann": ["scann[tf]==1.4.2; sys_platform == 'linux'"],
    # The runtime of devices; without it TensorFlow's checks a `.tflite` file.
    "litert": ["ai-edge-litert>=2.0"],
    "onnx": ["tf2onnx>=1.17", "onnx>=1.17", "onnxruntime>=1.20"],
    # Embeddings as Parquet files.
    "parquet": ["pyarrow>=17"],
    "beam": ["apache-beam>=2.77,<3", "pyarrow>=17"],
    # Image networks of keras-hub, by `hub:PRESET`.
    "hub": ["keras-hub>=0.32,<0.33"],
    # Runs on the Hugging Face Hub, by `keras-dml push`.
    "push": ["huggingface-hub>=1.0,<3"],
    # Public weights of other frameworks, for `keras-dml convert-weights`.
    "convert": ["safetensors>=0.5"],
    # For clients of TensorFlow Serving; the SavedModel needs none of it.
    "serving": ["tensorflow-serving-api~=2.20.0", "grpcio>=1.60"],
    # Tuning of hyper-parameters in plans.
    "tuning": ["optuna>=5,<6"],
}
USED = (
    "tfds",
    "scann",
    "litert",
    "onnx",
    "parquet",
    "hub",
    "push",
    "convert",
    "tuning",
)

setup(
    name="keras-dml",
    version=VERSION,
    description="Deep metric learning for TensorFlow and Keras 3",
    long_description=absolute((ROOT / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    author="The keras-dml developers",
    url=HOME,
    project_urls={
        "Source": HOME,
        "Issues": f"{HOME}/issues",
        "Changelog": f"{HOME}/blob/main/CHANGELOG.md",
    },
    python_requires=">=3.11,<3.14",
    packages=[
        *find_packages(include=["keras_dml", "keras_dml.*"]),
        "keras_dml.export",
        "keras_dml.configs",
    ],
    package_dir={
        "keras_dml.export": "export",
        "keras_dml.configs": "configs",
    },
    package_data={
        "keras_dml": ["py.typed"],
        "keras_dml.configs": [
            "backbones.yaml",
            "recipes/*.yaml",
            "datasets/*.yaml",
            "plans/*.yaml",
        ],
        "keras_dml.comparison.page": ["templates/*"],
        "keras_dml.report": ["templates/*"],
    },
    install_requires=[
        "tensorflow>=2.20,<2.22",
        "keras>=3.13,<3.17",
        "numpy>=2.0",
        "scikit-learn>=1.5",
        "scipy>=1.13",
        "pillow>=12.3",  # earlier ones write beyond an image's memory
        "pydantic>=2.7",
        "pyyaml>=6.0",
        "typer>=0.16",  # earlier ones fail with click 8.2
        "rich>=13.7",
        "jinja2>=3.1",
        "markupsafe>=2.1",
        "matplotlib>=3.9",
        "threadpoolctl>=3.1",
    ],
    extras_require={
        **EXTRAS,
        # What a user may want on any machine.
        "all": sorted({one for name in USED for one in EXTRAS[name]}),
        "test": [
            "pytest>=8.2",
            "pytest-xdist>=3.6",
            "build>=1.2",
            *EXTRAS["litert"],
            *EXTRAS["parquet"],
            *EXTRAS["tuning"],
            *EXTRAS["convert"],
            *EXTRAS["push"],
        ],
        "lint": ["ruff==0.17.5", "mypy==2.4.1", "types-PyYAML"],
        # The peer of the benchmarks; it needs PyTorch.
        "bench": ["pytorch-metric-learning==2.9.0"],
        # Chromium as a Python package, to open the report as users do; later
        # versions come without it.
        "browser": ["PySide6-Addons>=6.8,<6.11"],
        # The documentation site: `make docs`.
        "docs": ["mkdocs-material>=9.7,<10", "mkdocstrings-python>=2,<3"],
        # The other backends of Keras, to compare their numbers.
        "backends": ["jax==0.10.2", "torch==2.13.0"],
    },
    entry_points={"console_scripts": ["keras-dml=keras_dml.cli:main"]},
    keywords=[
        "metric learning",
        "embeddings",
        "image retrieval",
        "similarity search",
        "keras",
        "tensorflow",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Image Recognition",
        "Typing :: Typed",
    ],
)
