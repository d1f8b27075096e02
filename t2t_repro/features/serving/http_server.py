"""Run the application on a socket: bounded connections, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Collection, Generator
from typing import Any

import httptools
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from t2t_repro.errors import UserError
from t2t_repro.features.serving.service import Service

try:
    import resource
except ImportError:  # Windows has no limits.
    resource = None

_MOST_HEAD = 65_536  # bytes of a request's line and headers, or of its trailers
_MOST_PIPELINED = 256  # requests of a connection that wait for an earlier answer
_KEEP_ALIVE = 15  # seconds; proxies reuse connections
_BACKLOG = 2048
# Time in which the requests of clients that do not know of the end yet may come.
_LINGER = 0.3
# Files that are open besides connections: the program's own.
_OTHER_FILES = 256


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound but does not listen yet.

    Args:
        host: Address or name.
        port: Port, or 0 for any that is free.

    Raises:
        UserError: If the address is in use or not this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise _cannot_listen(f"{host} port {port}", error) from error
    return bound


def _cannot_listen(address: str, error: OSError) -> UserError:
    return UserError(
        f"cannot listen on {address}: {error.strerror or error}. Choose another port, "
        "or 0 for any that is free."
    )


def address_of(bound: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Parser(httptools.HttpRequestParser):
    """A parser that ignores offers of other protocols, as RFC 9110 lets a server do.

    Its base leaves out the body of a request with such an offer, which Java's client
    makes in its first request (https://github.com/Kludex/uvicorn/issues/2722).
    """

    def __init__(self, protocol: _Protocol) -> None:
        super().__init__(protocol)
        self._protocol = protocol
        # A request may follow one that closes the connection.
        self.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: bytes | memoryview) -> None:
        while True:
            try:
                super().feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data = memoryview(data)[offer.args[0] :]
                super().feed_data(self._protocol.head_without_offer())
            else:
                return


class _Flow(FlowControl):
    """Flow control that reads nothing while complete requests wait.

    The base class reads more after every answer, however many requests wait.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Collection[Any]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class _Protocol(HttpToolsProtocol):
    """HTTP whose clients must send a request, and take its answer, in time and bounds.

    The base class bounds neither, and forgets a connection whose client sends something
    that is not a request after an answer.
    """

    timeout = 20.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.parser = _Parser(self)
        self.flow = _Flow(transport, self.pipeline)
        self._unused_bytes = 0  # since the last body or request began
        self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._expect_head()
        self._look = self.loop.call_later(self.timeout, self._look_at_answers)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused_bytes += len(data)
        super().data_received(data)
        if self._unused_bytes > _MOST_HEAD:
            self.transport.abort()
        elif self._timer is None and (not self.cycle or self.cycle.response_complete):
            self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._unused_bytes = 0
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_arrived()
        if not self._is_offer():
            super().on_headers_complete()
        if len(self.pipeline) > _MOST_PIPELINED:
            raise httptools.HttpParserError("too many requests without an answer")

    def on_body(self, body: bytes) -> None:
        self._unused_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_offer():
            super().on_message_complete()

    def head_without_offer(self) -> bytes:
        """Return the head of the last request, without its offer."""
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s" % pair for pair in self.headers if pair[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        error = json.dumps({"error": "received what is not HTTP/1.1."}).encode()
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(error), error)
        )
        self.transport.close()

    def _is_offer(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _expect_head(self) -> None:
        self._head_arrived()
        self._timer = self.loop.call_later(self.timeout, self.transport.abort)

    def _head_arrived(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at_answers(self) -> None:
        """End a connection whose client took nothing since the last look."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent == self._unsent:
            self.transport.abort()
        self._unsent = unsent
        self._look = self.loop.call_later(self.timeout, self._look_at_answers)


class HttpServer(uvicorn.Server):
    """A server that answers what it accepted when it is told to stop.

    Args:
        app: The application.
        service: What it answers with.
        bound: From `bind`.
        started: Called when requests are accepted.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        bound: socket.socket,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        settings = service.settings
        timed = {"timeout": settings.read_timeout}
        super().__init__(
            uvicorn.Config(
                self._bounded(_with_start(app, started)),
                http=type("Protocol", (_Protocol,), timed),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=int(settings.deadline) + 15,
            )
        )
        self._service = service
        self._bound = bound
        self._most_connections = _allow_connections(settings.max_connections)

    def _bounded(self, app: ASGIApp) -> ASGIApp:
        """Refuse requests while too many connections are open."""
        refusal = JSONResponse(
            {"error": "too many connections are open: try again later."},
            503,
            {"Connection": "close"},
        )

        async def bounded(scope: Any, receive: Any, send: Any) -> None:
            is_full = len(self.server_state.connections) > self._most_connections
            answer = refusal if is_full and scope["type"] == "http" else app
            await answer(scope, receive, send)

        return bounded

    def run_until_stopped(self) -> None:
        """Answer requests until `stop`, SIGTERM or SIGINT.

        Raises:
            UserError: If another process has begun to listen on the address.
        """
        try:
            self._bound.listen(_BACKLOG)
        except OSError as error:
            raise _cannot_listen(address_of(self._bound), error) from error
        # Whatever a client sends must not fill the log.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        self.run([self._bound])
        self._service.batches.close()

    def stop(self) -> None:
        """Accept no more requests, and return from `run_until_stopped`."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        # The base class raises the signals again at the end, so that no exit code is 0.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.is_stopping = True
        # Connections in the queue of the system would be reset.
        await asyncio.sleep(_LINGER)
        await super().shutdown(sockets)


def _with_start(app: ASGIApp, started: Callable[[], None]) -> ASGIApp:
    """Call a function when the server starts, which is ASGI's event of its life."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        asyncio.get_running_loop().call_soon(started)
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    return wrapped


def _allow_connections(wanted: int) -> int:
    """Raise the limit of open files, and return how many connections fit."""
    if resource is None:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(wanted, soft - _OTHER_FILES))
    return wanted
