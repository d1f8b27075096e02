"""Random HTTP requests of the kinds that break servers: one request, one answer."""

from __future__ import annotations

import codecs
import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.hard_text import random_hard_text
from tests.support.raw_http import JSON_TYPE, message

FORM_TYPE = "application/x-www-form-urlencoded"
BAD = frozenset({400, 413})
ANY = frozenset({200, 400, 401, 403, 404, 405, 408, 413, 415, 429, 501, 503, 504})


@dataclasses.dataclass(frozen=True)
class Hostile:
    """A request.

    Attributes:
        data: All of its bytes.
        allowed: Statuses that its answer may have.
        may_close: Whether the server may end the connection without an answer.
        check: Returns what is wrong with the document of an answer 200, or "".
    """

    data: bytes
    allowed: frozenset[int] = ANY
    may_close: bool = False
    check: Callable[[Any], str] = lambda document: ""


@dataclasses.dataclass(frozen=True)
class Target:
    """What a random request needs to know of a server.

    Attributes:
        model: Name of a model.
        max_body: Largest body in bytes.
        max_characters: Most characters of a request's texts.
    """

    model: str
    max_body: int
    max_characters: int

    def documents(self, text: str) -> dict[str, dict[str, Any]]:
        """Return a valid request by path."""
        named = {"q": text, "model": self.model}
        return {
            "/translate": {**named, "alternatives": 0, "format": "text"},
            f"/v1/models/{self.model}:predict": {"instances": [text]},
            "/attention": named,
            "/detect": {"q": text},
        }

    @property
    def paths(self) -> list[str]:
        return [*self.documents("")]


_SETTINGS = ("beam_size", "alpha", "extra_length", "min_length", "sampling_temp")
_SETTINGS += ("sampling_method", "mbr_scale", "constrain", "origins", "batch_size")
_FIELDS = ("q", "source", "target", "format", "alternatives", "api_key", "model")
_FIELDS += ("stream", "target_prefix", "decode_hparams", "instances", "inputs")
_FIELDS += ("signature_name", "translation", "", "__class__", "\ud800", "q\0")


def value(source: random.Random, depth: int = 0) -> Any:
    """Return a random value of JSON."""
    if depth < 3 and source.random() < 0.3:
        items = [value(source, depth + 1) for _ in range(source.randint(0, 3))]
        if source.random() < 0.5:
            return items
        keys = (*_FIELDS, *_SETTINGS, "b64", "inputs", "targets")
        return {source.choice(keys): item for item in items}
    fixed = [None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, 0.5, -1e308, 1e-320]
    fixed += ["", " ", "a dog", "en", "de", "auto", "html", "n_best", "score", "true"]
    fixed += ["attention", "serving_default", "YWJj", "*", "\0", "\ud800", "x" * 2000]
    if source.random() < 0.2:
        return random_hard_text(source).decode("utf-8", "surrogateescape")
    return source.choice(fixed)


def _encoded(document: object) -> bytes:
    ascii_only = random.Random(repr(document)).random() < 0.5
    text = json.dumps(document, ensure_ascii=ascii_only)
    return text.encode("utf-8", "surrogatepass")


def wrong_fields(source: random.Random, target: Target) -> Hostile:
    """Return a valid request with one to three other fields."""
    path, document = source.choice([*target.documents("A dog runs.").items()])
    for _ in range(source.randint(1, 3)):
        document[source.choice((*document, *_FIELDS))] = value(source)
    if source.random() < 0.2:
        name = source.choice((*_SETTINGS, "unknown"))
        document["decode_hparams"] = {name: value(source)}
    return Hostile(message("POST", path, _encoded(document)))


def _nested(source: random.Random) -> bytes:
    depth = source.choice((50, 1000, 100_000))
    opened, closed = source.choice(((b"[", b"]"), (b'{"q":', b"}")))
    inner = opened * depth + b"1" + closed * depth
    return source.choice((inner, b'{"q":' + inner + b"}", opened * depth))


def broken_json(source: random.Random, target: Target) -> Hostile:
    """Return a body that is no JSON, or almost none."""
    path, document = source.choice([*target.documents("A dog runs.").items()])
    valid = _encoded(document)
    kind = source.randrange(6)
    if kind == 0:
        body = valid[: source.randrange(len(valid))]
    elif kind == 1:
        place = source.randrange(len(valid))
        body = valid[:place] + source.randbytes(2) + valid[place + 1 :]
    elif kind == 2:
        body = _nested(source)
    elif kind == 3:
        number = source.choice(("9" * 5000, "1e999999", "-", "NaN", "Infinity", "0x1"))
        body = b'{"q": "a", "alternatives": %s}' % number.encode()
    elif kind == 4:
        body = source.choice(
            [
                codecs.BOM_UTF8 + valid,
                json.dumps(document).encode("utf-16"),
                valid + valid,
                b'{"q": "a", ' + valid[1:],
                b'{"q": "\\ud800 \\udfff\\u0000"}',
                b"\0" + valid,
            ]
        )
    else:
        body = source.randbytes(source.randint(0, 200))
    return Hostile(message("POST", path, body))


