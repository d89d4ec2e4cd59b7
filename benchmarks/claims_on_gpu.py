"""The runs of a plan on one GPU, under Keras' JAX or PyTorch.

    KERAS_BACKEND=torch python benchmarks/claims_on_gpu.py photos_claims \
        --source FOLDER --source FOLDER --weights FILE --output results.jsonl

`keras-dml compare` reads photos with TensorFlow, which this does without.
Configurations, networks, heads, losses, optimizers, rates, the rows of batches
and the measuring are the package's here too; reading, cropping (by Pillow) and
the start from features stand below. Several processes share the GPU and start
no run after `--seconds`. `--read results.jsonl` prints the plan's findings.
"""

import argparse
import dataclasses
import functools
import json
import multiprocessing
import queue
import time
from pathlib import Path

import keras
import numpy as np
from PIL import Image

from keras_dml import callbacks
from keras_dml.comparison.findings import check_findings
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.records import by_arm, grouped
from keras_dml.config.plans import load_plan
from keras_dml.data import splits
from keras_dml.data.sampling import balanced_batches
from keras_dml.data.shuffled_passes import random_batches
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.models import pooled_features
from keras_dml.models.prefixes import proxies_of
from keras_dml.run.compiling import compile_for, unfreeze
from keras_dml.run.loss_terms import heat_up, loss_head
from keras_dml.run.models import build_models


class Photos:
    """The photos of a folder of classes, decoded, and their labels."""

    def __init__(self, folder):
        images = Path(folder) / "images"
        images = images if images.is_dir() else Path(folder)
        classes = sorted(one for one in images.iterdir() if one.is_dir())
        files = [sorted(one.iterdir()) for one in classes]
        self.photos = [
            Image.open(path).convert("RGB") for of in files for path in of
        ]
        self.labels = np.repeat(
            np.arange(len(files)), [len(of) for of in files]
        )

    def square(self, row, size):
        """The center of a photo whose shorter side is `size`."""
        photo = self.photos[row]
        side = min(photo.size)
        left, top = ((one - side) / 2 for one in photo.size)
        box = (left, top, left + side, top + side)
        return photo.resize((size, size), Image.Resampling.BILINEAR, box)

    def crop(self, row, size, settings, draws):
        """A random resized crop, mirrored and lit at random."""
        photo = self.photos[row]
        width, height = photo.size
        low, high = np.log(settings.aspect)
        for _ in range(10):
            area = draws.uniform(*settings.area) * width * height
            aspect = np.exp(draws.uniform(low, high))
            w, h = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w = h = min(width, height)
        left = draws.integers(width - w + 1)
        top = draws.integers(height - h + 1)
        box = (left, top, left + w, top + h)
        pixels = np.asarray(
            photo.resize((size, size), Image.Resampling.BILINEAR, box),
            np.float32,
        )
        if settings.flip and draws.random() < 0.5:
            pixels = pixels[:, ::-1]
        light = 1 + draws.uniform(-1, 1) * settings.brightness
        return np.clip(pixels * light, 0, 255)


class Batches(keras.utils.PyDataset):
    """The training batches of a run, epoch after epoch."""

    def __init__(self, photos, rows, labels, config):
        super().__init__(workers=2, max_queue_size=8)
        self.photos, self.rows, self.labels = photos, rows, labels
        self.config, self.epoch = config, 0
        self.batches = self._drawn()

    def _drawn(self):
        settings, config = self.config.sampling, self.config
        draw = {
            "seed": config.seed,
            "epoch": self.epoch,
            "steps": settings.steps_per_epoch,
        }
        if settings.by_class:
            present = len(np.unique(self.labels))
            wanted = settings.batch_size // settings.images
            return list(
                balanced_batches(
                    self.labels, min(wanted, present), settings.images, **draw
                )
            )
        return list(
            random_batches(
                len(self.labels),
                settings.batch_size,
                drop_remainder=settings.drop_remainder,
                **draw,
            )
        )

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, step):
        config, chosen = self.config, self.batches[step]
        draws = np.random.default_rng((config.seed, self.epoch, step))
        size = config.data.train_shape[0]
        images = [
            self.photos.crop(row, size, config.augmentation, draws)
            for row in self.rows[chosen]
        ]
        labels = self.labels[chosen].astype("int32")
        return {"image": np.stack(images), "label": labels}, labels

    def on_epoch_end(self):
        self.epoch += 1
        self.batches = self._drawn()


def computed(model, images):
    """What a model makes of images; `predict` keeps nothing for gradients."""
    return model.predict(images.astype("float32"), batch_size=256, verbose=0)


def start(models, config, features, labels, validation):
    """Sets head and proxies from features, as `fit` does without prefixes."""
    head = models.embedder.get_layer("head")
    found = {}
    for shrinkage in config.model.whitening or []:
        head.assign_whitening(features, labels, shrinkage)
        found[shrinkage] = measured(head(validation[0]), validation[1])["map@r"]
    if found:
        best = max(found, key=found.get)
        head.assign_whitening(features, labels, best)
    layers = {layer.name for layer in models.trainer.layers}
    if config.model.proxies.class_means and "proxies" in layers:
        embeddings = head(features, training=False)
        for layer in proxies_of(models.trainer, head.dim).values():
            layer.assign_class_means(embeddings, labels)


def measured(rows, labels):
    rows = keras.ops.convert_to_numpy(rows)
    return evaluate_retrieval(rows, labels, k=(1,)).metrics


