"""YAML that is broken, hostile or odd is refused in a short sentence."""

import time

import pytest

from keras_dml.config import load_recipe, load_run_config, resolve
from keras_dml.config.plans import load_plan
from keras_dml.config.yaml_files import (
    MOST_CHARACTERS,
    MOST_VALUES,
    dump_yaml,
    parse_yaml,
    read_yaml,
)
from keras_dml.errors import UsageError

# Each line stands for ten of the line before.
ANCHORS = [("a", "[x, x, x, x, x, x, x, x, x, x]")]
ANCHORS += [
    (name, f"[{', '.join([f'*{before}'] * 10)}]")
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
]
LAUGHS = "\n".join(f"{name}: &{name} {value}" for name, value in ANCHORS)
MERGES = "a: &a {x: 1}\n" + "\n".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BROKEN = {
    "a: [": "line 1, column 5",
    "a: {b": "line 1",
    "\ta: 1": "cannot start any token",
    "a: 1\n---\nb: 2": "another document",
    "a: *b": "undefined alias 'b'",
    "a: !!int x": "'x' is no int",
    "a: !!float x": "'x' is no float",
    "a: !!bool x": "'x' is no bool",
    "a: !!timestamp x": "tag:yaml.org,2002:timestamp",
    "a: !!binary x": "tag:yaml.org,2002:binary",
    "a: !!set {b}": "tag:yaml.org,2002:set",
    "a: !!python/object/apply:os.system [x]": "python/object/apply",
    "? [1]\n: 2": "unhashable key",
    "a: {<<: 3}": "a mapping or list of mappings",
    "a: 1\na: 2": "the key 'a' is there twice (line 2, column 1)",
    'a: "\\0"': "holds an invalid character",
    'a: "\\ud800"': "holds an invalid character",
    "a: \0": "special characters are not allowed",
    f"a: {'9' * 101}": "a number has 101 characters",
    f"a: {'[' * 40}{']' * 40}": "nests deeper than 32 levels",
    f"a: {'[' * 20_000}": "nests deeper than 32 levels",
    "a: &a {b: *a}": "nests deeper than 32 levels",
    "a: &a [*a, *a]": "nests deeper than 32 levels",
    LAUGHS: f"more than {MOST_VALUES:,} values",
    MERGES: f"more than {MOST_VALUES:,} values",
    f"a: {'x' * MOST_CHARACTERS}": "at most 1,000,000 characters",
    f"a: !{'x' * 10_000} 1": "could not determine a constructor",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:20]))
def test_what_is_no_yaml_of_plain_values(text):
    started = time.monotonic()
    with pytest.raises(UsageError) as caught:
        parse_yaml(text, "mine.yaml")
    message = str(caught.value)
    assert message.startswith("mine.yaml ")
    assert BROKEN[text] in message
    assert len(message) < 400 and "\n" not in message
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("read", [load_recipe, load_run_config, load_plan])
@pytest.mark.parametrize("text", [LAUGHS, MERGES, "a: &a {b: *a}", "1: 2", ""])
def test_files_of_every_kind(read, text, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(str(path))
    assert all(len(line) < 400 for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\xff\xfe\x00", "is not valid YAML"),
        ("a: 1".encode("utf-16"), "is not valid YAML"),
        (b"a: " + b"x" * 2 * MOST_CHARACTERS, "at most 1,000,000 characters"),
    ],
)
def test_files_that_are_no_text_or_too_large(content, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_yaml(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path)


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-3", -3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-.inf", float("-inf")),
        # YAML 1.1 reads these as 8, 90, and a date.
        ("010", "010"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
    ],
)
def test_numbers_are_those_that_a_reader_sees(text, value):
    assert parse_yaml(text) == value
    assert type(parse_yaml(text)) is type(value)


def test_what_is_written_is_read():
    texts = ["1e-3", "010", "1:30", "2001-01-01", "yes", ".5", "1_0", "0x1F"]
    texts += ["null", "0b1", "x:", "\u00e9", "", "a: b"]
    values = {"texts": texts, "numbers": [1e-5, 1e30, -3, True]}
    assert parse_yaml(dump_yaml(values)) == values


@pytest.mark.parametrize("part", ["common", "sources", "presets", "base"])
@pytest.mark.parametrize("value", ["3", "[1]", "true", ".nan", "{1: 2}"])
def test_parts_of_a_recipe_of_another_type(part, value, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"{part}: {value}")
    with pytest.raises(UsageError, match=f"Configuration key `{part}"):
        resolve(str(path), "digits")


@pytest.mark.parametrize(
    "setting",
    [
        "model: 3",
        "model: {backbone: [1]}",
        "model: {weights: 3}",
        "model: {1: 2}",
        "optimizer: 3",
        "optimizer: {head: 3}",
        "sampling: [1]",
        "loss: 3",
        "loss: {softmax: 3}",
        "loss: [{name: [1]}]",
        "loss: [{name: softmax, arguments: 3}]",
        "stages: 3",
        "stages: {main: 3}",
        "stages: {main: {train: 3}}",
        "stages: {main: {1: {2: 3}}}",
        "stages: [{phases: [null]}]",
    ],
)
def test_settings_of_another_type(setting, tmp_path):
    path = tmp_path / "mine.yaml"
    valid = {
        "loss": "loss: [{name: softmax}]",
        "stages": "stages: [{phases: [{}]}]",
    }
    key = setting.partition(":")[0]
    parts = {**valid, key: setting}
    for part, written in ((valid, True), (parts, False)):
        path.write_text(f"base: _base\ndefault: {{{', '.join(part.values())}}}")
        if written:
            resolve(str(path), "digits")
    with pytest.raises(UsageError, match=key):
        resolve(str(path), "digits")


def test_bases_of_bases_are_read_once(tmp_path):
    """Forty levels of two bases each stand for a billion files."""
    for level in range(40):
        above = f"{level + 1}"
        for name in (f"{level}", f"{level}_other"):
            (tmp_path / f"{name}.yaml").write_text(
                f"base: [{above}.yaml, {above}_other.yaml]"
            )
    for name in ("40", "40_other"):
        (tmp_path / f"{name}.yaml").write_text("base: _base")
    assert len(load_recipe(str(tmp_path / "0.yaml")).bases) == 81


def test_a_mapping_of_settings_holds_plain_values():
    for value in ({1}, 10**5000, float):
        with pytest.raises(UsageError, match="`settings` must map keys to"):
            resolve("bn", "digits", overrides={"model.dim": value})
