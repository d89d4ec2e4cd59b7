"""Checks all runs of a plan before the first one starts."""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.protocols import get_protocol
from keras_dml.comparison.work import Work
from keras_dml.config import RunConfig
from keras_dml.config.plan_sections import ProtocolConfig
from keras_dml.data import readers
from keras_dml.data.made_classes import upright
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.models import get_backbone
from keras_dml.models.weights import check_weights
from keras_dml.run.batches import batch_rows, make_sampler
from keras_dml.run.data import RunData, StageData, split_data
from keras_dml.run.length import with_length
from keras_dml.run.overview import images_read
from keras_dml.run.refit import may_refit
from keras_dml.run.settling import natural_size, settle
from keras_dml.run.stage_checks import check_stages
from keras_dml.wording import listed

# So many splits of data are kept while jobs are checked.
_SPLITS = 8
# An error names so many runs.
_NAMED = 10


def check_jobs(jobs: Sequence[Job], protocol: ProtocolConfig) -> list[Job]:
    """Checks the data, network, classes and batches of each job.

    Lists the data but decodes no image.

    Args:
        jobs: The runs of a plan.
        protocol: Its protocol.

    Returns:
        The jobs with their work. Their records name the weights
        that `auto` stands for.

    Raises:
        UsageError: If a job is not valid. Names every mistake once, with the
            number of runs that have it.
    """
    read = functools.cache(_read)
    sizes: dict[tuple[str, str], int] = {}
    built: set[str] = set()
    splits: dict[str, RunData] = {}
    spoilt = Counter[str]()
    checked = []
    for job in jobs:
        try:
            checked.append(_checked(job, protocol, read, sizes, built, splits))
        except UsageError as error:
            spoilt[str(error)] += 1
    if spoilt:
        raise UsageError(
            "\n".join(
                f"{mistake} ({count} of {len(jobs)} runs)"
                if len(jobs) > 1
                else mistake
                for mistake, count in spoilt.items()
            )
        )
    return checked


def check_finished(jobs: Sequence[Job], place: PlanFolder) -> None:
    """Checks that finished runs have the settings that they now stand for.

    A recipe may have been edited, or the package upgraded, since they were
    trained.

    Args:
        jobs: The runs of a plan, from `check_jobs`.
        place: The folder of the plan.

    Raises:
        UsageError: If a finished run was trained with other settings. Names
            the runs, and the first differences.
    """
    reasons: dict[str, str] = {}
    for job in {job.run: job for job in jobs}.values():
        run = place.run(job)
        if not run.finished:
            continue
        try:
            run.check_config(job.config)
        except UsageError as error:
            named = str(run.path) in str(error)
            reasons[job.run] = f"{'' if named else f'{run.path}: '}{error}"
    if not reasons:
        return
    (_, reason), *others = reasons.items()
    text = f"{reason} To train this run again, delete this folder."
    if others:
        names = [f"`{name}`" for name, _ in others[:_NAMED]]
        if others[_NAMED:]:
            names.append(f"{len(others) - _NAMED:,} more")
        text += f" The same holds for {listed(names)}."
    raise UsageError(text)


def check_starts(jobs: Sequence[Job], place: PlanFolder) -> None:
    """Checks that the runs that are left can have their first weights.

    Args:
        jobs: The runs of a plan, from `check_jobs`.
        place: The folder of the plan.

    Raises:
        UsageError: If a backbone has no published weights, or there is no
            file of weights.
    """
    left = {
        (job.config.model.backbone, job.config.model.weights)
        for job in jobs
        if not place.run(job).finished
    }
    for name, weights in sorted(left):
        check_weights(name, weights, get_backbone(name))


def _checked(
    job: Job,
    protocol: ProtocolConfig,
    read: Callable,
    sizes: dict[tuple[str, str], int],
    built: set[str],
    splits: dict[str, RunData],
) -> Job:
    backbone = get_backbone(job.config.model.backbone)
    source = job.config.data
    manifest = read(source.source, source.data_dir, source.allow_partial)
    if isinstance(manifest, UsageError):
        raise manifest
    # Nothing but the section of the data says how they are split.
    section = repr(source)
    if section not in splits:
        if len(splits) == _SPLITS:
            splits.clear()
        splits[section] = split_data(manifest, job.config)
    data = splits[section]
    job = _with_validation(job, protocol, data)
    source = job.config.data
    # Looked up in files, so only once for the same data and network.
    key = (source.source, job.config.model.backbone)
    if key not in sizes:
        sizes[key] = natural_size(data.train, backbone)
    natural = source.natural_size or sizes[key]
    config = settle(job.config.changed(data={"natural_size": natural}), data)
    parts = check_stages(config, data, built=built)
    if get_protocol(protocol).holds_out:
        _check_validation(config, data, parts[-1])
    steps = validated = last = 0
    for index, part in enumerate(parts):
        config = with_length(config, index, part)
        stage = config.stages[index]
        epochs = sum(phase.epochs or 0 for phase in stage.phases)
        last = epochs * (
            config.sampling.steps_per_epoch
            or len(make_sampler(part.fit, config)(0))
        )
        steps += last
        if part.validation is not None:
            often = math.ceil(epochs / (config.evaluation.every or 1))
            validated += often * len(part.validation)
    steps += last * may_refit(config, parts[-1])
    weights = Path(config.model.weights).name
    record = dataclasses.replace(job.record, weights=weights)
    work = Work.of(
        config,
        steps,
        validated,
        len(data.test),
        batch_rows(parts[-1].fit, config),
    )
    return Job(job.config, record, work, _images(config, data, parts[-1]))


def _images(config: RunConfig, data: RunData, parts: StageData) -> str:
    """Says what is read, and which classes train, validate and test."""
    read = images_read(config, data)
    if data.seen:
        return read
    uses = [f"{upright(parts.fit).num_classes:,} classes train"]
    if parts.validation is not None and parts.held_out == "classes":
        uses.append(f"{parts.validation.num_classes:,} validate")
    elif parts.validation is not None and parts.held_out == "images":
        uses.append(f"{len(parts.validation):,} of their images validate")
    return f"{read}: {listed([*uses, f'{data.test.num_classes:,} test'])}"


def _read(
    source: str, data_dir: str | None, allow_partial: bool
) -> Manifest | UsageError:
    """Lists data; returns the error, so that it is found only once."""
    try:
        return readers.read(
            source, data_dir=data_dir, allow_partial=allow_partial
        )
    except UsageError as error:
        return error


def _with_validation(job: Job, protocol: ProtocolConfig, data: RunData) -> Job:
    """Lets images validate where too few classes train to leave some out."""
    settings = job.config.data
    if (
        protocol.kind != "fixed_validation"
        or data.train.num_classes >= settings.validation_from
        or settings.validation_images is not None
    ):
        return job
    share = {"validation_images": protocol.fraction}
    return dataclasses.replace(job, config=job.config.changed(data=share))


def _check_validation(
    config: RunConfig, data: RunData, last: StageData
) -> None:
    if config.evaluation.select == "best" and last.validation is None:
        raise UsageError(
            f"{config.data.source}: the validation split is empty, so nothing "
            "could choose the epoch. There are "
            f"{data.train.num_classes} training classes, and "
            f"{config.data.validation_from} are needed, some of them with two "
            "images or more. Set `data.validation_from` lower, "
            "`data.validation_images` to the share of images that validates, "
            "or `evaluation.select=last`."
        )
