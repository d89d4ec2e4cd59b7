import itertools

import pytest

from keras_dml.data.readers import read
from keras_dml.data.readers.csv_file import sorted_labels
from keras_dml.errors import UsageError
from tests.data.stand_ins import write_empty_files


def write(folder, text):
    write_empty_files(folder / "photos", 4)
    path = folder / "list.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_split_classes_are_divided(tmp_path):
    path = write(
        tmp_path,
        "\ufeffpath,label\nphotos/0.jpg,pear\nphotos/1.jpg,apple\n"
        "photos/2.jpg,pear\nphotos/3.jpg,fig\n",
    )
    manifest = read(path)
    assert manifest.class_names == ("apple", "fig", "pear")
    assert manifest.labels.tolist() == [2, 0, 2, 1]
    assert manifest.split.tolist() == ["test", "train", "test", "train"]
    assert manifest.paths[0] == str(tmp_path / "photos" / "0.jpg")
    assert manifest.name == "list" and not manifest.seen


def test_numbers_are_sorted_as_numbers(tmp_path):
    path = write(tmp_path, "label,path\n10,photos/0.jpg\n9,photos/1.jpg\n")
    assert read(path).class_names == ("9", "10")


def test_equal_numbers_are_classes_in_the_same_order_always():
    """Otherwise another process tests on classes that trained."""
    names = ["0001", "001", "01", "1", "2"]
    for order in itertools.permutations(names):
        assert sorted_labels(order) == names


def test_split_column(tmp_path):
    path = write(
        tmp_path,
        "path,label,split\nphotos/0.jpg,a,Train\nphotos/1.jpg,b,test\n",
    )
    manifest = read(path)
    assert manifest.split.tolist() == ["train", "test"]
    assert not manifest.seen


def test_a_class_in_both_splits_is_seen(tmp_path):
    path = write(
        tmp_path,
        "path,label,split\nphotos/0.jpg,a,train\nphotos/1.jpg,a,test\n",
    )
    assert read(path).seen


def test_one_class_in_both_splits_is_named(tmp_path, caplog):
    """A wrong cell made the measurement one of seen classes, unsaid."""
    lines = ["path,label,split", "photos/0.jpg,a,train", "photos/1.jpg,a,test"]
    path = write(tmp_path, "\n".join([*lines, "photos/2.jpg,b,test"]) + "\n")
    assert read(path).seen
    assert "1 of the 2 test classes of" in caplog.text
    assert "such as 'a', so the test is one of seen classes" in caplog.text


def test_absolute_paths(tmp_path):
    photo = tmp_path / "photos" / "0.jpg"
    path = write(tmp_path, f"path,label\n{photo},a\nphotos/1.jpg,b\n")
    assert read(path).paths[0] == str(photo)


def test_an_absolute_path_is_no_second_image(tmp_path):
    photo = tmp_path / "photos" / "0.jpg"
    path = write(tmp_path, f"path,label\nphotos/0.jpg,a\n{photo},b\n")
    with pytest.raises(UsageError, match="on line 3, .*Write both the same"):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        "path,label\nphotos/0.jpg,cat | dog\nphotos/1.jpg,ant\n",
        "path,label,label\nphotos/0.jpg,dog,cat\nphotos/1.jpg,ant,\n",
        "path,label,label\nphotos/0.jpg,dog,cat\nphotos/1.jpg,,ant\n",
        "path,label\nphotos/0.jpg,dog\nphotos/1.jpg,ant\nphotos/0.jpg,cat\n",
    ],
    ids=["one cell", "two columns", "the first is empty", "two lines"],
)
def test_several_labels_of_an_image(tmp_path, text):
    manifest = read(write(tmp_path, text))
    assert manifest.class_names == ("ant", "cat", "dog")
    assert manifest.labels.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert manifest.names.tolist() == ["cat|dog", "ant"]
    assert manifest.num_classes == 3 and manifest.has_label_sets


def test_an_image_with_a_test_class_does_not_train(tmp_path):
    """And its other labels, which trained, do not count in the test."""
    path = write(
        tmp_path,
        "path,label\nphotos/0.jpg,a|b\nphotos/1.jpg,b|c\nphotos/2.jpg,c|d\n",
    )
    manifest = read(path)
    assert manifest.split.tolist() == ["train", "test", "test"]
    assert manifest.part("train").class_names == ("a", "b")
    test = manifest.part("test")
    assert test.names.tolist() == ["c", "c|d"]
    assert not manifest.seen


def test_several_labels_with_a_split_that_shares_classes(tmp_path):
    """All of them count: the result says that classes were seen."""
    path = write(
        tmp_path,
        "path,label,split\nphotos/0.jpg,a|b,train\nphotos/1.jpg,b|c,test\n",
    )
    manifest = read(path)
    assert manifest.seen
    assert manifest.part("test").names.tolist() == ["b|c"]


def test_groups(tmp_path):
    path = write(
        tmp_path,
        "path,label,group\nphotos/0.jpg,cat,pet\nphotos/1.jpg,cow,farm\n"
        "photos/2.jpg,dog,pet\n",
    )
    assert read(path).group.tolist() == [1, 0, 1]
    path = write(
        tmp_path, "path,label,group\nphotos/0.jpg,a,\nphotos/1.jpg,b,\n"
    )
    assert read(path).group is None
    path = write(
        tmp_path, "path,label,group\nphotos/0.jpg,a,\nphotos/1.jpg,b,c\n"
    )
    with pytest.raises(UsageError, match="a group, or none. Received: 1 of 2"):
        read(path)


