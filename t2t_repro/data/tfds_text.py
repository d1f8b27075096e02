"""Read and download the text of tensorflow-datasets."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from t2t_repro.errors import UserError
from t2t_repro.progress import may_draw_bars

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

logger = logging.getLogger(__name__)

TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000
# Four attempts, each with up to 4 seconds for a connection, and pauses of 1.2 seconds.
_RETRIES = 3
_SECONDS_TO_CONNECT = 4
_SECONDS_OF_SILENCE = 60


def read_pairs(
    builder: tfds.core.DatasetBuilder, split: str, sides: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a split of downloaded text.

    Args:
        builder: Builder of the data set.
        split: "train", "dev" or "test".
        sides: Names of the features of the source and of the target.
    """
    import tensorflow_datasets as tfds

    dataset = builder.as_dataset(split=TFDS_SPLITS[split], shuffle_files=False)
    for batch in tfds.as_numpy(dataset.batch(_SENTENCES_AT_A_TIME).prefetch(1)):
        for source, target in zip(*(batch[side] for side in sides), strict=True):
            yield _line(source), _line(target)


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")


def download(builder: tfds.core.DatasetBuilder) -> None:
    """Download the text if it is missing.

    Raises:
        UserError: If the download fails.
    """
    if not builder.is_prepared():
        logger.info("%s: downloading the text", builder.info.full_name)
    try:
        with _limited_waiting(), _bars_if_allowed():
            builder.download_and_prepare()
    # If a mirror is gone, there is a network error, a wrong checksum, a broken archive,
    # or a page instead of an archive.
    except Exception as error:
        raise _failed(builder.info.full_name, error) from error


@contextmanager
def _limited_waiting() -> Iterator[None]:
    """Limit how long tensorflow-datasets tries to connect, for which it has no option.

    By itself, it tries 11 times with growing pauses, which takes 3.5 minutes if there
    is no network, and it waits without limit for a server that does not answer.
    """
    from tensorflow_datasets.core.download import downloader

    seconds = (_SECONDS_TO_CONNECT, _SECONDS_OF_SILENCE)
    limited = {
        "MAX_RETRIES": _RETRIES,
        "_open_url": functools.partial(downloader._open_url, timeout=seconds),
    }
    usual = {name: getattr(downloader, name) for name in limited}
    try:
        for name, value in limited.items():
            setattr(downloader, name, value)
        yield
    finally:
        for name, value in usual.items():
            setattr(downloader, name, value)


@contextmanager
def _bars_if_allowed() -> Iterator[None]:
    """Keep tensorflow-datasets from drawing bars where the program draws none."""
    import tensorflow_datasets as tfds

    if may_draw_bars():
        yield
        return
    tfds.disable_progress_bar()
    try:
        yield
    finally:
        tfds.enable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error, or its type without one."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _failed(name: str, error: Exception) -> UserError:
    """Return the error of a download, which is one of `requests` without a network."""
    import requests

    request = getattr(error, "request", None)
    if isinstance(error, (requests.ConnectionError, requests.Timeout)) and request:
        return UserError(
            f"{name}: cannot download {request.url}: no connection to "
            f"{urlsplit(request.url).hostname}.\nCheck the network, or set HTTP_PROXY "
            "and HTTPS_PROXY, and try again (finished downloads are kept); or give "
            "your own text to the problem text_pairs"
        )
    return UserError(
        f"downloading {name} with tensorflow-datasets failed: {first_line(error)}.\n"
        "Try again (finished downloads are kept), or give the text to the problem "
        "text_pairs"
    )
