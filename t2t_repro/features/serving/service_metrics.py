"""Figures of a service for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServiceMetrics:
    """Counters of requests, sentences, tokens and batches.

    Args:
        waiting: Returns the number of sentences that wait.
    """

    def __init__(self, waiting: Callable[[], float] = lambda: 0) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.requests = Counter(
            "t2t_requests",
            "Answered requests; code 499 = the client left before the answer",
            ("path", "code"),
            registry=registry,
        )
        self.latency = Histogram(
            "t2t_request_seconds",
            "Time from the first byte of a request to the end of its answer",
            ("path",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "t2t_requests_in_flight", "Requests being answered", registry=registry
        )
        queue = Gauge("t2t_queue_sentences", "Sentences that wait", registry=registry)
        queue.set_function(waiting)
        self.sentences = Counter(
            "t2t_sentences", "Translated sentences", ("model",), registry=registry
        )
        self.tokens = Counter(
            "t2t_target_tokens",
            "Tokens of the best translations, with end of sentence",
            ("model",),
            registry=registry,
        )
        self.batch_size = Histogram(
            "t2t_batch_sentences",
            "Sentences translated together",
            buckets=_SIZES,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "t2t_batch_seconds",
            "Time of a batch",
            buckets=_SECONDS,
            registry=registry,
        )

    def observe_batch(self, size: int, seconds: float) -> None:
        """Count a batch."""
        self.batch_size.observe(size)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Return all figures in Prometheus's text format."""
        return generate_latest(self._registry)
