from __future__ import annotations

import contextlib
import functools
import gzip
import importlib
import json
import os
import time
import tomllib
from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard import program
from tensorboard.backend.event_processing.data_ingester import LocalDataIngester
from tensorboard.compat.proto import summary_pb2
from tensorboard.context import RequestContext
from tensorboard.data import server_ingester
from tensorboard.plugins import base_plugin
from tensorboard.plugins.core.core_plugin import CorePluginLoader
from werkzeug.test import Client

import t2t_repro.features.attention_view
from t2t_repro.features.attention_view.attention_summaries import (
    write_attention,
    write_branches,
)
from t2t_repro.features.attention_view.event_format import (
    MAX_DOCUMENT_BYTES,
    pack_document,
)
from t2t_repro.features.attention_view.plugin import (
    KEPT_STEPS,
    AttentionLoader,
    AttentionPlugin,
)
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.attention_documents import make_document
from tests.support.waiting import until

# TensorBoard's ingester drops the handle of its server process.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

STATIC = Path(t2t_repro.features.attention_view.__file__).parent / "static"
REPOSITORY = Path(__file__).parents[3]


def flags_of(logdir, *more):
    board = program.TensorBoard(plugins=[CorePluginLoader(), AttentionLoader()])
    arguments = ["--logdir", str(logdir), "--reload_interval=0", *more]
    board.configure(["tensorboard", *arguments, "--reload_task=blocking"])
    return board.flags


def python_ingester(flags):
    """Read events as `--load_fast=false` does."""
    return LocalDataIngester(flags)


def server_process(flags):
    """Read events as `--load_fast=true` does."""
    return server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(),
        flags.logdir,
        reload_interval=flags.reload_interval,
        channel_creds_type=flags.grpc_creds_type,
        samples_per_plugin=flags.samples_per_plugin,
    )


class Tab:
    """The plugin on a folder of event files."""

    def __init__(self, ingester, logdir, *flags):
        parsed = flags_of(logdir, *flags)
        self.ingester = ingester(parsed)
        self.ingester.start()
        provider = self.ingester.data_provider
        context = base_plugin.TBContext(
            data_provider=provider, flags=parsed, logdir=parsed.logdir
        )
        self.plugin = AttentionLoader().load(context)
        self.apps = self.plugin.get_plugin_apps()

    def close(self):
        """End the server process, which lives as long as its input is open."""
        handle = getattr(self.ingester, "_stdin_handle", None)
        if handle is not None:
            handle.close()

    def get(self, route, **arguments):
        client = Client(self.apps[route])
        return client.get("/", query_string=arguments)

    def read(self, route, **arguments):
        response = self.get(route, **arguments)
        assert response.status_code == 200, response.text
        return response.json

    def error(self, route, **arguments):
        response = self.get(route, **arguments)
        assert list(response.json) == ["error"]
        return response.status_code, response.json["error"]


@contextlib.contextmanager
def opening(ingester):
    """Return a function that opens the plugin and waits until a step is read."""
    opened = []

    def open_(logdir, *flags, last=None):
        tab = Tab(ingester, logdir, *flags)
        opened.append(tab)
        if last:
            tag, step = last
            until(lambda: last_step(tab, tag) == step)
        return tab

    yield open_
    for tab in opened:
        tab.close()


@pytest.fixture(params=[python_ingester, server_process])
def open_tab(request):
    with opening(request.param) as open_:
        yield open_


def last_step(tab, tag):
    """Return the last step of a tag in any run, or None if it is not there yet."""
    provider = tab.plugin._provider
    for method in (provider.list_blob_sequences, provider.list_tensors):
        found = method(RequestContext(), experiment_id="", plugin_name="attention")
        for tags in found.values():
            if tag in tags:
                return tags[tag].max_step
    return None


LAYERS = [{"name": "encoder layer 1", "kappa": [0.25, 0.75], "alpha": [0.5, 0.5]}]


