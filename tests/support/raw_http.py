"""A small HTTP/1.1 client that hides nothing: single bytes, early ends, extra bytes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from typing import Any, Self
from urllib.parse import urlsplit

JSON_TYPE = "application/json"
LONGEST_LINE = 1 << 20  # bytes


class NoAnswer(ConnectionError):
    """The connection ended before the first byte of an answer."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Status, headers by name in lower case, and the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def message(
    method: str,
    path: str,
    body: bytes = b"",
    content_type: str = JSON_TYPE,
    headers: str = "",
) -> bytes:
    """Return the bytes of a request; each further header ends in "\\r\\n"."""
    typed = f"Content-Type: {content_type}\r\n" if content_type else ""
    lines = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{typed}{headers}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return lines.encode("utf-8", "surrogateescape") + body


def json_message(path: str, document: object, headers: str = "") -> bytes:
    """Return the bytes of a POST of JSON."""
    body = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return message("POST", path, body, headers=headers)


class Connection:
    """A connection that is kept alive, with one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a server.

        Raises:
            OSError: If it refuses.
        """
        address = urlsplit(url)
        streams = await asyncio.open_connection(
            address.hostname, address.port, limit=LONGEST_LINE
        )
        return cls(*streams)

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    def end_sending(self) -> None:
        """Close the sending half."""
        self._writer.write_eof()

    async def ask(self, data: bytes) -> Answer:
        """Send a request and read its answer.

        Raises:
            NoAnswer: If the connection ends first.
        """
        with contextlib.suppress(ConnectionError):
            await self.send(data)  # the answer may come before the whole was read
        return await self.read()

    async def read(self) -> Answer:
        """Read an answer.

        Raises:
            NoAnswer: If the connection ends first.
            ValueError: If it is not HTTP, or ends in its middle.
        """
        status, headers = await self._head()
        while 100 <= status < 200:
            status, headers = await self._head()
        try:
            body = await self._body(headers)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ValueError(f"an answer of status {status} was cut off") from error
        return Answer(status, headers, body)

    async def _head(self) -> tuple[int, dict[str, str]]:
        try:
            text = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise ValueError(f"not HTTP: {error.partial[:200]!r}") from None
            raise NoAnswer("the connection ended without an answer") from None
        except ConnectionError as error:
            raise NoAnswer(f"the connection ended: {error}") from None
        first, *lines = text.decode("latin-1").split("\r\n")[:-2]
        version, _, rest = first.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0"):
            raise ValueError(f"not HTTP: {first[:200]!r}")
        pairs = (line.partition(":") for line in lines)
        return int(rest[:3]), {name.lower(): value.strip() for name, _, value in pairs}

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                parts.append(await self._reader.readexactly(size))
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)
            return b"".join(parts)
        return await self._reader.readexactly(int(headers.get("content-length", 0)))

    def unread(self) -> bytes:
        """Return bytes that came without a request, without removing them."""
        return bytes(self._reader._buffer)

    @property
    def is_open(self) -> bool:
        """Whether the server has not yet closed its half."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    def leave(self) -> None:
        """Close at once, also in the middle of an answer."""
        self._writer.transport.abort()
