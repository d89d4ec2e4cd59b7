import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data import augmentation as augment
from keras_dml.data import resizing
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.made_classes import with_quarter_turns
from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import evaluation_batches, train_batches
from keras_dml.data.sampling import balanced_batches
from keras_dml.data.shuffled_passes import random_batches
from keras_dml.errors import UsageError
from tests.data.stand_ins import write_image

COUNT = 14
EVERYTHING = Augmentation(
    flip=True,
    rotation=10,
    translation=0.1,
    scale=(0.9, 1.1),
    shear=5,
    brightness=0.2,
    contrast=0.2,
    saturation=0.2,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    suffixes = itertools.cycle([".jpg", ".png", ".bmp"])
    paths = [
        write_image(folder / f"{i}{next(suffixes)}", 80 + i * 10, (24 + i, 30))
        for i in range(COUNT)
    ]
    return Manifest(
        "files", np.arange(COUNT) // 2, "abcdefg", np.arange(COUNT), paths
    )


@pytest.fixture(scope="module")
def arrays():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (COUNT, 16, 16, 1), dtype=np.uint8)
    return Manifest(
        "arrays",
        np.arange(COUNT) // 2,
        "abcdefg",
        np.arange(COUNT),
        images=images,
    )


@pytest.fixture(params=["files", "arrays"])
def manifest(request):
    return request.getfixturevalue(request.param)


def balanced(epoch):
    return balanced_batches(np.arange(COUNT) // 2, 3, 2, 0, epoch)


def shuffled(epoch):
    return random_batches(COUNT, 4, 0, epoch)


def take(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def assert_same(first, second):
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[0]["image"], other[0]["image"])
        np.testing.assert_array_equal(one[0]["label"], other[0]["label"])
        np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("crop", ["random_resized", "random", "center"])
def test_structure_and_range(manifest, channels, crop):
    augmentation = Augmentation(crop=crop, resize=20, flip=True)
    dataset = train_batches(
        manifest,
        balanced,
        image_size=16,
        channels=channels,
        augmentation=augmentation,
    )
    spec, label_spec = dataset.element_spec
    assert spec["image"].shape == (6, 16, 16, channels)
    assert spec["image"].dtype == tf.float32
    assert spec["label"].shape == label_spec.shape == (6,)
    assert label_spec.dtype == tf.int32
    for inputs, labels in take(dataset, 4):
        assert inputs["image"].min() >= 0
        assert inputs["image"].max() <= 255.01
        assert np.ptp(inputs["image"]) > 10
        np.testing.assert_array_equal(inputs["label"], labels)


def test_labels_are_those_of_the_sampler(manifest):
    batches = take(train_batches(manifest, balanced, image_size=8), 4)
    expected = [rows for epoch in (0, 1) for rows in balanced(epoch)]
    for (_, labels), rows in zip(batches, expected, strict=True):
        np.testing.assert_array_equal(labels, manifest.labels[rows])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [balanced, shuffled])
def test_two_builds_are_identical(manifest, sampler):
    runs = [
        take(
            train_batches(
                manifest,
                sampler,
                image_size=12,
                seed=5,
                augmentation=EVERYTHING,
            ),
            9,
        )
        for _ in range(2)
    ]
    assert_same(*runs)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [balanced, shuffled])
def test_a_resumed_run_sees_what_the_whole_run_sees(manifest, sampler):
    steps = len(sampler(0))
    options = {"image_size": 12, "augmentation": EVERYTHING}
    whole = take(train_batches(manifest, sampler, **options), 4 * steps)
    resumed = train_batches(manifest, sampler, first_epoch=2, **options)
    assert_same(whole[2 * steps :], take(resumed, 2 * steps))


@pytest.mark.slow
def test_seed_and_epoch_change_the_images(manifest):
    def first_batch(**options):
        dataset = train_batches(
            manifest, lambda epoch: [np.arange(6)], image_size=12, **options
        )
        return take(dataset, 1)[0][0]["image"]

    reference = first_batch()
    assert (first_batch(seed=1) != reference).any()
    assert (first_batch(first_epoch=1) != reference).any()
    np.testing.assert_array_equal(first_batch(seed=0), reference)


def test_independent_of_parallelism(files):
    dataset = train_batches(files, balanced, image_size=12)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    assert_same(take(dataset, 6), take(dataset.with_options(options), 6))


def test_views_of_an_image_differ(files):
    dataset = train_batches(
        files, lambda epoch: [np.zeros(4, np.int64)], image_size=12
    )
    images = take(dataset, 1)[0][0]["image"]
    assert (images[0] != images[1]).any()


def test_batches_are_whole_and_carry_the_rest_over(manifest):
    """14 images: three batches of four an epoch, the rest comes in the next."""
    dataset = train_batches(
        manifest, shuffled, image_size=8, augmentation=EVERYTHING
    )
    assert dataset.element_spec[1].shape == (4,)
    drawn = np.concatenate([labels for _, labels in take(dataset, 7)])
    np.testing.assert_array_equal(np.sort(drawn[:COUNT]), manifest.labels)
    np.testing.assert_array_equal(np.sort(drawn[COUNT:]), manifest.labels)


def test_batches_of_several_sizes_are_refused(manifest):
    with pytest.raises(UsageError, match=r"one size .* sizes \[2, 4\]"):
        train_batches(
            manifest, lambda epoch: [np.arange(4), np.arange(2)], image_size=8
        )


