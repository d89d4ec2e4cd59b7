"""What is built is whole, has nothing stray, and reads well elsewhere."""

import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from keras_dml.version import __version__
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The paths of a source archive and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def in_wheel(built):
    with zipfile.ZipFile(built[1]) as archive:
        return archive.namelist()


def tracked(*places):
    """Returns the files of the repository below some places."""
    words = ["git", "ls-files", "--", *places]
    return subprocess.run(
        words, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(in_wheel):
    wanted = {
        re.sub("^(export|configs)/", r"keras_dml/\1/", file)
        for file in tracked("keras_dml", "export", "configs")
    }
    assert wanted <= set(in_wheel), sorted(wanted - set(in_wheel))
    others = set(in_wheel) - wanted
    assert all(".dist-info/" in name for name in others), sorted(others)


@pytest.mark.slow
def test_the_source_archive_holds_docs_and_examples_and_nothing_stray(built):
    with tarfile.open(built[0]) as archive:
        names = {
            name.partition("/")[2] for name in archive.getnames() if "/" in name
        }
    made = "keras_dml.egg-info", "PKG-INFO", "setup.cfg"
    stray = {
        name for name in names if not (name.startswith(made) or tracked(name))
    }
    assert stray == set()
    for place in ("docs", "examples", "configs", "export"):
        assert set(tracked(place)) <= names


@pytest.mark.slow
def test_links_of_the_description_work_elsewhere(built):
    with zipfile.ZipFile(built[1]) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        metadata = archive.read(name).decode()
    assert f"\nVersion: {__version__}\n" in metadata
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links), links
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", metadata)
    assert all("raw.githubusercontent.com" in link for link in pictures)
    for extra in ("gpu", "all", "tfds", "scann"):
        assert f"\nProvides-Extra: {extra}\n" in metadata
    assert "tensorflow-datasets" not in "".join(
        line
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist") and "extra ==" not in line
    )


def test_the_version_is_one():
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in cited
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"## {__version__}" in changes


@pytest.mark.parametrize(
    ("changes", "words", "code"),
    [
        ("## 0.2.0 (unreleased)", [], 0),
        ("## 0.2.0 (2026-12-01)", [], 0),
        ("## 0.2.0 (2026-12-01)", ["TAG=v0.2.0"], 0),
        ("## 0.2.0 (unreleased)", ["TAG=v0.2.0"], 2),
        ("## 0.2.0 (2026-12-01)", ["TAG=v0.2.1"], 2),
        ("## 0.1.0 (2026-01-01)", [], 2),
    ],
)
def test_only_a_dated_tag_of_the_version_is_released(
    tmp_path, changes, words, code
):
    (tmp_path / "keras_dml").mkdir()
    version = tmp_path / "keras_dml" / "version.py"
    version.write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changes}\n")
    done = subprocess.run(
        ["make", "-f", ROOT / "Makefile", "tag", *words],
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == code, done.stderr