def document_of(number, step):
    return make_document(
        title=f"dev sentence {number + 1}",
        seed=step,
        layers=1,
        heads=2,
        align_head=None,
    )


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for name in ("plain", "weighted"):
        (folder / name).mkdir()
        log = MetricsLog(folder / name)
        log.scalars("train", 1, {"loss": 1.0})
        for step in [100, 200] if name == "plain" else range(10, 410, 10):
            for number in (0, 1, 10) if name == "plain" else (0,):
                write_attention(log, step, number, document_of(number, step))
            if name == "weighted":
                write_branches(log, step, LAYERS)
    return folder


@pytest.fixture(scope="module", params=[python_ingester, server_process])
def tab(request, logdir):
    with opening(request.param) as open_:
        tab = open_(logdir, last=("attention/branches", 400))
        until(lambda: tab.read("/runs") == ["plain/eval", "weighted/eval"])
        until(lambda: len(tab.read("/list", run="plain/eval")["sentences"]) == 3)
        yield tab


def test_sentences_are_listed_by_number_with_their_titles_and_steps(tab):
    assert tab.read("/list", run="plain/eval") == {
        "sentences": [
            {
                "id": f"sentence_{number}",
                "title": f"dev sentence {number + 1}",
                "steps": [100, 200],
            }
            for number in (0, 1, 10)
        ],
        "branches": False,
        "damage": None,
    }
    assert tab.plugin.is_active()


def test_more_steps_than_tensorboards_ten_are_kept(tab):
    found = tab.read("/list", run="weighted/eval")
    assert found["sentences"][0]["steps"] == list(range(10, 410, 10))
    assert found["branches"] is True
    branches = tab.read("/branches", run="weighted/eval")
    assert [entry["step"] for entry in branches] == list(range(10, 410, 10))
    assert branches[0]["layers"] == LAYERS


def test_a_document_comes_back_as_it_was_written(tab):
    for step in (10, 400):
        arguments = {"run": "weighted/eval", "id": "sentence_0", "step": step}
        assert tab.read("/document", **arguments) == document_of(0, step)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ("list", 400, 'The request has no argument "run".'),
        ("list run=plain/train", 404, 'The run "plain/train" has no'),
        ("branches run=plain/eval", 404, "has no kappa and alpha."),
        ("document run=plain/eval", 400, 'has no argument "step".'),
        ("document step=x", 400, 'The step must be a number, not "x".'),
        (f"document step={'1' * 5000}", 400, f'a number, not "{"1" * 40}".'),
        (
            "document run=plain/eval id=sentence_0 step=300",
            *(404, 'has no attention of "sentence_0" at step 300.'),
        ),
        (
            "document run=weighted/eval id=branches step=10",
            *(404, 'has no attention of "branches" at step 10.'),
        ),
    ],
    ids=range(8),
)
def test_a_request_without_an_answer_gets_a_sentence(tab, request_, code, message):
    route, *arguments = request_.split()
    found = tab.error(f"/{route}", **dict(a.split("=") for a in arguments))
    assert found[0] == code
    assert message in found[1]


def test_a_folder_without_attention_is_empty(open_tab, tmp_path):
    MetricsLog(tmp_path).scalars("train", 1, {"loss": 1.0})
    empty = open_tab(tmp_path)
    assert empty.read("/runs") == []
    assert not empty.plugin.is_active()


def write_tensor(folder, tag, tensor, data_class, step=1):
    """Write a tensor that claims to be attention."""
    plugin_data = summary_pb2.SummaryMetadata.PluginData(plugin_name="attention")
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=plugin_data, data_class=data_class
    )
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=step):
        tf.summary.write(f"attention/{tag}", tensor, metadata=metadata)
    writer.close()


BLOBS = summary_pb2.DATA_CLASS_BLOB_SEQUENCE
TENSORS = summary_pb2.DATA_CLASS_TENSOR
GOOD = pack_document(make_document(layers=1, heads=1, align_head=None))


