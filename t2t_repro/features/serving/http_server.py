"""Run the application on a socket: bounded connections, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from t2t_repro.errors import UserError
from t2t_repro.features.serving.service import Service

try:
    import resource
except ImportError:  # Windows has no limits.
    resource = None

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


class _Protocol(H11Protocol):
    """HTTP whose clients must send a request, and take its answer, in time.

    h11 bounds the head of a request, and reads one request at a time.
    """

    timeout = 20.0  # seconds
    most = 2000  # connections

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._seen: object = None
        self._look = self.loop.call_later(self.timeout, self._look_again)
        if len(self.connections) > self.most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        error = json.dumps({"error": "received what is not HTTP/1.1."}).encode()
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(error), error)
        )
        self.transport.close()

    def _look_again(self) -> None:
        """End a connection if its client did nothing since the last look.

        It has not sent a whole head, or not taken what was sent to it.
        """
        unsent = self.transport.get_write_buffer_size()
        seen = self.cycle, unsent
        must_act = unsent or self.cycle is None or self.cycle.response_complete
        if must_act and seen == self._seen:
            self.transport.abort()
        self._seen = seen
        self._look = self.loop.call_later(self.timeout, self._look_again)


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
        limits = {
            "timeout": settings.read_timeout,
            "most": _allow_connections(settings.max_connections),
        }
        super().__init__(
            uvicorn.Config(
                _with_start(app, started),
                http=type("Protocol", (_Protocol,), limits),
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
