"""The peer's side of `training_peer.py`: pytorch-metric-learning.

Images are cropped and resized by Pillow, as torchvision's transforms do it.
"""

import contextlib
import itertools
import math
import sys
import time

import numpy as np
import torch
from mobilenet_v2_torch import FEATURES, channels_first, mobilenet_v2
from PIL import Image, ImageOps
from pytorch_metric_learning import losses, miners, samplers
from sides import answer
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORKERS = 2
DIM = 512
IMAGES_OF_CLASS = 4
# The crops of MultiSimilarityLoss' authors and of the library's examples.
AREA, ASPECT = (0.16, 1.0), (3 / 4, 4 / 3)
TRUNK_RATE = 1e-4
# ProxyAnchorLoss' authors: 100 times the rate of the trunk.
PROXY_RATES = {"NormalizedSoftmaxLoss": 1e-3, "ProxyAnchorLoss": 1e-2}


def uniform(low, high):
    """Of PyTorch's generator, which differs from worker to worker."""
    return torch.empty(()).uniform_(low, high).item()


def random_crop(image):
    """The box of a random resized crop, by torchvision's rule."""
    for _ in range(10):
        area = image.width * image.height * uniform(*AREA)
        aspect = math.exp(uniform(*map(math.log, ASPECT)))
        width = round(math.sqrt(area * aspect))
        height = round(math.sqrt(area / aspect))
        if width <= image.width and height <= image.height:
            left = int(uniform(0, image.width - width + 1))
            top = int(uniform(0, image.height - height + 1))
            return left, top, left + width, top + height
    return 0, 0, image.width, image.height


class Photos(Dataset):
    """Photos from files: random crops and flips in training."""

    def __init__(self, paths, labels, side, training):
        self.paths, self.labels = paths.tolist(), labels.tolist()
        self.size, self.training = (side, side), training

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, row):
        image = Image.open(self.paths[row]).convert("RGB")
        if self.training:
            box = random_crop(image)
            image = image.crop(box).resize(self.size, Image.BILINEAR)
            if uniform(0, 1) < 0.5:
                image = ImageOps.mirror(image)
        else:
            image = ImageOps.fit(image, self.size, Image.BILINEAR)
        pixels = np.asarray(image, np.float32)
        return channels_first(pixels[None])[0], self.labels[row]


class Training:
    """A network and a loss that learn a batch at a time."""

    def __init__(self, case, loss):
        torch.manual_seed(int(case["seed"]))
        np.random.seed(int(case["seed"]))
        classes = int(case["train_labels"].max()) + 1
        self.network = nn.Sequential(trunk(case), nn.Linear(FEATURES, DIM))
        groups = [{"params": self.network.parameters(), "lr": TRUNK_RATE}]
        self.miner = None
        if loss in PROXY_RATES:
            self.loss = getattr(losses, loss)(classes, DIM)
            rate = PROXY_RATES[loss]
            groups.append({"params": self.loss.parameters(), "lr": rate})
        else:
            self.loss = getattr(losses, loss)()
            self.miner = miners.MultiSimilarityMiner()
        self.optimizer = torch.optim.AdamW(groups, weight_decay=1e-4)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]

    def step(self, images, labels, factor=1.0):
        """Learns from a batch with a factor of the learning rates."""
        for group, rate in zip(
            self.optimizer.param_groups, self.rates, strict=True
        ):
            group["lr"] = rate * factor
        self.optimizer.zero_grad()
        embeddings = self.network(images)
        pairs = self.miner(embeddings, labels) if self.miner else None
        self.loss(embeddings, labels, pairs).backward()
        self.optimizer.step()

    def embed(self, batches):
        with torch.no_grad():
            return np.concatenate(
                [self.network(images).numpy() for images, _ in batches]
            )


def trunk(case):
    return mobilenet_v2(
        [case[f"arr_{number}"] for number in range(int(case["weights"]))]
    )


def train_batches(case, balanced):
    """Endless batches from files."""
    photos = Photos(
        case["train_paths"], case["train_labels"], case["train_side"], True
    )
    size = int(case["batch"])
    order = {"shuffle": True}
    if balanced:
        order = {
            "sampler": samplers.MPerClassSampler(
                photos.labels, IMAGES_OF_CLASS, size, len(photos)
            )
        }
    loader = DataLoader(
        photos,
        size,
        num_workers=WORKERS,
        drop_last=True,
        persistent_workers=True,
        **order,
    )
    while True:
        yield from loader


class Peer:
    """Answers about the case that our side prepared."""

    def __init__(self, path):
        self.path = path
        self.case = dict(np.load(path))
        self.timed = None

    def difference(self):
        """The largest difference of a feature, of the largest feature."""
        with torch.no_grad():
            features = trunk(self.case)(channels_first(self.case["images"]))
        expected = self.case["features"]
        worst = np.abs(features.numpy() - expected).max()
        return float(worst / np.abs(expected).max())

    def rate(self, source):
        """Images that are learned in a second."""
        case = self.case
        self.timed = self.timed or Training(case, "NormalizedSoftmaxLoss")
        batches = itertools.repeat(
            (channels_first(case["images"]), torch.tensor(case["labels"]))
        )
        if source == "files":
            batches = train_batches(case, balanced=False)
        untimed, timed = case["steps"].tolist()
        for number, batch in enumerate(
            itertools.islice(batches, untimed + timed)
        ):
            if number == untimed:
                started = time.perf_counter()
            self.timed.step(*batch)
        seconds = time.perf_counter() - started
        return timed * len(case["images"]) / seconds

    def train(self, loss, seconds):
        """Trains, writes embeddings of the test images, returns steps.

        The learning rates fall to zero along a cosine, as ours do.
        """
        started, case, steps = time.perf_counter(), self.case, 0
        training = Training(case, loss)
        batches = train_batches(case, balanced=loss not in PROXY_RATES)
        with contextlib.closing(batches):
            while (spent := time.perf_counter() - started) < seconds:
                factor = (1 + math.cos(math.pi * spent / seconds)) / 2
                training.step(*next(batches), factor)
                steps += 1
        photos = Photos(
            case["test_paths"], case["test_labels"], case["test_side"], False
        )
        tests = DataLoader(photos, int(case["batch"]), num_workers=WORKERS)
        np.save(f"{self.path}.{loss}.npy", training.embed(tests))
        return steps


if __name__ == "__main__":
    answer(Peer(sys.argv[1]))