DAMAGED = [
    (b"", "it is not JSON"),
    (b"{}", "it is not compressed"),
    (GOOD[: len(GOOD) // 2], "it is not compressed"),
    (GOOD[:60] + b"???" + GOOD[63:], "it is not compressed"),
    (pack_document({"version": 2}), "it has version 2, expected version 1"),
    (pack_document({"version": 1}), 'it has no "maps"'),
    (pack_document([1]), "it is not a JSON object"),
    (gzip.compress(b"[" * 200_000), "it is not JSON"),
    (
        gzip.compress(bytes(MAX_DOCUMENT_BYTES + 1)),
        f"it is larger than {MAX_DOCUMENT_BYTES:,} bytes",
    ),
]


def test_a_damaged_document_gets_a_sentence(open_tab, tmp_path):
    for step, (content, _) in enumerate(DAMAGED):
        write_tensor(tmp_path, "s", tf.constant([content]), BLOBS, step)
    damaged = open_tab(tmp_path, last=("attention/s", len(DAMAGED) - 1))
    assert damaged.read("/list", run=".")["sentences"][0]["title"] == "s"
    for step, (_, reason) in enumerate(DAMAGED):
        sentence = f'The attention of "s" at step {step} is damaged: {reason}.'
        found = damaged.error("/document", run=".", id="s", step=step)
        assert found == (422, sentence)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b'{"version": 1}'])
def test_damaged_branches_get_a_sentence(tmp_path, content):
    write_tensor(tmp_path, "branches", tf.constant(content), TENSORS)
    code, message = Tab(python_ingester, tmp_path).error("/branches", run=".")
    assert code == 422
    assert message.startswith("The tensor of kappa and alpha at step 1 is damaged: ")


@pytest.mark.parametrize("tensor", [tf.constant(b"x"), tf.zeros([0])])
@pytest.mark.parametrize(("tag", "data_class"), [("s", BLOBS), ("branches", TENSORS)])
def test_a_tensor_of_another_kind_is_no_traceback(tmp_path, tensor, tag, data_class):
    write_tensor(tmp_path, tag, tensor, data_class)
    odd = Tab(python_ingester, tmp_path)
    for route in ("/runs", "/list", "/document", "/branches"):
        response = odd.get(route, run=".", id="s", step=1)
        assert response.status_code in (200, 404, 422)
        json.loads(response.text)


def write_steps(folder, steps):
    """Write a sentence at each step; return the file and its size after each."""
    log = MetricsLog(folder)
    sizes = []
    for step in steps:
        write_attention(log, step, 0, document_of(0, step))
        (path,) = (folder / "eval").glob("events*")
        sizes.append(path.stat().st_size)
    return path, sizes


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)


def contents_of(folder, path, place, open_=None):
    """Return the steps that are read, and whether the damage is told at its place."""
    tab = open_(folder) if open_ else Tab(python_ingester, folder)
    found = tab.read("/list", run="eval")
    sentence = (
        f'An event file of the run "eval" is damaged {place} may be missing here '
        f"({path.name})."
    )
    return found["sentences"][0]["steps"], found["damage"] == sentence


def test_damage_in_an_event_file_is_told_with_the_last_step_before_it(
    open_tab, tmp_path
):
    path, sizes = write_steps(tmp_path, (1, 2, 3))
    flip(path, sizes[1])  # the length of the first event of step 3
    cut = functools.partial(open_tab, last=("attention/sentence_0", 2))
    place = "after step 2, so later steps"
    assert contents_of(tmp_path, path, place, cut) == ([1, 2], True)
    flip(path, sizes[0] + 200)  # data that the Python process checks
    place = "after step 1, so later steps"
    assert contents_of(tmp_path, path, place) == ([1], True)


@pytest.mark.parametrize("seconds", [0, 60])
def test_an_event_cut_short_is_damage_unless_it_may_be_in_writing(tmp_path, seconds):
    path, sizes = write_steps(tmp_path, (1, 2, 3))
    path.write_bytes(path.read_bytes()[: sizes[1] + 100])
    changed = time.time() - seconds
    os.utime(path, (changed, changed))
    place = "after step 2, so later steps"
    assert contents_of(tmp_path, path, place) == ([1, 2], seconds > 0)


