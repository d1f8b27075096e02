"""`t2t serve`'s own application, with a dictionary in place of a model."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.features.serving.http_access import Access
from t2t_repro.features.serving.http_app import create_app
from t2t_repro.features.serving.http_server import address_of, bind
from t2t_repro.features.serving.service import Service
from t2t_repro.features.serving.service_settings import ServiceSettings
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.attention_documents import Document, make_document
from tests.support.served import ShoutingModel
from tests.support.waiting import until

WORDS = {
    **{"A": "Ein", "The": "Der", "dog": "Hund", "runs": "läuft", "sleeps": "schläft"},
    **{"small": "kleiner", "cat": "Kater", "never": "nie", "here": "hier"},
}
SYNONYMS = {"läuft": "rennt", "Hund": "Vierbeiner", "Ein": "Irgendein"}
# The head that aligns words: layer 2, head 3. It sees the words of these two swapped.
SWAPPED = ("never", "sleeps")


def tokens(text: str) -> list[str]:
    """Return subwords, of which those of long words are halves of them."""
    found = []
    for word in text.split():
        body, sign = re.fullmatch(r"(.*?)([.!?]*)", word, re.S).groups()
        half = len(body) // 2 if len(body) > 6 else len(body)
        pieces = [f"▁{body[:half]}", body[half:], sign]
        found += [piece for piece in pieces if piece]
    return [*found, "</s>"]


def translated(sentence: str) -> str:
    """Return a sentence word by word, with "never sleeps" in German order."""
    sentence = re.sub(r"\b{} {}\b".format(*SWAPPED), r"sleeps never", sentence)
    return re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), sentence)


def translations(sentence: str) -> list[str]:
    """Return several translations of a sentence, the best first."""
    best = translated(sentence)
    others = [
        best.replace(word, other) for word, other in SYNONYMS.items() if word in best
    ]
    return [best, *others]


def attention_of(sentence: str, translation: str) -> Document:
    """Return a document in which every word attends to the one it translates."""
    source, target = tokens(sentence), tokens(translation)
    words = sentence.split()
    order = list(range(len(words)))
    for at in range(len(words) - 1):
        if tuple(word.strip(".!?") for word in words[at : at + 2]) == SWAPPED:
            order[at : at + 2] = [at + 1, at]
    starts = [i for i, piece in enumerate(source) if piece.startswith("▁")]
    aligned, word = [], -1
    for piece in target[:-1]:
        word += piece.startswith("▁")
        aligned.append(starts[order[min(word, len(order) - 1)]])
    aligned.append(len(source) - 1)
    return make_document(
        source=source, target=target, aligned=aligned, sharpness=12.0, title=""
    )


class DictionaryModel(ShoutingModel):
    """A model that translates word by word.

    Args:
        name: Its name, such as "en-de", which gives its languages.
        shows_attention: Whether it does.

    Attributes:
        pause: Seconds that a sentence takes.
    """

    def __init__(self, name: str = "en-de", shows_attention: bool = True) -> None:
        super().__init__(name)
        self.shows_attention = shows_attention
        self.pause = 0.0

    def translate(
        self,
        texts: Sequence[str],
        hparams: DecodeHParams,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
    ) -> list[list[Hypothesis]]:
        time.sleep(self.pause * len(texts))
        return [[Hypothesis(t, 0.0) for t in translations(text)] for text in texts]

    def attention_document(self, source: str, target: str | None) -> Document:
        return attention_of(source, target or translated(source))


class DictionaryServer:
    """The application, what it was asked, and how it misbehaves.

    Attributes:
        address: Its URL, while it runs.
        failures: Status, headers and error of the next answers to POST requests.
        breaks: Whether the next stream ends after its first sentence.
        asked: Path and body of each POST request that reached the application.
    """

    def __init__(
        self, *models: DictionaryModel, keys: Sequence[str] = (), **limits: Any
    ) -> None:
        # A sentence at a time, so that a pause is between the events of a stream.
        limits = {"workers": 1, "max_batch": 1, "max_delay_ms": 0.0} | limits
        self._service = Service(models, ServiceSettings(**limits))
        self._app: ASGIApp = create_app(self._service, Access(keys=keys))
        self.address = ""
        self.failures: list[tuple[int, dict[str, str], str]] = []
        self.breaks = False
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == path]

    @contextlib.contextmanager
    def running(self, port: int = 0) -> Iterator[DictionaryServer]:
        """Serve on a port, by default on a free one."""
        bound = bind("127.0.0.1", port)
        self.address = address_of(bound)
        config = uvicorn.Config(self, lifespan="off", log_config=None, access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            until(lambda: server.started)
            yield self
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
            bound.close()
            self._service.batches.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        if self.failures:
            status, headers, error = self.failures.pop(0)
            content = {"error": error} if error else {}
            await JSONResponse(content, status, headers)(scope, receive, send)
            return
        self.asked.append((scope["path"], json.loads(body)))
        given: list[Message] = [{"type": "http.request", "body": body}]

        async def receive_again() -> Message:
            return given.pop() if given else await receive()

        await self._app(scope, receive_again, self._breaking(send))

    def _breaking(self, send: Send) -> Send:
        """Return a `send` that ends the answer after its first part, if it breaks."""
        if not self.breaks:
            return send
        self.breaks = False
        ended = False

        async def send_first(message: Message) -> None:
            nonlocal ended
            if ended:
                return
            if message.get("body"):
                ended = True
                message = {**message, "more_body": False}
            await send(message)

        return send_first
