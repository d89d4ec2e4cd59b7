"""What each LiteRT file and the ONNX file lose, weigh and take.

Run `python benchmarks/litert.py RUN` on a finished run of `keras-dml fit`.
Every artifact embeds the run's test images; size, retrieval and time of a
batch are compared with the Keras embedder and the float32 LiteRT file, all of
them in turns in one process. `--variants` adds ways to quantize that the
export does not take.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import UsageError
from keras_dml.export import (
    FORMATS,
    ExportOptions,
    export_litert,
    export_onnx,
    open_artifact,
)
from keras_dml.export.artifact import MANIFEST, make_manifest
from keras_dml.export.litert import FILE
from keras_dml.export.parity import parity
from keras_dml.export.saved_model import save_functions
from keras_dml.files import write_json
from keras_dml.models import float32_clone, load_embedder
from keras_dml.run.batches import evaluation_batches
from keras_dml.run.data import load_run_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import with_data

LIMITS = {"size": 0.31, "latency": 0.7, "drop": 0.01}


def pixels(manifest, config):
    """All images as a client gives them."""
    batches = evaluation_batches(manifest, config)
    return np.concatenate(
        [np.rint(inputs["image"]).astype("uint8") for inputs, _ in batches]
    )


def whole_classes(manifest, count):
    """The first classes of about `count` images."""
    images = np.cumsum(np.bincount(manifest.labels))
    last = min(np.searchsorted(images, count), len(images) - 1)
    return manifest.select(manifest.labels <= last)


def export_variant(embedder, folder, calibration, per_channel, int16):
    """Quantizes with the plain converter, every op that it can."""
    model = float32_clone(embedder)
    shape = (1, *model.input_shape[1:])

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.uint8, name="image")])
    def serve(image):
        images = tf.cast(image, tf.float32)
        return {"embedding": model(images, training=False)}

    with tempfile.TemporaryDirectory() as saved:
        save_functions(saved, model, {"serve": serve})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            saved, signature_keys=["serve"]
        )
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            {"image": image[None]} for image in calibration
        )
        converter._experimental_disable_per_channel = not per_channel
        ops = tf.lite.OpsSet
        converter.target_spec.supported_ops = [ops.TFLITE_BUILTINS]
        if int16:
            converter.target_spec.supported_ops = [
                ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,
                ops.TFLITE_BUILTINS,
            ]
        with without_native_output():
            content = converter.convert()
    folder.mkdir()
    (folder / FILE).write_bytes(content)
    manifest = make_manifest(
        embedder, ExportOptions(), format="litert", dynamic_batch=False
    )
    write_json(folder / MANIFEST, manifest)
    return folder


def export_all(embedder, train, folder, arguments):
    """Dict of name to artifact."""
    generator = np.random.default_rng(arguments.seed)
    order = generator.permutation(len(train))
    calibration = train[order[: arguments.calibration]]
    found = {}
    for quantize in ("none", "float16", "dynamic_range", "int8"):
        found[quantize] = export_litert(
            embedder,
            folder / quantize,
            quantize=quantize,
            calibration=calibration,
        )
    for quantize in ("none", "int8"):
        found[f"{quantize}, dynamic batch"] = export_litert(
            embedder,
            folder / f"{quantize}-dynamic",
            quantize=quantize,
            dynamic_batch=True,
            calibration=calibration,
        )
    try:
        FORMATS["onnx"].check(ExportOptions())
    except UsageError as error:
        print(error)
    else:
        found["onnx"] = export_onnx(embedder, folder / "onnx")
    if arguments.variants:
        for count in (20, 1000):
            found[f"int8, {count} calibration images"] = export_litert(
                embedder,
                folder / f"int8-{count}",
                quantize="int8",
                calibration=train[order[:count]],
            )
        for name, per_channel, int16 in (
            ("int8 everywhere", True, False),
            ("int8 everywhere, one scale per matrix", False, False),
            ("int16 activations, int8 weights", True, True),
        ):
            try:
                variant = export_variant(
                    embedder, folder / name, calibration, per_channel, int16
                )
                open_artifact(variant).embed(train[:1])
                found[name] = variant
            except (RuntimeError, ValueError) as error:
                print(f"{name}: {str(error).splitlines()[0]}")
    return found


def measure(arguments):
    """Rows of all artifacts of one run."""
    run = RunFolder.open(arguments.run)
    config = with_data(run.load_config(), None, arguments.data_dir)
    data = load_run_data(config)
    test = data.test
    if arguments.images:
        test = whole_classes(test, arguments.images)
    embedder = load_embedder(run.embedder)
    with tempfile.TemporaryDirectory() as folder:
        artifacts = export_all(
            embedder, pixels(data.train, config), Path(folder), arguments
        )
        rows = parity(
            embedder,
            artifacts,
            pixels(test, config),
            test.labels,
            seconds=arguments.seconds,
            threads=arguments.threads,
        )
    keras_row = rows[0]
    float32 = next(row for row in rows if row["artifact"] == "none")
    for row in rows:
        row["size_ratio"] = row["megabytes"] / float32["megabytes"]
        row["latency_ratio"] = row["batch_1_ms"] / float32["batch_1_ms"]
        for key in ("recall@1", "map@r"):
            row[f"{key}_change"] = row[key] - keras_row[key]
    int8 = next(row for row in rows if row["artifact"] == "int8")
    passed = (
        int8["size_ratio"] <= LIMITS["size"]
        and int8["latency_ratio"] <= LIMITS["latency"]
        and min(int8["recall@1_change"], int8["map@r_change"])
        >= -LIMITS["drop"]
    )
    return {"limits": LIMITS, "passed": passed, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a finished run folder")
    parser.add_argument("--data-dir", help="where the run's data are")
    parser.add_argument("--images", type=int, help="default: all test images")
    parser.add_argument("--calibration", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, help="default: all processors")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments)
    if arguments.json:
        print(json.dumps(result))
        return
    for row in result["rows"]:
        print(
            f"{row['artifact']:40} {row['megabytes']:6.2f} MB "
            f"{row['size_ratio']:5.3f}x  cosine {row['mean_cosine']:.4f} "
            f"(worst {row['worst_cosine']:.4f})  "
            f"R@1 {row['recall@1']:.4f} ({row['recall@1_change']:+.4f})  "
            f"MAP@R {row['map@r']:.4f} ({row['map@r_change']:+.4f})  "
            f"batch 1 {row['batch_1_ms']:.2f} ms {row['latency_ratio']:.2f}x  "
            f"batch 32 {row['batch_32_ms']:.1f} ms"
        )
    print(f"int8 within {LIMITS}: {result['passed']}")


if __name__ == "__main__":
    main()
