"""Limits of a service, and the errors that its clients get."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from t2t_repro.machine import available_cores
from t2t_repro.settings.typed_settings import TypedSettings, setting

FAILED = "this server failed; its log says why."


class ServiceError(Exception):
    """An answer to a request that cannot be served.

    Args:
        status: HTTP status, 400 or more.
        message: One or two sentences for the client.
        headers: Headers of the answer.
    """

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def expected(received: object, wanted: str) -> ServiceError:
    """Return the error for a value that a request cannot have."""
    text = repr(received)
    shown = text if len(text) <= 80 else f"{text[:80]}... ({len(text):,} characters)"
    return ServiceError(400, f"received {shown}, expected {wanted}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceSettings(TypedSettings):
    """Limits of a service: every request is bounded before work begins."""

    flag: ClassVar[str] = "t2t serve"

    workers: int = setting(
        "batches of sentences that are translated at the same time (default: the "
        "number of cores); a batch of long sentences may run beside them",
        0,
        at_least=0,
        at_most=256,
    )
    max_batch: int = setting(
        "sentences that are translated together", 64, at_least=1, at_most=10_000
    )
    max_delay_ms: float = setting(
        "longest wait of an idle core for the sentences of clients that were answered "
        "just now; at most a fifth of the time of a batch",
        50.0,
        unit="milliseconds",
        at_least=0,
        at_most=10_000,
    )
    max_queue: int = setting(
        "sentences that may wait; further requests get status 429",
        4000,
        at_least=1,
        at_most=10_000_000,
    )
    deadline: float = setting(
        "time in which a request is answered, else it gets status 504",
        60.0,
        unit="seconds",
        above=0,
        at_most=86_400,
    )
    read_timeout: float = setting(
        "time in which a client must send its request",
        20.0,
        unit="seconds",
        above=0,
        at_most=3600,
    )
    max_body: int = setting(
        "largest body of a request", 1_048_576, unit="bytes", at_least=1
    )
    max_texts: int = setting(
        "texts of a request, and sentences of all of them", 1000, at_least=1
    )
    max_characters: int = setting(
        "characters of all texts of a request", 100_000, at_least=1
    )
    max_beam_size: int = setting(
        "beam_size that a request may ask for", 16, at_least=1, at_most=1000
    )
    max_connections: int = setting(
        "open connections; further ones are closed", 2000, at_least=1
    )

    @property
    def num_workers(self) -> int:
        """Number of batches of ordinary sentences at the same time."""
        return self.workers or available_cores()
