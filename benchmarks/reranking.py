"""What re-ranking does to the retrieval of real images without training.

    python benchmarks/reranking.py --omniglot omniglot.npz \\
        --grocery grocery81_96 --weights mobilenetv2_notop.weights.h5

Raw pixels of Omniglot's evaluation characters, and MobileNetV2's pooled
features of Grocery's classes 41 to 80 (center crops of 96 pixels). Prints the
metrics without and with each re-ranking, and the paired bootstrap of MAP@R
over classes.
"""

import argparse
from pathlib import Path

import numpy as np

from keras_dml.evaluation import (
    AlphaQueryExpansion,
    KReciprocal,
    evaluate_retrieval,
    paired_bootstrap,
)

METHODS = (
    AlphaQueryExpansion(k=3),
    AlphaQueryExpansion(),
    KReciprocal(k1=10, k2=3),
    KReciprocal(),
    KReciprocal(candidates=500),
)
FIRST_TEST_CLASS = 41
SIDE = 96


def omniglot_pixels(path):
    with np.load(path) as file:
        test = file["split"] == 1
        return file["images28"][test].reshape(-1, 28 * 28), file["label"][test]


def grocery_features(folder, weights):
    import keras

    model = keras.applications.MobileNetV2(
        include_top=False,
        weights=str(weights),
        input_shape=(SIDE, SIDE, 3),
        pooling="avg",
    )
    classes = sorted(path for path in (folder / "images").iterdir())
    features, labels = [], []
    for label, images in enumerate(classes):
        if label < FIRST_TEST_CLASS:
            continue
        crops = [center_crop(path) for path in sorted(images.iterdir())]
        features.append(model.predict_on_batch(np.stack(crops) / 127.5 - 1))
        labels += [label] * len(crops)
    return np.concatenate(features), np.array(labels)


def center_crop(path):
    import keras

    image = keras.utils.img_to_array(keras.utils.load_img(path))
    top, left = (image.shape[0] - SIDE) // 2, (image.shape[1] - SIDE) // 2
    return image[top : top + SIDE, left : left + SIDE]


def compare(name, embeddings, labels):
    print(f"\n{name}: {embeddings.shape}, {len(np.unique(labels))} classes")
    for method in METHODS:
        result = evaluate_retrieval(embeddings, labels, k=1, reranking=method)
        print(f"{method}")
        for metric, before in result.metrics.items():
            after = result.reranked.metrics[metric]
            print(f"    {metric:12} {before:.4f} -> {after:.4f}")
        found = paired_bootstrap(
            result.reranked.per_query["map@r"],
            result.per_query["map@r"],
            classes=labels,
        )
        print(
            f"    map@r {found.difference:+.4f} "
            f"[{found.low:+.4f}, {found.high:+.4f}], p = {found.p_value:.3f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--omniglot", type=Path)
    parser.add_argument("--grocery", type=Path)
    parser.add_argument("--weights", type=Path)
    arguments = parser.parse_args()
    if arguments.grocery and not arguments.weights:
        parser.error("--grocery needs the --weights of MobileNetV2.")
    if arguments.grocery:
        features = grocery_features(arguments.grocery, arguments.weights)
        compare("Grocery, pooled MobileNetV2", *features)
    if arguments.omniglot:
        compare("Omniglot, pixels", *omniglot_pixels(arguments.omniglot))


if __name__ == "__main__":
    main()
