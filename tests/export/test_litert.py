"""The LiteRT file answers as the embedder does, with numpy alone."""

import json

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from keras_dml.data import readers
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation import retrieval_metrics
from keras_dml.export import export_litert
from keras_dml.layers import ImagePreprocessing
from tests.conformance import to_numpy
from tests.export.clients import cosines, run_litert
from tests.export.kinds import MODELS

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (16, 16, 16, 3)).astype("uint8")

BARE = """
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(sys.argv[1]).get_signature_runner("serve")
    images = np.load(sys.argv[2])
    rows = [run(image=image[None])["embedding"] for image in images]
    np.save(sys.argv[3], np.concatenate(rows))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_answers_as_the_embedder(name, make_embedder, tmp_path):
    embedder = make_embedder(**MODELS[name])
    images = IMAGES[..., : embedder.input_shape[-1]]
    folder = export_litert(embedder, tmp_path / "litert")
    actual, expected = run_litert(folder, images), to_numpy(embedder(images))
    assert actual.dtype == np.float32
    # Half precision is left behind, and with it its rounding.
    tolerance = 0.05 if "mixed" in name else 1e-4
    np.testing.assert_allclose(actual, expected, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_int8_answers_nearly_as_the_embedder(name, make_embedder, tmp_path):
    embedder = make_embedder(**MODELS[name])
    images = IMAGES[..., : embedder.input_shape[-1]]
    folder = export_litert(
        embedder,
        tmp_path / "litert",
        quantize="int8",
        dynamic_batch=True,
        calibration=iter(images),
    )
    actual = run_litert(folder, images, batch_size=5)
    assert cosines(actual, to_numpy(embedder(images))).min() > 0.998
    if embedder.layers[-1].name == "unit":
        np.testing.assert_allclose(np.linalg.norm(actual, axis=1), 1, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantize", "share", "cosine"),
    [("float16", 0.51, 0.99999), ("dynamic_range", 0.27, 0.999)],
)
def test_lighter_weights(quantize, share, cosine, make_embedder, tmp_path):
    embedder = make_embedder()
    full = export_litert(embedder, tmp_path / "full")
    light = export_litert(embedder, tmp_path / "light", quantize=quantize)
    assert size_of(light) < share * size_of(full)
    actual = run_litert(light, IMAGES)
    assert cosines(actual, to_numpy(embedder(IMAGES))).min() > cosine


@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_a_zero_vector_stays_zero(quantize, make_embedder, tmp_path):
    """XNNPACK says that 1 / sqrt(0) is NaN, Keras that it is infinite."""
    embedder = make_embedder()
    embedder.get_layer("head").set_weights(
        [0 * weight for weight in embedder.get_layer("head").get_weights()]
    )
    folder = export_litert(
        embedder, tmp_path / "litert", quantize=quantize, calibration=IMAGES
    )
    np.testing.assert_array_equal(to_numpy(embedder(IMAGES[:2])), 0)
    np.testing.assert_array_equal(run_litert(folder, IMAGES[:2]), 0)


def size_of(folder):
    return (folder / "embedder.tflite").stat().st_size


def test_int8_stays_in_range_on_images_darker_than_those_it_has_seen(tmp_path):
    """Gray calibration images leave black and white to be clipped."""
    # Its one matrix is too much of the whole to stay in float32.
    image = keras.Input((16, 16, 3), name="image")
    x = keras.layers.Conv2D(4, 3, padding="same")(image)
    x = keras.layers.GlobalAveragePooling2D()(x)
    folder = export_litert(
        keras.Model(image, x),
        tmp_path / "litert",
        quantize="int8",
        calibration=100 + IMAGES // 8,
    )
    (scale,) = [
        tensor["quantization"]
        for tensor in interpret(folder).get_tensor_details()
        if tensor["dtype"] == np.int8
        and tensor["shape"].tolist() == [1, 16, 16, 3]
    ]
    # Every gray level has an int8 of its own.
    assert scale == (1.0, -128)


def test_int8_preprocessing_merges_no_gray_levels(tmp_path):
    """In int8 `x / 127.5 - 1` has 170 levels: the quotient goes up to 2."""
    image = keras.Input((16, 16, 3), name="image")
    x = ImagePreprocessing("tf", name="preprocessing")(image)
    # With a border of zeros the division cannot be folded into the kernel.
    x = keras.layers.Conv2D(4, 3, padding="same")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    folder = export_litert(
        keras.Model(image, x),
        tmp_path / "litert",
        quantize="int8",
        calibration=IMAGES,
    )
    (scale, _), *others = [
        tensor["quantization"]
        for tensor in interpret(folder).get_tensor_details()
        if tensor["dtype"] == np.int8
        and tensor["shape"].tolist() == [1, 16, 16, 3]
    ]
    assert len(others) == 0
    assert scale == pytest.approx(1 / 127.5)


def interpret(folder):
    return Interpreter(str(folder / "embedder.tflite"))


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_ops_are_built_in_and_matrices_of_int8(
    quantize, make_embedder, tmp_path
):
    folder = export_litert(
        make_embedder(pooling="k_max", k=2),
        tmp_path / "litert",
        quantize=quantize,
        calibration=IMAGES,
    )
    ops = json.loads((folder / "manifest.json").read_text())["ops"]
    assert not [op for op in ops if op.startswith(("CUSTOM", "Flex"))]
    # From the image, and around the vectors: three crossings at most.
    assert ops.get("QUANTIZE", 0) == (2 if quantize == "int8" else 0)
    assert ops["CONV_2D"] == 7
    kernels = kernels_of(folder)
    # Small enough for float32 are the weights of the first.
    assert kernels.pop((32, 3, 3, 3)) == np.float32
    assert set(kernels.values()) == {
        np.int8 if quantize == "int8" else np.float32
    }


def kernels_of(folder):
    """Dict of shape to type of the constants of rank four."""
    details = interpret(folder).get_tensor_details()
    return {
        tuple(tensor["shape"].tolist()): tensor["dtype"]
        for tensor in details
        if len(tensor["shape"]) == 4 and tensor["shape"][0] > 1
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "in_float"),
    [
        # Two kernels of 54 and 72 weights, the third of 3 % of all.
        ((2, 4, 96, 128), 2),
        # Kernels of 0.6 and 1.5 %.
        ((4, 8, 256), 1),
        # The first has 2.2 %; that a later one were smaller is no matter.
        ((2, 4, 64), 0),
        ((4,), 0),
    ],
)
def test_int8_leaves_the_first_percent_of_the_weights_in_float32(
    widths, in_float, tmp_path
):
    image = x = keras.Input((16, 16, 3), name="image")
    for width in widths:
        x = keras.layers.Conv2D(width, 3, padding="same")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    folder = export_litert(
        keras.Model(image, x),
        tmp_path / "litert",
        quantize="int8",
        calibration=IMAGES,
    )
    shapes = [
        (width, 3, 3, before)
        for before, width in zip((3, *widths), widths, strict=False)
    ]
    assert kernels_of(folder) == {
        shape: np.float32 if i < in_float else np.int8
        for i, shape in enumerate(shapes)
    }


@pytest.mark.slow
@pytest.mark.parametrize("dynamic_batch", [False, True])
def test_input_is_uint8(dynamic_batch, make_embedder, tmp_path):
    folder = export_litert(
        make_embedder(channels=1),
        tmp_path / "litert",
        dynamic_batch=dynamic_batch,
    )
    (entry,) = interpret(folder).get_input_details()
    assert entry["dtype"] == np.uint8
    batch = -1 if dynamic_batch else 1
    assert entry["shape_signature"].tolist() == [batch, 16, 16, 1]


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_process_with_numpy_alone(quantize, make_embedder, run_bare, tmp_path):
    embedder = make_embedder(pooling="k_max", k=2)
    folder = export_litert(
        embedder, tmp_path / "litert", quantize=quantize, calibration=IMAGES
    )
    np.save(tmp_path / "images.npy", IMAGES)
    run_bare(
        BARE,
        folder / "embedder.tflite",
        tmp_path / "images.npy",
        tmp_path / "rows.npy",
        absent=("tensorflow", "keras", "keras_dml"),
    )
    rows = np.load(tmp_path / "rows.npy")
    worst = cosines(rows, to_numpy(embedder(IMAGES))).min()
    assert worst > (0.99999 if quantize == "none" else 0.998)


def test_manifest(make_embedder, tmp_path):
    folder = export_litert(
        make_embedder(normalize=False),
        tmp_path / "litert",
        metadata={"recipe": "hbn"},
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == "litert"
    assert manifest["file"] == "embedder.tflite"
    assert manifest["quantize"] == "none"
    assert manifest["dynamic_batch"] is False
    assert manifest["recipe"] == "hbn"
    assert manifest["embedding"] == {"dim": 8, "unit_length": False}


@keras.saving.register_keras_serializable(package="tests")
class InverseErrorFunction(keras.layers.Layer):
    """An op that LiteRT has not."""

    def call(self, inputs):
        return keras.ops.erfinv(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_an_unsupported_op_is_named_with_its_layer(
    quantize, make_embedder, tmp_path
):
    embedder = make_embedder()
    odd = InverseErrorFunction(name="odd_layer")(embedder.output)
    path = tmp_path / "litert"
    with pytest.raises(RunError, match=r"no built-in op for .*odd_layer"):
        export_litert(
            keras.Model(embedder.input, odd),
            path,
            quantize=quantize,
            calibration=IMAGES,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        (None, "at least one image"),
        (iter(()), "at least one image"),
        (IMAGES[:0], "at least one image"),
        (IMAGES.astype("float32"), "uint8 images .* dtype=float32"),
        (IMAGES[:, :8], r"shape \(16, 16, 3\).*shape=\(8, 16, 3\)"),
        ([IMAGES], r"shape=\(16, 16, 16, 3\)"),
    ],
)
def test_int8_without_such_images_is_refused(
    calibration, message, make_embedder, tmp_path
):
    with pytest.raises(UsageError, match=message):
        export_litert(
            make_embedder(),
            tmp_path / "litert",
            quantize="int8",
            calibration=calibration,
        )
    assert not list(tmp_path.iterdir())


def test_unknown_quantization_is_refused(make_embedder, tmp_path):
    with pytest.raises(UsageError, match=r"'int4'\. Did you mean 'int8'"):
        export_litert(make_embedder(), tmp_path / "new", quantize="int4")


def test_foreign_folder_is_refused(make_embedder, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(UsageError, match="is not an export"):
        export_litert(make_embedder(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backbone", ["mobilenet_v2", "mobilenet_v3_small", "convnext_tiny"]
)
def test_backbones_need_no_other_ops(backbone, make_embedder, tmp_path):
    embedder = make_embedder(size=32, backbone=backbone, weights="none")
    folder = export_litert(embedder, tmp_path / "litert")
    images = RNG.integers(0, 256, (2, 32, 32, 3)).astype("uint8")
    np.testing.assert_allclose(
        run_litert(folder, images), to_numpy(embedder(images)), atol=0.02
    )


@pytest.mark.data
@pytest.mark.slow
def test_int8_mobilenet_v2_finds_real_images_as_well(
    make_embedder, test_data, tmp_path
):
    photos = readers.read(str(test_data / "grocery81_96"))

    def pixels(rows):
        batches = evaluation_batches(
            photos.select(rows), batch_size=64, image_size=96
        )
        return np.concatenate(
            [np.rint(inputs["image"]).astype("uint8") for inputs, _ in batches]
        )

    test = np.flatnonzero(photos.labels >= 71)[::2]
    train = np.flatnonzero(photos.labels <= 40)[::60]
    weights = "mobilenetv2_imagenet/mobilenetv2_1.0_224_notop.weights.h5"
    embedder = make_embedder(
        size=96, backbone="mobilenet_v2", weights=str(test_data / weights)
    )
    images, labels = pixels(test), photos.labels[test]
    full = export_litert(embedder, tmp_path / "full")
    light = export_litert(
        embedder, tmp_path / "int8", quantize="int8", calibration=pixels(train)
    )
    assert size_of(light) <= 0.31 * size_of(full)
    expected = retrieval_metrics(
        embedder.predict(images, verbose=0), labels, k=1
    )
    actual = retrieval_metrics(run_litert(light, images), labels, k=1)
    assert actual["map@r"] >= expected["map@r"] - 0.01
    # A handful of images more or less, of about two hundred.
    assert actual["recall@1"] >= expected["recall@1"] - 0.03
