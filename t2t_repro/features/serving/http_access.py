"""Who may ask, and what is logged, counted and added to every answer."""

from __future__ import annotations

import hmac
import logging
import re
import time
import urllib.parse
from collections.abc import Mapping, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from t2t_repro.features.serving.service import Service
from t2t_repro.features.serving.service_settings import ServiceError

logger = logging.getLogger(__name__)

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LEFT = 499  # in logs and figures: the client left before the answer
# Notes of a request, in its ASGI scope.
LEFT_NOTE, TEXTS_NOTE = "t2t_left", "t2t_texts"
_MOST_LOGGED = 1000  # characters of texts
# Paths in figures; anything else counts as one.
_PATHS = re.compile(
    r"/(translate|languages|detect|attention|metrics|healthz|readyz|v1/models)?"
)


class Access:
    """Who may ask, and what is logged of it.

    Args:
        keys: API keys, of which a request needs one; none if they are empty.
        hosts: Names of this server in the header Host; empty = any.
        cors_origins: Origins of pages whose requests are answered.
        log_requests: Whether to log a line per request.
        log_texts: Whether this line has the texts.
    """

    def __init__(
        self,
        *,
        keys: Sequence[str] = (),
        hosts: Sequence[str] = (),
        cors_origins: Sequence[str] = (),
        log_requests: bool = False,
        log_texts: bool = False,
    ) -> None:
        self._keys = [key.encode() for key in keys]
        self._hosts = {host.lower() for host in hosts}
        self.cors_origins = tuple(cors_origins)
        self.log_requests = log_requests or log_texts
        self.log_texts = log_texts

    @property
    def needs_key(self) -> bool:
        return bool(self._keys)

    def check_key(self, key: str) -> None:
        """Refuse a request without a valid key, in constant time.

        Raises:
            ServiceError: If it is refused.
        """
        given = key.encode("utf-8", "replace")
        matches = [hmac.compare_digest(given, known) for known in self._keys]
        if self._keys and not any(matches):
            raise ServiceError(
                401,
                f"received {'a wrong' if key else 'no'} API key, expected the header "
                "Authorization: Bearer KEY or the field api_key.",
                {"WWW-Authenticate": "Bearer"},
            )

    def check_site(self, headers: Mapping[str, str]) -> None:
        """Refuse requests that another site's page sends, unless it is allowed.

        A page can send requests to 127.0.0.1, and give its own name this address.

        Raises:
            ServiceError: If it is refused.
        """
        host = headers.get("host", "")
        if self._hosts and _host_name(host) not in self._hosts:
            raise ServiceError(
                403,
                f"received the host {host[:80]!r}, expected one of "
                f"{', '.join(sorted(self._hosts))} (`t2t serve --allowed_host`).",
            )
        origin = headers.get("origin")
        if origin is None or origin in self.cors_origins or "*" in self.cors_origins:
            return
        if origin.partition("://")[2] != host:
            raise ServiceError(
                403,
                f"received a request of a page of {origin[:80]!r}, expected one of "
                "this server (`t2t serve --cors_origin`).",
            )


def _host_name(host: str) -> str:
    """Return the name in a header Host in lower case, or "" if it has none."""
    if not {*host}.isdisjoint("/?#@\\"):
        return ""
    try:
        return urllib.parse.urlsplit(f"//{host}").hostname or ""
    except ValueError:  # such as "["
        return ""


class WatchedApp:
    """Middleware that counts and logs requests, and adds headers to the answers."""

    def __init__(self, app: ASGIApp, service: Service, access: Access) -> None:
        self._app = app
        self._service = service
        self._metrics = service.metrics
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, code = time.monotonic(), LEFT

        async def watched(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                if code == LEFT:
                    code = message["status"]
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in _HEADERS.items()
                    if name.lower().encode() not in own
                ]
                if self._service.is_stopping:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, watched)
        finally:
            self._metrics.in_flight.dec()
            if scope.get(LEFT_NOTE):
                code = LEFT
            seconds = time.monotonic() - start
            path = _path_of_figures(scope["path"])
            self._metrics.requests.labels(path, code).inc()
            self._metrics.latency.labels(path).observe(seconds)
            if self._access.log_requests:
                logger.info(
                    "%s %r %d %.0f ms%s",
                    scope["method"],
                    scope["path"][:100],
                    code,
                    1000 * seconds,
                    self._texts(scope),
                )

    def _texts(self, scope: Scope) -> str:
        if not (self._access.log_texts and TEXTS_NOTE in scope):
            return ""
        return f" {scope[TEXTS_NOTE]!r}"[:_MOST_LOGGED]


def _path_of_figures(path: str) -> str:
    if path.startswith("/v1/models/"):
        return "/v1/models/:predict" if path.endswith(":predict") else "/v1/models/..."
    return path if _PATHS.fullmatch(path) else "other"