def settled(config, size):
    """The configuration with what `fit` takes from photos of this side."""
    stride = 32
    train_size = round(size * config.data.train_share / stride) * stride
    data = {"natural_size": size, "train_size": train_size, "channels": 3}
    return config.changed(data=data)


def train(config, photos):
    """Trains one run; returns its metrics on test classes, by moment."""
    keras.utils.clear_session()
    size = config.data.image_size
    config = settled(config, size)
    half = photos.labels <= photos.labels.max() // 2  # the larger half
    train_rows, test_rows = np.flatnonzero(half), np.flatnonzero(~half)
    held = splits.hold_out_classes(
        photos.labels[train_rows],
        config.data.validation_fraction,
        config.seed,
        config.data.validation_from,
    )
    validates = np.isin(photos.labels[train_rows], held)
    fit_rows, validation_rows = train_rows[~validates], train_rows[validates]
    labels = np.unique(photos.labels[fit_rows], return_inverse=True)[1]
    squares = {
        name: np.stack([np.asarray(photos.square(row, size)) for row in rows])
        for name, rows in (
            ("fit", fit_rows),
            ("validation", validation_rows),
            ("test", test_rows),
        )
    }
    models = build_models(config, int(labels.max()) + 1)
    network = pooled_features(models.embedder)
    features = {name: computed(network, of) for name, of in squares.items()}
    validation = features["validation"], photos.labels[validation_rows]
    start(models, config, features["fit"], labels, validation)
    test_labels = photos.labels[test_rows]
    head = models.embedder.get_layer("head")
    found = {
        "pretrained": measured(features["test"], test_labels),
        "before": measured(head(features["test"]), test_labels),
    }
    batches = Batches(photos, fit_rows, labels, config)
    (stage,) = config.stages
    if any(phase.refresh_bn for phase in stage.phases):
        raise SystemExit("This program does not refresh batch statistics.")
    before = 0
    for phase in stage.phases:
        compile_for(
            models.trainer,
            phase,
            config,
            phase.epochs,
            len(batches),
            epochs_before=before,
        )
        before += phase.epochs
        listed = loss_head(config.loss).callbacks(
            lambda epoch: (labels[rows] for rows in batches.batches), print
        )
        if phase.heat is not None:
            listed.append(heat_up(phase.heat))
        models.trainer.fit(
            batches,
            epochs=phase.epochs,
            shuffle=False,
            verbose=0,
            callbacks=[callbacks.TerminateOnNonFiniteLoss(), *listed],
        )
        unfreeze(models.trainer)
    after = computed(models.embedder, squares["test"])
    return {**found, "after": measured(after, test_labels)}


def work(waiting, output, end):
    """Trains what waits until nothing does, or until `end`."""
    known = functools.cache(Photos)
    while time.time() < end:
        try:
            job = waiting.get_nowait()
        except queue.Empty:
            return
        started = time.time()
        try:
            found = train(job.config, known(job.config.data.source))
        except Exception as error:  # the other runs go on
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        line = {
            "run": job.run,
            "arm": job.record.arm,
            "source": Path(job.config.data.source).name,
            "seed": job.config.seed,
            **found,
            "seconds": round(time.time() - started, 1),
        }
        print(line, flush=True)
        with open(output, "a") as file:
            file.write(json.dumps(line) + "\n")


def planned(arguments):
    plan = load_plan(arguments.plan)
    changes = {}
    if arguments.weights:
        changes["weights"] = arguments.weights
    if arguments.source:
        changes["sources"] = arguments.source
    for name in ("seeds", "budget"):
        if getattr(arguments, name):
            changes[name] = getattr(arguments, name)
    return plan.changed(**changes)


def read(path, plan):
    """Prints the means of a plan's arms over their seeds, and its findings."""
    lines = map(json.loads, Path(path).read_text().splitlines())
    done = {line["run"]: line for line in lines if "after" in line}
    records = [
        dataclasses.replace(
            job.record,
            status="done",
            **{
                name: done[job.run][name]
                for name in ("pretrained", "before", "after")
            },
        )
        for job in make_jobs(plan)
        if job.run in done
    ]
    for arm, runs in by_arm(records).items():
        for source, of in grouped(runs, lambda run: run.source).items():
            found = [
                f"{name} {np.mean([run.after[name] for run in of]):.3f}"
                for name in plan.metrics
            ]
            print(f"{Path(source).name:20}{arm:20}{len(of)} runs", *found)
    for finding in check_findings(plan.findings, records):
        print(finding.sentence)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan")
    parser.add_argument("--source", action="append")
    parser.add_argument("--weights", help="needed to train")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--budget", type=json.loads)
    parser.add_argument("--arms", nargs="+")
    parser.add_argument("--output", default="results.jsonl")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--read", metavar="FILE")
    arguments = parser.parse_args()
    plan = planned(arguments)
    if arguments.read:
        read(arguments.read, plan)
        return
    if not arguments.weights:
        parser.error("--weights is needed to train")
    end = time.time() + arguments.seconds
    jobs = [
        job
        for job in make_jobs(plan)
        if not arguments.arms or job.record.arm in arguments.arms
    ]
    context = multiprocessing.get_context("spawn")
    waiting = context.Queue()
    for job in jobs:
        waiting.put(job)
    time.sleep(1)  # until a thread has written them
    # What is not begun in time stays in the queue.
    waiting.cancel_join_thread()
    workers = [
        context.Process(target=work, args=(waiting, arguments.output, end))
        for _ in range(arguments.processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
