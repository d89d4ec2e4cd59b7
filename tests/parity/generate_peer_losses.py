"""Writes `peer_losses.json`: what other libraries export as losses.

Of open-metric-learning also what it exports as miners, samplers and metrics.

It reads the packages that pip downloads, and imports none of them:

    python generate_peer_losses.py
"""

import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PEERS = {
    "tensorflow-addons": ("0.23.0", "tensorflow_addons/losses"),
    "tensorflow-similarity": ("0.17.1", "tensorflow_similarity/losses"),
    "pytorch-metric-learning": ("2.9.0", "pytorch_metric_learning/losses"),
    "open-metric-learning": (
        "4.0.0",
        *(
            f"oml/{part}"
            for part in ("losses", "miners", "samplers", "metrics")
        ),
    ),
}


def exported(package, version, *folders):
    """The names that `__init__.py` in folders of a package imports, sorted."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet"),
                *("--no-deps", "--only-binary", ":all:", "--dest", folder),
                # The last Python of tensorflow-addons.
                *("--python-version", "3.11"),
                *("--platform", "manylinux2014_x86_64"),
                f"{package}=={version}",
            ],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            trees = [
                ast.parse(files.read(f"{one}/__init__.py")) for one in folders
            ]
    return sorted(
        alias.asname or alias.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


def main():
    names = {
        f"{package} {version}": exported(package, version, *folders)
        for package, (version, *folders) in PEERS.items()
    }
    path = Path(__file__).with_name("peer_losses.json")
    path.write_text(json.dumps(names, indent=2) + "\n")


if __name__ == "__main__":
    main()