def other_types(source: random.Random, target: Target) -> Hostile:
    """Return a request with another content type."""
    path, document = source.choice([*target.documents("A dog runs.").items()])
    kinds = ["", "text/plain", FORM_TYPE, "multipart/form-data; boundary=x", "*/*"]
    kinds += ["application/json; charset=utf-16", "image/png", ";", "a" * 5000, "ü/x"]
    kinds += [JSON_TYPE.upper(), "text/html", "application/xml", "multipart/mixed"]
    bodies = [_encoded(document), b"q=a+dog&model=%s" % target.model.encode()]
    bodies += [b"q=%ff&q=%00", b"&" * 3000, b"=", b"q=a;q=b", b"%", b"--x\r\n\r\n"]
    body = source.choice(bodies)
    return Hostile(message("POST", path, body, source.choice(kinds)))


def hard_texts(source: random.Random, target: Target) -> Hostile:
    """Return a valid request with hard texts, which must be answered."""
    texts = [
        random_hard_text(source).decode("utf-8", "replace")[:2000]
        for _ in range(source.randint(1, 5))
    ]
    if source.random() < 0.5:
        document = {"q": texts, "model": target.model}
        path, name = "/translate", "translatedText"
    else:
        path, name = f"/v1/models/{target.model}:predict", "predictions"
        document = {"instances": texts}
    body = _encoded(document)

    def check(answer: Any) -> str:
        rows = answer.get(name)
        if not isinstance(rows, list) or len(rows) != len(texts):
            return f"expected {len(texts)} translations"
        found = [row["outputs"] if isinstance(row, Mapping) else row for row in rows]
        return "" if all(isinstance(text, str) for text in found) else "no text"

    return Hostile(message("POST", path, body), frozenset({200}), check=check)


def too_large(source: random.Random, target: Target) -> Hostile:
    """Return more than the limits allow."""
    path = source.choice(target.paths[:2])
    name = "q" if path == "/translate" else "instances"
    most = target.max_characters
    values: list[Any] = [["a"] * 10_000, ["a" * most, "a"], ["ä" * 1_000_000]]
    values += [["x" * (most // 100 + 1)] * 100]
    if name == "q":
        values += ["a" * (most + 1), "a. " * (most // 3 + 1), " " * (most + 1)]
    document = {name: source.choice(values), "model": target.model}
    if name == "instances":
        del document["model"]
    body = _encoded(document)
    if source.random() < 0.2:
        body = b" " * target.max_body + body
    return Hostile(message("POST", path, body), frozenset({413}))


def wrong_paths(source: random.Random, target: Target) -> Hostile:
    """Return a request of another path or method."""
    pieces = ["translate", "v1", "models", target.model, "..", ".", "%2e%2e", "%00"]
    pieces += ["static", "etc", "passwd", "%ff", "versions", "1", "2", "metadata", ""]
    pieces += [f"{target.model}:predict", "metrics", "a" * 3000, "ü", "?q=a", "#", "*"]
    path = "/" + "/".join(source.choices(pieces, k=source.randint(0, 5)))
    methods = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"]
    methods += ["CONNECT", "get", "BREW"]
    method = source.choice(methods)
    body = source.choice((b"", b'{"q": "a"}'))
    # Only the head of an answer to HEAD is sent, and CONNECT asks for a tunnel.
    return Hostile(
        message(method, path, body),
        ANY,
        may_close=method not in ("GET", "POST", "PUT", "DELETE", "OPTIONS"),
    )


def wrong_headers(source: random.Random, target: Target) -> Hostile:
    """Return a request with strange headers."""
    path, document = source.choice([*target.documents("A dog runs.").items()])
    long = "".join(f"X-{number}: {'y' * 50}\r\n" for number in range(2000))
    headers = [long, f"X: {'y' * 100_000}\r\n", "Host: example.org\r\n", "Host: [\r\n"]
    headers += ["Origin: http://evil\r\n", "Origin: null\r\n", "Origin: http://[\r\n"]
    headers += [f"Content-Length: {n}\r\n" for n in ("-1", "0", "9" * 30, "1e3", "")]
    headers += ["Transfer-Encoding: gzip\r\n", "Expect: 100-continue\r\n", ": x\r\n"]
    headers += ["Transfer-Encoding: chunked\r\n", "Content-Encoding: gzip\r\n"]
    headers += ["Authorization: Bearer \r\n", "Authorization: Basic //\r\n", "x\r\n"]
    headers += [
        "Accept: text/event-stream\r\n",
        "Connection: upgrade\r\n",
        "a b: c\r\n",
    ]
    headers += ["Upgrade: websocket\r\nConnection: upgrade\r\n", "Cookie: \udcff\r\n"]
    body = _encoded(document)
    return Hostile(
        message("POST", path, body, headers=source.choice(headers)), may_close=True
    )


def no_http(source: random.Random, target: Target) -> Hostile:
    """Return bytes that are no request of HTTP/1.1."""
    chunked = (
        b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked"
    )
    kinds = [source.randbytes(source.randint(4, 300)), b"\r\n" * 1000]
    kinds += [b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM"]
    kinds += [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET " + b"/a" * 60_000]
    kinds += [b"A" * 100_000, b"GET / HTTP/1.1\nHost: a\n\n", b"\0" * 100]
    sizes = [b"zz\r\na\r\n", b"-1\r\n", b"fffffffffffffffff\r\n", b"1;" + b"x" * 9000]
    kinds += [
        chunked + b"\r\n\r\n" + size for size in (*sizes, b"1\r\nab\r\n0\r\n\r\n")
    ]
    return Hostile(source.choice(kinds), may_close=True)


KINDS = (wrong_fields, broken_json, other_types, hard_texts)
KINDS += (too_large, wrong_paths, wrong_headers, no_http)
