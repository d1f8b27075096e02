"""The TensorBoard plugin whose tab "Attention" shows attention over training.

TensorBoard finds it by the entry point `tensorboard_plugins`. The view in
`static/attention_view.js` reads the routes below through `static/plugin.js`.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard import context as tensorboard_context
from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from t2t_repro.features.attention_view.event_format import PLUGIN_NAME
from t2t_repro.features.attention_view.event_reader import EventReader, ReadError

# By default, TensorBoard keeps a random 10 steps of a plugin. Three sentence pairs of
# 30 tokens with 6 layers of 8 heads take 0.3 GB of memory for 500 steps.
KEPT_STEPS = 500

_STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
_BAD_REQUEST = 400
_MAX_STEP_DIGITS = 19  # those of the largest int64


class AttentionPlugin(base_plugin.TBPlugin):
    """TensorBoard plugin that serves attention, and the page that draws it.

    Args:
        context: TensorBoard's context, with the provider of data.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._provider = context.data_provider
        self._logdir = context.logdir or ""

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        files = {
            f"/{path.name}": functools.partial(_serve_file, path)
            for path in _STATIC.iterdir()
            if path.suffix in _MEDIA_TYPES
        }
        data = {
            "/runs": lambda reader, arguments: reader.runs(),
            "/list": lambda reader, arguments: reader.contents(arguments["run"]),
            "/document": _document,
            "/branches": lambda reader, arguments: reader.branches(arguments["run"]),
        }
        routes = {
            route: functools.partial(self._serve_data, read)
            for route, read in data.items()
        }
        return files | routes

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(
            es_module_path="/plugin.js", tab_name="Attention"
        )

    def is_active(self) -> bool:
        """Return whether any run has attention."""
        if self._provider is None:
            return False
        reader = EventReader(self._provider, tensorboard_context.RequestContext(), "")
        try:
            return bool(reader.runs())
        except ReadError:
            return False

    def _serve_data(
        self,
        read: Callable[[EventReader, _Arguments], Any],
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Any:
        """Serve JSON, or `{"error": "One sentence."}` with a status of 400 to 499."""
        request = wrappers.Request(environ)
        reader = EventReader(
            self._provider,
            plugin_util.context(environ),
            plugin_util.experiment_id(environ),
            self._logdir,
        )
        code = 200
        try:
            content = read(reader, _Arguments(request.args))
        except ReadError as error:
            content, code = {"error": str(error)}, error.code
        encoding = "gzip" if isinstance(content, bytes) else None
        response = http_util.Respond(
            request, content, "application/json", code, content_encoding=encoding
        )
        return response(environ, start_response)


class AttentionLoader(base_plugin.TBLoader):
    """Loader of the plugin, which lets TensorBoard keep enough steps for its slider."""

    def fix_flags(self, flags: argparse.Namespace) -> None:
        """Keep `KEPT_STEPS` steps, unless the user gave `--samples_per_plugin`."""
        flags.samples_per_plugin.setdefault(PLUGIN_NAME, KEPT_STEPS)

    def load(self, context: base_plugin.TBContext) -> AttentionPlugin:
        return AttentionPlugin(context)


class _Arguments(dict[str, str]):
    """The arguments of a request."""

    def __missing__(self, name: str) -> str:
        raise ReadError(f'The request has no argument "{name}".', _BAD_REQUEST)


def _document(reader: EventReader, arguments: _Arguments) -> bytes:
    step = arguments["step"]
    if not (step.isascii() and step.isdecimal() and len(step) <= _MAX_STEP_DIGITS):
        raise ReadError(
            f"The step must be a number of at most {_MAX_STEP_DIGITS} digits, not "
            f'"{step[:40]}".',
            _BAD_REQUEST,
        )
    return reader.document(arguments["run"], arguments["id"], int(step))


def _serve_file(
    path: Path, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Any:
    """Serve a file of the package."""
    request = wrappers.Request(environ)
    response = http_util.Respond(request, path.read_bytes(), _MEDIA_TYPES[path.suffix])
    return response(environ, start_response)
