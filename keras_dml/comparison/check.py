"""Checks all runs of a plan before the first one starts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.protocols import get_protocol
from keras_dml.config import RunConfig
from keras_dml.config.plan_sections import ProtocolConfig
from keras_dml.data import readers
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.models import get_backbone
from keras_dml.run.data import (
    RunData,
    StageData,
    make_sampler,
    settle,
    split_data,
    stage_data,
)
from keras_dml.run.phases import check_stages


def check_jobs(jobs: Sequence[Job], protocol: ProtocolConfig) -> list[Job]:
    """Checks the data, network, classes and batches of each job.

    Lists the data but decodes no image.

    Args:
        jobs: The runs of a plan.
        protocol: Its protocol.

    Returns:
        The jobs with their numbers of steps. Their records name the weights
        that `auto` stands for.

    Raises:
        UsageError: If a job is not valid. Names every mistake once, with the
            number of runs that have it.
    """
    manifests: dict[str, Manifest | UsageError] = {}
    spoilt: dict[str, int] = {}
    checked = []
    for job in jobs:
        try:
            checked.append(_checked(job, protocol, manifests))
        except UsageError as error:
            spoilt[str(error)] = spoilt.get(str(error), 0) + 1
    if spoilt:
        raise UsageError(
            "\n".join(
                f"{mistake} ({count} of {len(jobs)} runs)"
                for mistake, count in spoilt.items()
            )
        )
    return checked


def _checked(
    job: Job,
    protocol: ProtocolConfig,
    manifests: dict[str, Manifest | UsageError],
) -> Job:
    get_backbone(job.config.model.backbone)
    data = _data(job.config, manifests)
    config = settle(job.config, data)
    check_stages(config, data)
    parts = [stage_data(data, stage, config) for stage in config.stages]
    if get_protocol(protocol).holds_out:
        _check_validation(config, data, parts[-1])
    epochs = [sum(phase.epochs for phase in s.phases) for s in config.stages]
    return dataclasses.replace(
        job,
        record=dataclasses.replace(
            job.record, weights=Path(config.model.weights).name
        ),
        steps=sum(
            count * len(make_sampler(part.fit, config)(0))
            for count, part in zip(epochs, parts, strict=True)
        ),
        validations=sum(
            count // config.evaluation.every
            for count, part in zip(epochs, parts, strict=True)
            if part.validation is not None
        ),
    )


def _check_validation(
    config: RunConfig, data: RunData, last: StageData
) -> None:
    if config.evaluation.select == "best" and last.validation is None:
        raise UsageError(
            f"{config.data.source}: the validation split is empty, so nothing "
            "could choose the epoch: there are only "
            f"{data.train.num_classes} training classes and at least 20 are "
            "needed. Use `protocol: {kind: cross_validation, folds: 2}`, or "
            "`set: {evaluation.select: last}`."
        )


def _data(
    config: RunConfig, manifests: dict[str, Manifest | UsageError]
) -> RunData:
    settings = config.data
    key = f"{settings.source}\0{settings.data_dir}"
    if key not in manifests:
        try:
            manifests[key] = readers.read(
                settings.source,
                data_dir=settings.data_dir,
                allow_partial=settings.allow_partial,
            )
        except UsageError as error:
            manifests[key] = error
    found = manifests[key]
    if isinstance(found, UsageError):
        raise found
    return split_data(found, config)