def test_missing_images(tmp_path):
    path = write(
        tmp_path, "path,label\nphotos/0.jpg,a\nphotos/7.jpg,b\nphotos/1.jpg,c\n"
    )
    with pytest.raises(UsageError, match=r"1 of 3 images.*first: photos/7.jpg"):
        read(path)
    manifest = read(path, allow_partial=True)
    assert manifest.partial
    assert manifest.ids.tolist() == ["photos/0.jpg", "photos/1.jpg"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must name the columns path and label"),
        ("file,label\na,b\n", r"Received: columns=\['file', 'label'\]"),
        ("path,label\n", "no line after the first"),
        ("path,label\nphotos/0.jpg,\n", "Line 2 .* must have a path and a l"),
        ("path,label\nphotos/0.jpg\n", "Line 2 .*label=None"),
        (
            "path,label,split\nphotos/0.jpg,a,val\n",
            "split on line 2 .* 'val'",
        ),
        (
            "path,label\nphotos/0.jpg,a|b\nphotos/0.jpg,a\n",
            "'photos/0.jpg' again on line 3, without another label",
        ),
        (
            "path,label,split\nphotos/0.jpg,a,train\nphotos/0.jpg,b,test\n",
            "and one group. Received: 'photos/0.jpg' with 'train' and, on lin",
        ),
        (
            "path,label\nphotos/0.jpg,a\n./photos/0.jpg,b\n",
            "'photos/0.jpg' and, on line 3, './photos/0.jpg'",
        ),
        (
            "path,label,split\nphotos/0.jpg,a,train\nphotos/1.jpg,a,train\n"
            "photos//../photos/1.jpg,b,test\n",
            "'photos/1.jpg' and, on line 4, 'photos//../photos/1.jpg'",
        ),
        ("path,label\nphotos/0.jpg,a||b\n", r"on line 2 .* 'a\|\|b'"),
        ("path,label,path\na,b,c\n", "must name each column once"),
        ("path,label\nphotos/0.jpg,a\n", "at least two classes"),
        (
            "path,label\nphotos/0.jpg,Jones\nphotos/1.jpg,Smith, John\n",
            r"Line 3 of .* more cells than the first line names. Received: "
            r"\['John'\] .* quotes around a text with a comma",
        ),
        (
            'path,label\nphotos/0.jpg,"a\nphotos/1.jpg,b\nphotos/2.jpg,c\n',
            "Received: unexpected end of data, in the row that begins on li"
            "ne 2. Close every quote",
        ),
    ],
)
def test_errors(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        read(write(tmp_path, text))


def test_no_such_file_and_no_text(tmp_path):
    with pytest.raises(UsageError, match="No such file or directory"):
        read(tmp_path / "none.csv")
    path = tmp_path / "list.csv"
    path.write_bytes(b"path,label\n\xff\xfe\xfa,a\n")
    with pytest.raises(UsageError, match="must be a CSV file in UTF-8"):
        read(path)


def test_empty_cells_may_be_more_or_fewer_than_the_columns(tmp_path):
    text = "path,label,group,note\nphotos/0.jpg,a,,,,\nphotos/1.jpg,b\n"
    assert read(write(tmp_path, text)).class_names == ("a", "b")


def test_spaces_around_cells_do_not_count(tmp_path):
    text = "path , label,split\nphotos/0.jpg , a ,train \nphotos/1.jpg,b,test\n"
    manifest = read(write(tmp_path, text))
    assert manifest.ids.tolist() == ["photos/0.jpg", "photos/1.jpg"]
    assert manifest.class_names == ("a", "b")
    assert manifest.split.tolist() == ["train", "test"]


def test_forms_of_one_name_are_one_class(tmp_path):
    """A Mac writes the accent as a second character: a half trained."""
    text = "path,label\nphotos/0.jpg,caf\u00e9\nphotos/1.jpg,cafe\u0301\n"
    manifest = read(write(tmp_path, text + "photos/2.jpg,tea\n"))
    assert manifest.class_names == ("caf\u00e9", "tea")
    assert manifest.labels.tolist() == [0, 0, 1]


def test_classes_without_a_file_do_not_count_in_the_halves(tmp_path):
    """All classes that were left could train, and none test."""
    lines = [f"photos/{row}.jpg,{label}" for row, label in enumerate("abcd")]
    missing = [
        f"photos/{row}.jpg,{label}" for row, label in enumerate("xyz", 7)
    ]
    text = "\n".join(["path,label", *lines, *missing])
    manifest = read(write(tmp_path, text), allow_partial=True)
    assert manifest.split.tolist() == ["train", "train", "test", "test"]


def test_a_class_is_seen_by_images_that_exist(tmp_path):
    text = (
        "path,label,split\nphotos/0.jpg,a,train\nphotos/1.jpg,b,test\n"
        "photos/9.jpg,a,test\n"
    )
    path = write(tmp_path, text)
    assert not read(path, allow_partial=True).seen
    path.write_text(text.replace("9", "2"))
    assert read(path).seen
