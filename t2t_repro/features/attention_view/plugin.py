"""The TensorBoard plugin whose tab "Attention" shows attention over training.

TensorBoard finds it by the entry point `tensorboard_plugins`. The view in
`static/attention_view.js` reads the routes below through `static/plugin.js`.

TensorBoard stops reading a file at a wrong checksum and shows the steps before it
without a message; `find_damage` reports the damage.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import re
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from tensorboard import context as tensorboard_context
from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.compat.proto import event_pb2
from tensorboard.context import RequestContext
from tensorboard.data.provider import DataProvider, RunTagFilter
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from t2t_repro.data.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    DamagedRecordError,
    check_data,
    record_length,
)
from t2t_repro.features.attention_view.event_format import (
    BRANCHES_TAG,
    PLUGIN_NAME,
    DamagedError,
    sentence_id_of,
    sentence_tag,
    unpack_branches,
    unpack_document,
    unpack_title,
)

# By default, TensorBoard keeps a random 10 steps of a plugin. Three sentence pairs of
# 30 tokens with 6 layers of 8 heads take 0.3 GB of memory for 500 steps.
KEPT_STEPS = 500

_STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
_BAD_REQUEST = 400
# TensorBoard requires a limit here, after dropping the steps that it does not keep.
_ALL_STEPS = 1_000_000
_NOT_FOUND, _UNPROCESSABLE = 404, 422
# Until the file is this old, a record that ends early may still be in writing.
_SECONDS_OF_WRITING = 10.0


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
    try:
        step = int(arguments["step"])
    except ValueError as error:
        given = arguments["step"][:40]
        raise ReadError(
            f'The step must be a number, not "{given}".', _BAD_REQUEST
        ) from error
    return reader.document(arguments["run"], arguments["id"], step)


def _serve_file(
    path: Path, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Any:
    """Serve a file of the package."""
    request = wrappers.Request(environ)
    response = http_util.Respond(request, path.read_bytes(), _MEDIA_TYPES[path.suffix])
    return response(environ, start_response)


class ReadError(Exception):
    """Error raised when data is missing or damaged.

    Args:
        message: One sentence for the page.
        code: HTTP status from 400 to 499.
    """

    def __init__(self, message: str, code: int = _NOT_FOUND) -> None:
        super().__init__(message)
        self.code = code


@dataclasses.dataclass(frozen=True)
class EventReader:
    """Reader of the attention of one experiment.

    Attributes:
        provider: TensorBoard's provider of data.
        context: The request to answer.
        experiment: Id of the experiment; empty for a folder of logs.
        logdir: Folder of the runs, or "" if they are not in one folder.
    """

    provider: DataProvider
    context: RequestContext
    experiment: str
    logdir: str = ""

    def runs(self) -> list[str]:
        """Return the names of the runs that have attention."""
        sentences = self._read(self.provider.list_blob_sequences)
        branches = self._read(self.provider.list_tensors)
        return sorted({*sentences, *branches}, key=_natural_order)

    def contents(self, run: str) -> dict[str, Any]:
        """Return the sentence pairs of a run, and whether it has branches.

        Returns:
            "sentences", each with its "id", "title" and "steps"; "branches"; and
            "damage", a sentence about damaged event files or None.

        Raises:
            ReadError: If the run has no attention, or it is damaged.
        """
        sentences = self._read(self.provider.list_blob_sequences, [run]).get(run, {})
        branches = self._read(self.provider.list_tensors, [run]).get(run, {})
        if not sentences and not branches:
            raise ReadError(f'The run "{run}" has no attention.')
        found, shown = [], set[int]()
        for tag in sorted(sentences, key=_natural_order):
            name = sentence_id_of(tag)
            title = unpack_title(sentences[tag].plugin_content) or name
            steps = list(self._blob_keys(run, tag))
            found.append({"id": name, "title": title, "steps": steps})
            shown.update(steps)
        folder = Path(self.logdir, run)
        damage = find_damage(folder, run, shown) if self.logdir else None
        return {
            "sentences": found,
            "branches": BRANCHES_TAG in branches,
            "damage": damage,
        }

    def document(self, run: str, sentence_id: str, step: int) -> bytes:
        """Return the packed document of a sentence pair at a step.

        Raises:
            ReadError: If the document is missing or damaged.
        """
        keys = self._blob_keys(run, sentence_tag(sentence_id))
        if step not in keys:
            raise ReadError(
                f'The run "{run}" has no attention of "{sentence_id}" at step {step}.'
            )
        with _damage(f'the attention of "{sentence_id}" at step {step}'):
            content = self.provider.read_blob(self.context, blob_key=keys[step])
            unpack_document(content)
        return content

    def branches(self, run: str) -> list[dict[str, Any]]:
        """Return kappa and alpha of a run's layers at every step.

        Returns:
            Dictionaries with "step" and "layers", in the order of steps.

        Raises:
            ReadError: If kappa and alpha are missing or damaged.
        """
        series = self._series(self.provider.read_tensors, run, BRANCHES_TAG)
        if not series:
            raise ReadError(f'The run "{run}" has no kappa and alpha.')
        found = {}
        for datum in series:
            with _damage(f"the tensor of kappa and alpha at step {datum.step}"):
                found[datum.step] = unpack_branches(datum.numpy.item())
        return [{"step": step, "layers": found[step]} for step in sorted(found)]

    def _blob_keys(self, run: str, tag: str) -> dict[int, str]:
        """Return the key of the document at every step, in the order of steps."""
        series = self._series(self.provider.read_blob_sequences, run, tag)
        keys = {
            datum.step: datum.values[0].blob_key for datum in series if datum.values
        }
        return dict(sorted(keys.items()))

    def _series(self, read: Callable[..., Any], run: str, tag: str) -> list[Any]:
        found = self._read(read, [run], [tag], downsample=_ALL_STEPS)
        return found.get(run, {}).get(tag, [])

    def _read(
        self,
        read: Callable[..., Any],
        runs: list[str] | None = None,
        tags: list[str] | None = None,
        **limits: int,
    ) -> dict[str, Any]:
        """Call a method of the provider that returns time series by run and tag."""
        with _damage("the attention" + (f' of the run "{runs[0]}"' if runs else "")):
            return read(
                self.context,
                experiment_id=self.experiment,
                plugin_name=PLUGIN_NAME,
                run_tag_filter=RunTagFilter(runs=runs, tags=tags),
                **limits,
            )


@contextmanager
def _damage(name: str) -> Generator[None]:
    """Turn any failure of reading into a sentence.

    TensorBoard has several providers of data, and each raises other errors for a
    tensor of another shape, a changed file or a server that has stopped.
    """
    try:
        yield
    except DamagedError as error:
        sentence = f"{name[:1].upper()}{name[1:]} is damaged: {error}."
        raise ReadError(sentence, _UNPROCESSABLE) from error
    except Exception as error:
        raise ReadError(
            f"TensorBoard cannot read {name}: {type(error).__name__}.", _UNPROCESSABLE
        ) from error


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts "sentence_10" after "sentence_9"."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part)
        for part in re.split(r"(\d+)", name)
    ]


def find_damage(folder: Path, run: str, shown: Collection[int]) -> str | None:
    """Return a sentence about the last damage in the event files of a run, or None.

    Args:
        folder: Folder of the run.
        run: Name of the run.
        shown: Steps that TensorBoard has read. The checksums of their data are not
            computed again, because that is slow.
    """
    for path in sorted(folder.glob("*tfevents*"), reverse=True):
        try:
            place = _damage_in(path, shown)
        except OSError:  # TensorBoard has read it; it may have been removed since
            continue
        if place:
            return (
                f'An event file of the run "{run}" is damaged {place} may be missing '
                f"here ({path.name})."
            )
    return None


def _damage_in(path: Path, shown: Collection[int]) -> str:
    """Return what is damaged in a file, such as "after step 2, so later steps"."""
    last_step = None
    with path.open("rb") as file:
        try:
            while (step := _next_step(file, shown)) is not None:
                last_step = step
            return ""
        except DamagedRecordError:
            pass
        except EOFError:
            if time.time() - path.stat().st_mtime <= _SECONDS_OF_WRITING:
                return ""
    if last_step is None:
        return "at its beginning, so its steps"
    return f"after step {last_step}, so later steps"


def _next_step(file: BinaryIO, shown: Collection[int]) -> int | None:
    """Return the step of the next event, or None at the end of the file.

    Raises:
        EOFError: If the file ends within the event.
        DamagedRecordError: If a checksum is wrong, or the data are not an event.
    """
    header = file.read(HEADER_BYTES)
    if not header:
        return None
    length = record_length(header)
    record = file.read(length + FOOTER_BYTES)
    if len(record) < length + FOOTER_BYTES:
        raise EOFError
    data, footer = record[:length], record[length:]
    try:
        step = event_pb2.Event.FromString(data).step
    except DecodeError as error:
        raise DamagedRecordError("a record is not an event") from error
    if step not in shown:
        check_data(data, footer)
    return step
