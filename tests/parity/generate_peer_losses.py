"""Writes `peer_losses.json`: what other libraries export as losses.

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
    "tensorflow-addons": "0.23.0",
    "tensorflow-similarity": "0.17.1",
    "pytorch-metric-learning": "2.9.0",
}


def exported(package, version):
    """The names that `losses/__init__.py` of a package imports, sorted."""
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
            name = package.replace("-", "_") + "/losses/__init__.py"
            tree = ast.parse(files.read(name))
    return sorted(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


def main():
    names = {
        f"{package} {version}": exported(package, version)
        for package, version in PEERS.items()
    }
    path = Path(__file__).with_name("peer_losses.json")
    path.write_text(json.dumps(names, indent=2) + "\n")


if __name__ == "__main__":
    main()
