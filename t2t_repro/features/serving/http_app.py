"""The ASGI application: routes, and errors as JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from t2t_repro.errors import UserError
from t2t_repro.features.serving import libretranslate, tensorflow_serving
from t2t_repro.features.serving.http_access import (
    LEFT_NOTE,
    TEXTS_NOTE,
    Access,
    WatchedApp,
    logger,
)
from t2t_repro.features.serving.request_bodies import (
    FORM,
    JSON,
    as_text,
    check_texts,
    media_type,
    parse_form,
    parse_json,
    read_body,
)
from t2t_repro.features.serving.service import Service
from t2t_repro.features.serving.service_metrics import CONTENT_TYPE
from t2t_repro.features.serving.service_settings import FAILED, ServiceError, expected

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_EVENTS = "text/event-stream"
_SECONDS_TO_WRITE = 10.0
_MOST_SHOWN = 600  # characters of an error
# What needs no key: it shows no text, and a page must begin somewhere.
_OPEN = re.compile(r"/|/static/[^/]+|/healthz|/readyz|/languages|/v1/models")
_STATIC = {
    "translate.css": ("serving", "text/css"),
    "translate.js": ("serving", "text/javascript"),
    "attention_view.css": ("attention_view", "text/css"),
    "attention_view.js": ("attention_view", "text/javascript"),
}

Handler = Callable[[Request], Awaitable[Response]]


def create_app(service: Service, access: Access) -> ASGIApp:
    """Return the application.

    Args:
        service: What answers.
        access: Who may ask.
    """
    handlers = _Handlers(service, access)
    middleware = []
    if access.cors_origins:
        origins = [*access.cors_origins]
        options = {"allow_methods": ["GET", "POST"], "allow_headers": ["*"]}
        middleware = [Middleware(CORSMiddleware, allow_origins=origins, **options)]
    app = Starlette(
        routes=handlers.routes(),
        middleware=middleware,
        exception_handlers={HTTPException: _no_route},
    )
    app.router.redirect_slashes = False  # it would redirect to what Host says
    return WatchedApp(app, service, access)


class _Handlers:
    """A handler per route."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    def routes(self) -> list[Route]:
        """Return all routes; the first that fits is taken."""
        gets = {
            "/": self._page,
            "/static/{name}": self._static,
            "/healthz": self._health,
            "/readyz": self._ready,
            "/metrics": self._metrics,
            "/languages": self._languages,
            "/v1/models": self._models,
        }
        posts = {
            "/translate": self._translate,
            "/detect": self._detect,
            "/attention": self._attention,
        }
        for model in ("/v1/models/{model}", "/v1/models/{model}/versions/{version}"):
            posts[model + ":predict"] = self._predict
            gets[model + "/metadata"] = self._metadata
            gets[model] = self._status
        # The longest first: the name of a model may have any characters.
        return [
            *(
                Route(path, self._checked(h), methods=["POST"])
                for path, h in posts.items()
            ),
            *(
                Route(path, self._checked(h), methods=["GET"])
                for path, h in gets.items()
            ),
        ]

    def _checked(self, handler: Handler) -> Handler:
        """Check a request, answer it in time, and turn errors into answers."""
        limit = self._service.settings.deadline

        async def answer(request: Request) -> Response:
            try:
                self._access.check_site(request.headers)
                is_open = _OPEN.fullmatch(_path(request))
                if request.method != "POST" and not is_open:
                    self._access.check_key(_bearer(request))
                async with asyncio.timeout(limit):
                    return await handler(request)
            except TimeoutError:
                return _error(504, f"no answer within {limit:g} s: send less at once.")
            except ServiceError as error:
                return _error(error.status, str(error), error.headers)
            except UserError as error:
                return _error(400, str(error))
            except ClientDisconnect:
                request.scope[LEFT_NOTE] = True
                return Response(status_code=400)
            except Exception:
                logger.exception("cannot answer %r", _path(request)[:100])
                return _error(500, FAILED)

        return answer

    async def _body(self, request: Request) -> dict[str, Any]:
        """Return the fields of a request with a body, whose key is valid."""
        content = await read_body(request, self._service.settings)
        kind = media_type(request)
        # TensorFlow Serving reads JSON whatever the type: curl calls it a form.
        is_predict = _path(request).endswith(":predict")
        ignores_type = is_predict and not kind.startswith("multipart/")
        if kind in ("", JSON, "text/plain") or ignores_type:
            body = parse_json(content)
        elif kind == FORM:
            body = parse_form(content)
        else:
            shown = f"received a body of type {kind[:80]}"
            raise ServiceError(415, f"{shown}, expected {JSON} or {FORM}.")
        self._access.check_key(_bearer(request) or str(body.get("api_key", "")))
        return body

    async def _page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": _PAGE_POLICY}
        page = _read("serving", "translate.html")
        return Response(page, media_type="text/html", headers=headers)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise _not_found(request)
        feature, kind = _STATIC[name]
        headers = {"Cache-Control": "no-cache"}
        return Response(_read(feature, name), media_type=kind, headers=headers)

    async def _health(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        if self._service.is_stopping:
            return _json({"status": "stopping"}, 503)
        return _json({"status": "ready"})

    async def _metrics(self, request: Request) -> Response:
        return Response(
            self._service.metrics.text(), headers={"Content-Type": CONTENT_TYPE}
        )

    async def _languages(self, request: Request) -> Response:
        return _json(libretranslate.languages(self._service.models))

    async def _detect(self, request: Request) -> Response:
        await self._body(request)
        raise ServiceError(
            501, "this server detects no language: send it as source to /translate."
        )

    async def _translate(self, request: Request) -> Response:
        body = await self._body(request)
        if _EVENTS in request.headers.get("accept", ""):
            body["stream"] = True
        wanted = libretranslate.TranslateRequest.parse(self._service, body)
        request.scope[TEXTS_NOTE] = wanted.texts
        if wanted.streams:
            events = libretranslate.stream(self._service, wanted)
            return _EventStream(events, self._service.settings.deadline)
        answer = libretranslate.translate(self._service, wanted)
        return _json(await _unless_client_leaves(request, answer))

    async def _predict(self, request: Request) -> Response:
        model = self._model(request)
        body = await self._body(request)
        request.scope[TEXTS_NOTE] = body.get("instances", body.get("inputs"))
        answer = tensorflow_serving.predict(self._service, model, body)
        return _json(await _unless_client_leaves(request, answer))

    async def _metadata(self, request: Request) -> Response:
        return _json(tensorflow_serving.metadata(self._model(request)))

    async def _status(self, request: Request) -> Response:
        return _json(tensorflow_serving.status(self._model(request)))

    def _model(self, request: Request) -> Any:
        version = request.path_params.get("version", tensorflow_serving.VERSION)
        if version != tensorflow_serving.VERSION:
            raise ServiceError(
                404,
                f"received version {version[:40]}, expected "
                f"{tensorflow_serving.VERSION}, the only one.",
            )
        return self._service.model(request.path_params["model"])

    async def _models(self, request: Request) -> Response:
        models = [
            {
                "name": model.name,
                "source_language": model.source_language,
                "target_language": model.target_language,
                "engine": model.engine,
                "signatures": model.signatures,
                "attention": model.shows_attention,
            }
            for model in self._service.models.values()
        ]
        return _json(
            {
                "models": models,
                "needs_key": self._access.needs_key,
                "max_characters": self._service.settings.max_characters,
                "max_beam_size": self._service.settings.max_beam_size,
            }
        )

    async def _attention(self, request: Request) -> Response:
        body = await self._body(request)
        if "q" not in body:
            raise expected([*body], "the sentence in the field q")
        texts = [as_text(body["q"], "q")]
        if "translation" in body:
            texts.append(as_text(body["translation"], "translation"))
        check_texts(texts, self._service.settings)
        model = libretranslate.chosen_model(self._service, body)
        if not model.shows_attention:
            raise ServiceError(
                501,
                f"{model.name} runs in {model.engine}, which shows no attention: serve "
                "one run with the engine tensorflow.",
            )
        source, target = (*texts, None)[:2]
        future = self._service.attention(model, source, target)
        return _json(await _unless_client_leaves(request, future))


class _EventStream(StreamingResponse):
    """Server-sent events, for a client that may read slowly or not at all."""

    def __init__(self, events: AsyncIterator[bytes], seconds: float) -> None:
        # The header tells nginx to pass each event on at once.
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type=_EVENTS)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # The events end in time; what is left is for writing them.
            async with asyncio.timeout(self._seconds + _SECONDS_TO_WRITE):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            scope[LEFT_NOTE] = True


async def _unless_client_leaves(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of work, which is cancelled if the client leaves.

    Raises:
        ClientDisconnect: If the client left.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_client_left(request))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        task.cancel()
        watcher.cancel()


async def _client_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _path(request: Request) -> str:
    # That of `request.url` is what the header Host makes of it in Starlette 1.0.
    return request.scope["path"]


def _bearer(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _read(feature: str, name: str) -> bytes:
    folder = resources.files(f"t2t_repro.features.{feature}") / "static"
    return (folder / name).read_bytes()


def _json(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, headers, media_type=JSON)


def _error(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if len(message) > _MOST_SHOWN:
        message = f"{message[:_MOST_SHOWN]}..."
    return _json({"error": message}, status, headers)


def _not_found(request: Request) -> ServiceError:
    path = _path(request)[:100]
    return ServiceError(404, f"received {path}, which is none of this server's paths.")


async def _no_route(request: Request, error: Any) -> Response:
    """Answer a path or a method that no route has."""
    status, headers = error.status_code, error.headers
    if status == 405:
        allowed = (headers or {}).get("Allow", "another method")
        return _error(
            status, f"received {request.method}, expected {allowed}.", headers
        )
    return _error(status, str(_not_found(request)), headers)
