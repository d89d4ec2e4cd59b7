"""Uploads the files of a run to the Hugging Face Hub."""

import json
from itertools import starmap
from pathlib import Path
from typing import Any

from keras_dml.console import logger
from keras_dml.errors import RunError, UsageError, reason_of
from keras_dml.push.files import CARD, files_of, stale
from keras_dml.run.trained_run import TrainedRun
from keras_dml.wording import counted

# The Hub says that a repository is missing where the token may not see it.
REFUSALS = {401, 403, 404}


def push_run(
    run: str | Path | TrainedRun,
    repository: str,
    *,
    public: bool = False,
    license_name: str | None = None,
    message: str | None = None,
) -> str:
    """Uploads a run to the Hugging Face Hub, with a card of its results.

    Uploads the embedder, its exports, settings, thresholds, results and
    history, and shortens each path to its last part. Images and embeddings of
    images stay here, and so do exports that hold some for a search. The names
    of the classes are in the manifests of exports. Replaces what an earlier
    push uploaded, the card too; other files of the repository stay.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        repository: `OWNER/NAME` on the Hub; made if it does not exist.
        public: Whether everyone may see the repository. Defaults to `False`.
        license_name: The Hub's identifier of a license for the card, such as
            `apache-2.0`. Defaults to `None`, none.
        message: What the commit says. Defaults to `None`, the folder's name.

    Returns:
        The address of the repository.

    Raises:
        UsageError: If the run is not finished, huggingface-hub is not
            installed or has no token, the Hub does not know the license, or
            the token may not write to the repository or `public` is not what
            the repository is.
        RunError: If the embedder is not that of the run, or the Hub cannot be
            reached or fails.

    Example:

    ```python
    print(push_run("runs/shoes", "ada/shoes"))
    ```
    """
    hub = _import_hub()
    _check_name(repository)
    trained = TrainedRun.of(run)
    token = hub.get_token()
    if token is None:
        raise UsageError(
            "The Hub needs a token with the right to write. Received: none. "
            "Make one at https://huggingface.co/settings/tokens, then run `hf "
            "auth login`, or set the environment variable HF_TOKEN."
        )
    # Raises if the file does not load, or is that of another run.
    _ = trained.embedder
    files = files_of(trained, repository, license_name)
    logger.info(
        "Pushing %s, %.1f MB, to %s ...",
        counted(len(files), "file"),
        sum(map(_size, files.values())) / 1e6,
        repository,
    )
    errors, card = hub.errors, files[CARD]
    assert isinstance(card, bytes)
    try:
        _check_card(hub, card, license_name)
        api = hub.HfApi(token=token)
        address = api.create_repo(repository, private=not public, exist_ok=True)
        _check_visibility(api, repository, public)
        old = stale(api.list_repo_files(repository), files)
        api.create_commit(
            repository,
            [
                *starmap(hub.CommitOperationAdd, files.items()),
                *map(hub.CommitOperationDelete, old),
            ],
            commit_message=message
            or f"Push {trained.folder.path.resolve().name}",
        )
    except UsageError:
        raise
    except errors.HfHubHTTPError as error:
        reason = error.server_message or reason_of(error)
        if error.response.status_code in REFUSALS:
            raise UsageError(
                f"The Hub refuses {repository}: {reason}. The token must have "
                "the right to write there; `hf auth whoami` says whose it is."
            ) from error
        raise _failure(repository, reason) from error
    # The client raises these too where an upload breaks off.
    except (errors.HTTPError, OSError, ValueError, RuntimeError) as error:
        if getattr(error, "filename", None) is not None:
            raise
        # Of the upload of a large file.
        reason = reason_of(error.__cause__ or error)
        raise _failure(repository, reason) from error
    return str(address)


def _failure(repository: str, reason: str) -> RunError:
    return RunError(
        f"{repository} could not be pushed: {reason.rstrip('.')}. Its files "
        "are unchanged; push again."
    )


def _import_hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError as error:
        raise UsageError(
            "A push needs huggingface-hub: install it with "
            "`pip install 'keras-dml[push]'`."
        ) from error
    return huggingface_hub


def _check_name(repository: str) -> None:
    """Raises if this cannot be the name of a repository."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(repository)
        if "/" not in repository:
            raise HFValidationError("it has no owner")
    except HFValidationError as error:
        raise UsageError(
            f"`repository` must be OWNER/NAME. Received: {repository!r}: "
            f"{reason_of(error)}. The owner is your name on the Hub, or that "
            "of your organization."
        ) from error


def _check_card(hub: Any, card: bytes, license_name: str | None) -> None:
    """Raises if the Hub does not take the card, before anything is made."""
    try:
        hub.ModelCard(card.decode()).validate()
    except ValueError as error:
        try:
            answers = json.loads(str(error))["errors"]
        except (ValueError, LookupError, TypeError):
            raise error from None
        reasons = " ".join(one["message"] for one in answers)
        raise UsageError(
            "`license_name` must be an identifier of "
            "https://huggingface.co/docs/hub/repositories-licenses. Received: "
            f"{license_name!r}; the Hub says of the card: {reasons}"
        ) from error


def _check_visibility(api: Any, repository: str, public: bool) -> None:
    """Raises if a repository was there and is not what is expected."""
    private = api.repo_info(repository).private
    if private == public:
        found = "private" if private else "public"
        raise UsageError(
            f"`public` must be {not private}, as {repository} is {found}. "
            f"Received: {public}. Change its settings on the Hub, or the "
            "argument."
        )


def _size(content: Path | bytes) -> int:
    if isinstance(content, bytes):
        return len(content)
    return content.stat().st_size