def test_a_file_damaged_at_its_beginning_has_no_last_step(tmp_path):
    write_steps(tmp_path, (1, 2, 3))
    path = tmp_path / "eval" / "events.out.tfevents.0.old"
    path.write_bytes(b"?" * 100)
    place = "at its beginning, so its steps"
    assert contents_of(tmp_path, path, place) == ([1, 2, 3], True)


def test_steps_that_a_resumed_run_repeats_are_listed_once(open_tab, tmp_path):
    for steps in ([1, 2, 3], [2, 3, 4]):
        log = MetricsLog(tmp_path)
        for step in steps:
            write_attention(log, step, 0, document_of(0, step))
        del log
    resumed = open_tab(tmp_path, last=("attention/sentence_0", 4))
    (sentence,) = resumed.read("/list", run="eval")["sentences"]
    assert sentence["steps"] == [1, 2, 3, 4]


def test_of_two_tensors_at_one_step_the_last_counts(open_tab, tmp_path):
    log = MetricsLog(tmp_path)
    for step, kappa in ((1, 0.0), (2, 0.0), (2, 1.0), (3, 1.0)):
        write_branches(log, step, [{**LAYERS[0], "kappa": [kappa]}])
    tab = open_tab(tmp_path, last=("attention/branches", 3))
    found = tab.read("/branches", run="eval")
    kappas = [(entry["step"], entry["layers"][0]["kappa"]) for entry in found]
    assert kappas == [(1, [0.0]), (2, [1.0]), (3, [1.0])]


def test_a_provider_that_fails_is_no_traceback():
    class Broken:
        def list_blob_sequences(self, *args, **kwargs):
            raise ConnectionError("the server has stopped")

    plugin = AttentionPlugin(base_plugin.TBContext(data_provider=Broken()))
    response = Client(plugin.get_plugin_apps()["/runs"]).get("/")
    assert (response.status_code, response.json) == (
        422,
        {"error": "TensorBoard cannot read the attention: ConnectionError."},
    )
    assert not plugin.is_active()
    assert not AttentionPlugin(base_plugin.TBContext()).is_active()


def test_documents_are_sent_compressed_to_those_who_accept_it(tab):
    client = Client(tab.apps["/document"])
    arguments = {"run": "plain/eval", "id": "sentence_0", "step": 100}
    plain = client.get("/", query_string=arguments)
    packed = client.get(
        "/", query_string=arguments, headers={"Accept-Encoding": "gzip"}
    )
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.data == pack_document(document_of(0, 100))
    assert "Content-Encoding" not in plain.headers
    assert plain.json == document_of(0, 100)


def test_the_tab_and_the_files_of_its_page_are_served():
    plugin = AttentionPlugin(base_plugin.TBContext())
    metadata = plugin.frontend_metadata()
    assert metadata.tab_name == "Attention"
    assert metadata.es_module_path == "/plugin.js"
    types = {"plugin.js": "text/javascript", "attention_view.css": "text/css"}
    for name, media_type in types.items():
        response = Client(plugin.get_plugin_apps()[f"/{name}"]).get("/")
        assert response.content_type == f"{media_type}; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.data == (STATIC / name).read_bytes()


def test_five_hundred_steps_are_kept_unless_the_user_says_otherwise(tmp_path):
    assert flags_of(tmp_path).samples_per_plugin == {"attention": KEPT_STEPS}
    chosen = flags_of(tmp_path, "--samples_per_plugin=attention=0,images=7")
    assert chosen.samples_per_plugin == {"attention": 0, "images": 7}


def test_the_entry_point_names_the_loader():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["tensorboard_plugins"][
        "attention"
    ].partition(":")
    assert getattr(importlib.import_module(module), name) is AttentionLoader
