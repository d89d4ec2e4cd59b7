"""What a training can start from: image sizes and projections, no training.

    python benchmarks/starting_points.py FOLDER... --weights FILE

Prints, for folders of photos, how pooled features of MobileNetV2 retrieve the
images of validation classes: as they are, after a principal component
analysis, and after `within_class_whitening` of several shrinkages. 40 % of
the training classes validate, drawn with seed 0; the other 60 % fit the
projections. Test classes are not read.
"""

import argparse

import keras
import numpy as np

from keras_dml.data import readers
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.ops import within_class_whitening

SIZES = (96, 128, 160, 192, 224)
SHRINKAGES = (0.03, 0.1, 0.3, 0.6, 1.0)
DIM = 512


def features_of(images, size, weights):
    network = keras.applications.MobileNetV2(
        include_top=False,
        weights=weights,
        input_shape=(size, size, 3),
        pooling="avg",
    )
    batches = evaluation_batches(images, batch_size=64, image_size=size)
    features = network.predict(
        batches.map(lambda inputs, label: inputs["image"] / 127.5 - 1),
        verbose=0,
    )
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def row(name, embeddings, labels):
    metrics = evaluate_retrieval(embeddings, labels, k=1).metrics
    print(f"| {name} | {metrics['recall@1']:.3f} | {metrics['map@r']:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--weights", required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    for folder in arguments.folders:
        images = readers.read(folder).part("train")
        classes = np.random.default_rng(0).permutation(images.num_classes)
        fits = np.isin(images.labels, classes[: int(0.6 * len(classes))])
        labels = images.labels[~fits]
        print(f"\n{folder}\n\n| start | R@1 | MAP@R |\n|---|---|---|")
        for size in arguments.sizes:
            rows = features_of(images, size, arguments.weights)
            row(f"{size} pixels", rows[~fits], labels)
            for shrinkage in SHRINKAGES:
                kernel, bias = within_class_whitening(
                    rows[fits], images.labels[fits], DIM, shrinkage
                )
                name = f"{size} pixels, shrinkage {shrinkage:g}"
                row(name, rows[~fits] @ kernel + bias, labels)


if __name__ == "__main__":
    main()
