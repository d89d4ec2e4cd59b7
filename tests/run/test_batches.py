import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.run.batches import make_sampler
from keras_dml.run.replica_checks import check_batches

MANIFEST = Manifest(
    name="squares",
    labels=np.repeat(np.arange(20), 5),
    class_names=[str(number) for number in range(20)],
    ids=np.arange(100),
    images=np.zeros((100, 2, 2, 1), np.uint8),
)


def settings(**sampling):
    listed = [f"sampling.{key}={value}" for key, value in sampling.items()]
    return resolve("norm_softmax", "digits", overrides=listed)


@pytest.mark.parametrize("replicas", [1, 2, 3, 6])
def test_batches_that_divide_pass(replicas):
    balanced = settings(kind="balanced", batch_size=24, images=4, classes=6)
    check_batches(MANIFEST, balanced, replicas)
    check_batches(
        MANIFEST,
        settings(kind="random", batch_size=24),
        replicas,
    )


@pytest.mark.parametrize(
    "sampling, replicas, message",
    [
        (
            {"kind": "triplets", "batch_size": 12, "triplets": "TRIPLETS"},
            3,
            "the multiples of 9, such as 9 or 18.",
        ),
        (
            {"kind": "random", "batch_size": 30},
            4,
            "by the 4 devices. Received: a batch of 30 images. Sizes that do "
            "are the multiples of 4, such as 28 or 32.",
        ),
        (
            {"kind": "random", "batch_size": 3},
            4,
            "the multiples of 4, such as 4.",
        ),
        (
            # 24 images divide by 4, but not the 6 groups of 4.
            {"kind": "balanced", "batch_size": 24, "images": 4, "classes": 6},
            4,
            "with 4 images of each class. Received: a batch of 24 images. "
            "Sizes that do are the multiples of 16, such as 16 or 32 "
            "(`sampling.classes` must be a multiple of 4).",
        ),
    ],
)
def test_other_batches_are_refused_with_sizes_that_do(
    sampling, replicas, message, tmp_path
):
    if "triplets" in sampling:
        file = tmp_path / "triplets.csv"
        file.write_text("anchor,positive,negative\n" + "0,1,5\n" * 9)
        sampling = {**sampling, "triplets": str(file)}
    with pytest.raises(UsageError) as refused:
        check_batches(MANIFEST, settings(**sampling), replicas)
    assert message in str(refused.value)


@pytest.mark.parametrize("replicas", [1, 2, 3, 6])
def test_every_batch_is_whole_on_any_number_of_replicas(replicas):
    config = settings(kind="random", batch_size=24, steps_per_epoch="null")
    sizes = [len(rows) for rows in make_sampler(MANIFEST, config)(0)]
    assert sizes == [24] * 4
    check_batches(MANIFEST, config, replicas)
