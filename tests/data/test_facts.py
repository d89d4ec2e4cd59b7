import pytest

from keras_dml.data.facts import dataset_facts, known_datasets
from keras_dml.data.readers import READERS


def test_every_reader_has_facts():
    assert known_datasets() == sorted(READERS)


@pytest.mark.parametrize("name", sorted(READERS))
def test_facts_agree_with_each_other(name):
    facts = dataset_facts(name)
    assert facts.name == name
    assert facts.channels in (1, 3)
    assert list(facts.recall_k) == sorted(facts.recall_k)
    counts = facts.counts
    if "train_images" in counts:
        total = counts["train_images"] + counts["test_images"]
        assert total == counts["images"]
        total = counts["train_classes"] + counts["test_classes"]
        assert total == counts["classes"]
    if "query_images" in counts:
        total = counts["query_images"] + counts["gallery_images"]
        assert total == counts["test_images"]
    for file in facts.files:
        assert file.md5 is None or len(file.md5) == 32
        assert file.sha256 is None or len(file.sha256) == 64


@pytest.mark.parametrize(
    ("source", "recall_k", "flip"),
    [
        ("cub200", (1, 2, 4, 8), True),
        ("sop", (1, 10, 100, 1000), True),
        ("inshop", (1, 10, 20, 30, 40), True),
        ("omniglot", (1, 2, 4, 8), False),
        ("digits", (1, 2, 4, 8), False),
        ("tfds:stanford_online_products", (1, 10, 100, 1000), True),
        ("tfds:omniglot:3.0.0", (1, 2, 4, 8), False),
        ("tfds:mnist", (1, 2, 4, 8), True),
        ("./photos", (1, 2, 4, 8), True),
    ],
)
def test_facts_of_sources(source, recall_k, flip):
    facts = dataset_facts(source)
    assert (facts.recall_k, facts.flip) == (recall_k, flip)
