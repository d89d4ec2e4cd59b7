"""The run that hostile cases damage, which tests of the commands train too."""

from tests.cli.conftest import (  # noqa: F401
    command,
    finished_run,
    images,
    run,
)
