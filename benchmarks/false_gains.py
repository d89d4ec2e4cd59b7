"""How often the best of five equal embedders is taken for a better one.

Gains of 0 on made-up validation images: `classes` classes of `images` images,
noise of 0.15 per image and of `spread` per class, correlated by 0.8 among the
embedders.
"""

import numpy as np

SETS = ((2, 40), (4, 40), (8, 75), (10, 60), (20, 30))
SPREADS = (0.0, 0.02)
REPEATS, EMBEDDERS, RESAMPLES = 300, 5, 1000
SHARED, NOISE = 0.8, 0.15


def noise(rng, rows):
    """Noise of all embedders, a part of it shared."""
    shared = np.sqrt(SHARED) * rng.normal(size=(rows, 1))
    return shared + np.sqrt(1 - SHARED) * rng.normal(size=(rows, EMBEDDERS))


def is_sure(rng, gains, classes, level):
    """Whether the interval of a bootstrap of these units is above zero."""
    totals, counts = np.bincount(classes, gains), np.bincount(classes)
    drawn = rng.integers(len(counts), size=(RESAMPLES, len(counts)))
    means = totals[drawn].sum(1) / counts[drawn].sum(1)
    return np.quantile(means, (1 - level) / 2) > 0


def main() -> None:
    """Prints the share of false gains by what is drawn and the level."""
    rng = np.random.default_rng(0)
    for number, images in SETS:
        for spread in SPREADS:
            found = []
            for _ in range(REPEATS):
                of_class = spread * noise(rng, number)
                gains = np.repeat(of_class, images, axis=0)
                gains = gains + NOISE * noise(rng, number * images)
                best = gains[:, gains.mean(axis=0).argmax()]
                classes = np.repeat(np.arange(number), images)
                alone = np.arange(len(best))
                both = is_sure(rng, best, alone, 0.99) and is_sure(
                    rng, best, classes, 0.99
                )
                found.append((is_sure(rng, best, alone, 0.95), both))
            before, now = np.mean(found, axis=0)
            print(
                f"{number:3} classes of {images} images, spread {spread:.2f}: "
                f"images 95 % {before:.3f}, images and classes 99 % {now:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
