import hashlib

import pytest

from keras_dml.data.facts import SourceFile, dataset_facts
from keras_dml.data.prepare import check_file, prepare
from keras_dml.errors import UsageError
from tests.data.stand_ins import write_classes, write_cub200, write_empty_files


def test_a_complete_set(test_data):
    said = []
    report = prepare("omniglot", test_data, progress=said.append)
    assert report.complete and report.problem == ""
    assert report.missing == () and report.advice == ()
    assert report.counts["test_classes"] == 659
    assert said == ["Reading omniglot"]


def test_digits_need_no_folder():
    report = prepare("digits")
    assert report.complete and report.counts["images"] == 1797


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("cars196", 2),
        ("cub200", 1),
        ("inshop", 2),
        ("omniglot", 2),
        ("sop", 1),
    ],
)
def test_a_missing_set_names_its_files(tmp_path, name, files):
    report = prepare(name, tmp_path)
    assert not report.complete and report.counts == {}
    assert "needs" in report.problem
    assert len(report.missing) == files
    assert all(file.url for file in report.missing)
    assert any("Fetch the files from http" in line for line in report.advice)


def test_an_incomplete_set_counts_what_is_there(tmp_path):
    write_cub200(tmp_path, ["a/0.jpg", "a/1.jpg", "a/2.jpg"], [1, 2, 101])
    write_empty_files(tmp_path / "images" / "a", 2)
    report = prepare("cub200", tmp_path)
    assert not report.complete
    assert "1 of 3 images are missing" in report.problem
    assert report.counts["images"] == 2 and report.counts["test_images"] == 0


def test_archives_are_checked(tmp_path):
    (tmp_path / "cars_annos.mat").write_bytes(b"x")
    (tmp_path / "cars_test.tgz").write_bytes(b"x")
    report = prepare("cars196", tmp_path)
    assert report.archives == {
        "cars_annos.mat": "wrong checksum",
        "cars_test.tgz": "wrong size",
    }
    assert len(report.missing) == 2


def test_one_of_two_ways_is_enough(tmp_path):
    """Whoever had the first two files was told to fetch the other four."""
    facts = dataset_facts("cars196")
    names = [file.name for file in facts.files]
    assert facts.missing(names[:2]) == ()
    assert [one.name for one in facts.missing(names[2:5])] == names[5:]
    assert [one.name for one in facts.missing([])] == names[:2]


def test_a_file_without_a_checksum_is_not_fetched_again(tmp_path):
    name = dataset_facts("inshop").files[0].name
    (tmp_path / name).write_bytes(b"x")
    report = prepare("inshop", tmp_path)
    assert name not in {file.name for file in report.missing}


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_check_file(tmp_path, algorithm):
    path = tmp_path / "archive.zip"
    path.write_bytes(b"contents")
    digest = hashlib.new(algorithm, b"contents").hexdigest()
    right = SourceFile("archive.zip", "", size=8, **{algorithm: digest})
    assert check_file(path, right) == "ok"
    wrong = SourceFile("archive.zip", "", **{algorithm: digest[::-1]})
    assert check_file(path, wrong) == "wrong checksum"
    size = SourceFile("archive.zip", "", size=9, **{algorithm: digest})
    assert check_file(path, size) == "wrong size"
    unknown = SourceFile("archive.zip", "", size=8)
    assert check_file(path, unknown) == "no published checksum"


@pytest.mark.parametrize("name", ["cars196", "inshop"])
def test_what_cannot_be_downloaded(tmp_path, name):
    with pytest.raises(UsageError, match=f"`{name}` cannot be downloaded"):
        prepare(name, tmp_path, download=True)


def test_what_comes_with_a_package_needs_no_download(tmp_path):
    assert prepare("digits", tmp_path, download=True).complete


def test_names_only(tmp_path):
    with pytest.raises(UsageError, match="did you mean cub200"):
        prepare("cub20", tmp_path)
    write_classes(tmp_path, {"a": 1, "b": 1})
    with pytest.raises(UsageError, match="which can be used as it is"):
        prepare(str(tmp_path))
