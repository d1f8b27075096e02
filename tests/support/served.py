"""A service with models that need no training, on a real socket of 127.0.0.1."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import UserError
from t2t_repro.features.serving.http_access import Access
from t2t_repro.features.serving.http_app import create_app
from t2t_repro.features.serving.http_server import HttpServer, address_of, bind
from t2t_repro.features.serving.served_models import (
    ATTENTION,
    N_BEST,
    SCORE,
    TRANSLATE,
    ServedModel,
    languages_in,
)
from t2t_repro.features.serving.service import Service
from t2t_repro.features.serving.service_settings import ServiceSettings
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.attention_documents import make_document


class ShoutingModel(ServedModel):
    """A model whose translation is the source in capitals.

    `gate` holds searches up while it is not set, and `batches` records their sizes.
    """

    engine = "tensorflow"
    signatures = (TRANSLATE, N_BEST, SCORE, ATTENTION)
    shows_attention = True

    def __init__(self, name: str = "en-de", seconds: float = 0.0) -> None:
        super().__init__(name, languages_in(name), DecodeHParams())
        self.seconds = seconds
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[str]] = []
        self.error: Exception | None = None

    def settings(self, hparams: DecodeHParams) -> DecodeHParams:
        return hparams

    def translate(
        self,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        self.batches.append([*texts])
        assert self.gate.wait(30)
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        found = []
        for number, text in enumerate(texts):
            best = text.upper()
            if hparams.samples:
                best += f" {hparams.sampling_seed}.{first + number}"
            if prefixes is not None:
                if "impossible" in prefixes[number]:
                    raise UserError("received an impossible prefix.")
                best = f"{prefixes[number]}{best}"
            count = hparams.num_hypotheses
            ids = tuple(range(len(text.split()) + 1))
            found.append(
                [
                    Hypothesis(best + "?" * rank, -float(rank), ids=ids)
                    for rank in range(count)
                ]
            )
        return found

    def pairs(self, signature: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        rows = len(pairs)
        found = {
            "scores": np.full(rows, -1.5, np.float32),
            "tokens": np.array([len(t.split()) + 1 for _, t in pairs], np.int32),
            "truncated": np.zeros(rows, bool),
        }
        if signature == ATTENTION:
            found["input_tokens"] = np.array([[s.encode()] for s, _ in pairs], object)
            found["memory"] = np.ones((rows, 1, 1, 1, 1), np.float32)
        return found

    def attention_document(self, source: str, target: str | None) -> dict[str, Any]:
        return make_document()

    def warm_up(self) -> None:
        """Do nothing."""


class Client:
    """Requests to a running service, and its models.

    Args:
        url: Address of the service.
        service: The service.
        server: Its server.
    """

    def __init__(self, url: str, service: Service, server: HttpServer) -> None:
        self.url, self.service, self.server = url, service, server
        parts = urllib.parse.urlsplit(url)
        self.address = parts.hostname or "", parts.port or 0

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request; a body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        try:
            method = method or ("GET" if body is None else "POST")
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()


class Answer:
    """An answer: its status, its headers in lower case, its content."""

    def __init__(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.content = content

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        return self.json["error"]


@contextlib.contextmanager
def serving(
    *models: ServedModel, access: Access | None = None, **settings: Any
) -> Generator[Client]:
    """Serve models in a thread until the block ends."""
    service = Service(models, ServiceSettings(**{"workers": 2, **settings}))
    bound = bind("127.0.0.1", 0)
    url, started = address_of(bound), threading.Event()
    app = create_app(service, access or Access(hosts=["127.0.0.1"]))
    server = HttpServer(app, service, bound, started.set)
    thread = threading.Thread(target=server.run_until_stopped)
    thread.start()
    assert started.wait(10)
    try:
        yield Client(url, service, server)
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()