def test_an_array_without_augmentation_passes_unchanged(arrays):
    dataset = train_batches(
        arrays,
        lambda epoch: [np.arange(COUNT)],
        image_size=16,
        channels=1,
        augmentation=Augmentation(crop="center"),
    )
    images = take(dataset, 1)[0][0]["image"]
    np.testing.assert_array_equal(images, arrays.images)


def test_flips_mirror_half_of_the_images(arrays):
    rows = np.zeros(200, np.int64)
    dataset = train_batches(
        arrays,
        lambda epoch: [rows],
        image_size=16,
        channels=1,
        augmentation=Augmentation(crop="center", flip=True),
    )
    images = take(dataset, 1)[0][0]["image"]
    same = (images == arrays.images[0]).all(axis=(1, 2, 3))
    mirrored = (images == arrays.images[0][:, ::-1]).all(axis=(1, 2, 3))
    assert (same ^ mirrored).all()
    assert 60 < same.sum() < 140


@pytest.mark.parametrize("batch_size", [5, 14, 100])
def test_evaluation_is_complete_and_in_order(manifest, batch_size):
    dataset = evaluation_batches(manifest, batch_size=batch_size, image_size=12)
    batches = take(dataset, -1)
    labels = np.concatenate([labels for _, labels in batches])
    np.testing.assert_array_equal(labels, manifest.labels)
    images = np.concatenate([inputs["image"] for inputs, _ in batches])
    assert images.shape == (COUNT, 12, 12, 3)
    assert dataset.element_spec[0]["image"].shape == (None, 12, 12, 3)


@pytest.mark.parametrize("kind", ["files", "arrays"])
def test_turned_images_are_turned_in_training_and_evaluation(kind, request):
    manifest = request.getfixturevalue(kind)
    turned = with_quarter_turns(manifest)
    rows = np.arange(len(turned))[:: len(manifest) // 2]
    plain = Augmentation(crop="center")

    def trained(images, rows):
        batches = train_batches(
            images, lambda epoch: [rows], image_size=16, augmentation=plain
        )
        ((inputs, _),) = take(batches, 1)
        return inputs["image"]

    expected = trained(manifest, rows % len(manifest))
    found = trained(turned, rows)
    (inputs, labels), *_ = evaluation_batches(
        turned.select(rows), batch_size=len(rows), image_size=16
    )
    assert labels.numpy().tolist() == turned.labels[rows].tolist()
    for place, turn in enumerate(turned.turn[rows]):
        image = np.rot90(expected[place], turn)
        np.testing.assert_array_equal(found[place], image)
        np.testing.assert_array_equal(inputs["image"][place], image)


def test_evaluation_resizes_as_documented(files, arrays):
    dataset = evaluation_batches(
        files, batch_size=3, image_size=12, resize=14, channels=3
    )
    image = take(dataset, 1)[0][0]["image"][1]
    pixels = tf.io.decode_png(tf.io.read_file(files.paths[1]))
    expected = resizing.resize_and_crop(pixels, 12, 14)
    np.testing.assert_allclose(image, expected, atol=1e-3)
    dataset = evaluation_batches(arrays, batch_size=3, image_size=40)
    image = take(dataset, 1)[0][0]["image"][1]
    expected = resizing.resize(arrays.images[1], (40, 40))
    np.testing.assert_allclose(
        image, np.repeat(expected, 3, axis=-1), atol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 4}, "`channels` must be 1 or 3"),
        ({"steps_per_epoch": 3}, "`steps_per_epoch` must be the number"),
        ({"augmentation": Augmentation(resize=8)}, "`resize` must be at least"),
    ],
)
def test_errors(arrays, options, message):
    with pytest.raises(UsageError, match=message):
        train_batches(arrays, balanced, image_size=16, **options)


def test_a_sampler_without_a_batch_is_refused(arrays):
    with pytest.raises(UsageError, match="`sampler` must give at least one"):
        train_batches(arrays, lambda epoch: [], image_size=16)


def test_a_sampler_that_changes_its_sizes_is_an_error(arrays):
    dataset = train_batches(
        arrays, lambda epoch: [np.arange(4 - epoch)], image_size=16
    )
    with pytest.raises(tf.errors.OpError, match="other sizes in epoch 1"):
        take(dataset, 2)


def test_the_end_of_an_iteration_does_not_wait_for_a_tuner(manifest):
    """TensorFlow's destructor may wait up to 60 s for it."""
    trains = train_batches(manifest, shuffled, image_size=16)
    shows = evaluation_batches(manifest, batch_size=4, image_size=16)
    for dataset in (trains, shows, shows.repeat().rebatch(4)):
        assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize(
    "change, augmentation",
    [
        (augment.random_affine, Augmentation(crop="center", rotation=30)),
        (augment.random_color, Augmentation(crop="center", brightness=0.5)),
    ],
)
def test_batches_are_changed_by_the_draws_of_their_step(
    change, augmentation, arrays
):
    (batch,) = take(
        train_batches(
            arrays,
            shuffled,
            image_size=16,
            channels=1,
            seed=3,
            first_epoch=2,
            first_step=1,
            augmentation=augmentation,
        ),
        1,
    )
    rows = list(shuffled(2))[1]
    images = tf.constant(arrays.images[rows], tf.float32)
    drawn = tf.constant(augment.draws(3, 2, 1, len(rows)))
    expected = change(images, drawn, augmentation)
    assert np.abs(expected - images).max() > 5
    np.testing.assert_allclose(batch[0]["image"], expected, atol=1e-3)
