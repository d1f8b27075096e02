"""A server that speaks as `t2t serve` does, with a dictionary in place of a model."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import t2t_repro.features
from tests.support.attention_documents import Document, make_document

FEATURES = Path(t2t_repro.features.__file__).parent
FILES = {
    "/": "serving/static/translate.html",
    "/static/translate.css": "serving/static/translate.css",
    "/static/translate.js": "serving/static/translate.js",
    "/static/attention_view.css": "attention_view/static/attention_view.css",
    "/static/attention_view.js": "attention_view/static/attention_view.js",
}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
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


def attention(sentence: str, translation: str) -> Document:
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


def sentences(text: str) -> list[dict[str, Any]]:
    """Return the events of a text: a sentence ends with a sign and white space."""
    before = re.match(r"\s*", text)[0]
    events = []
    for found in re.finditer(r"(\S.*?(?:[.!?](?=\s)|\s*\Z))(\s*)", text, re.S):
        source = found[1].rstrip()
        start = found.start()
        end = start + len(source)
        events.append(
            {"index": len(events), "source": source, "start": start, "end": end}
            | {"translatedText": translated(source)}
            | {"space": text[end : found.end()]}
        )
    if before:
        events[0]["before"] = before
    return events


class FakeTranslator:
    """The server, what it was asked, and how it misbehaves.

    Attributes:
        models: What `GET /v1/models` lists.
        key: API key that it asks for, or None.
        most: Largest number of characters.
        failures: Status, headers and error of the next answers to POST requests.
        breaks: Whether the next stream ends after its first sentence.
        pause: Seconds between the sentences of a stream.
        asked: Path and body of each POST request that was answered.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.models = [
            {"name": "en-de", "source_language": "en", "target_language": "de"}
            | {"engine": "tensorflow", "signatures": [], "attention": True},
        ]
        self.key: str | None = None
        self.most = 5000
        self.failures: list[tuple[int, dict[str, str], str]] = []
        self.breaks = False
        self.pause = 0.0
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == path]


class _Handler(BaseHTTPRequestHandler):
    fake: FakeTranslator

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path in FILES:
            file = FEATURES / FILES[self.path]
            return self._answer(200, file.read_bytes(), TYPES[file.suffix])
        if self.path != "/v1/models":
            return self._json(404, {"error": f"received {self.path}."})
        fake = self.fake
        content = {"models": fake.models, "max_characters": fake.most}
        return self._json(200, content | {"needs_key": fake.key is not None})

    def do_POST(self) -> None:
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if fake.key and self.headers["Authorization"] != f"Bearer {fake.key}":
            return self._json(401, {"error": "received no valid API key."})
        if fake.failures:
            status, headers, error = fake.failures.pop(0)
            return self._json(status, {"error": error}, headers)
        fake.asked.append((self.path, body))
        text = body["q"]
        if self.path == "/attention":
            return self._json(200, attention(text, body["translation"]))
        if body.get("stream"):
            return self._stream(text)
        best, *others = translations(text)
        content = {"translatedText": best, "alternatives": others}
        return self._json(200, content)

    def _stream(self, text: str) -> None:
        self._start(200, "text/event-stream", {})
        whole = ""
        with contextlib.suppress(ConnectionError):
            for event in sentences(text):
                whole += event.get("before", "")
                whole += event["translatedText"] + event["space"]
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                if self.fake.breaks:
                    self.fake.breaks = False
                    return
                time.sleep(self.fake.pause)
            data = json.dumps({"translatedText": whole})
            self.wfile.write(f"event: done\ndata: {data}\n\n".encode())

    def _json(self, status: int, content: Any, headers: Any = ()) -> None:
        self._answer(status, json.dumps(content).encode(), "application/json", headers)

    def _answer(
        self, status: int, content: bytes, kind: str, headers: Any = ()
    ) -> None:
        self._start(status, kind, {"Content-Length": len(content), **dict(headers)})
        self.wfile.write(content)

    def _start(self, status: int, kind: str, headers: dict[str, Any]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()


@contextlib.contextmanager
def running(fake: FakeTranslator, port: int = 0) -> Iterator[str]:
    """Serve on a port, by default on a free one, and return the address."""
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
