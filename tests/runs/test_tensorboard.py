from __future__ import annotations

import json
import types

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import (
    api_pb2,
    backend_context,
    get_experiment,
    list_session_groups,
)
from tensorboard.plugins.projector import ProjectorConfig
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from t2t_repro import catalogue
from t2t_repro.features.attention_view.attention_summaries import branch_evaluator
from t2t_repro.runs.tensorboard import (
    MAX_ROWS,
    write_beginning,
    write_end,
    write_hparams,
    write_projector,
)
from t2t_repro.text import SymbolTokenizer
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.tiny_model import tiny_transformer
from tests.support.tiny_training import checkpoints_of, tiny_model

SYMBOLS = SymbolTokenizer([*"abcdefgh"])
DESCRIBED = types.SimpleNamespace(
    hparams_set="transformer_tiny",
    problem="translate_ende_synthetic",
    random_seed=3,
    hparams=catalogue.hparams("transformer_tiny").parse("hidden_size=32").resolved(),
)


def config_of(folder) -> ProjectorConfig:
    text = (folder / "train" / "projector_config.pbtxt").read_text()
    return text_format.Parse(text, ProjectorConfig())


def test_the_end_writes_a_shared_matrix_once_with_its_entries(tmp_path):
    model = tiny_transformer(seed=2)
    write_end(MetricsLog(tmp_path), model, (SYMBOLS, SYMBOLS))
    (found,) = config_of(tmp_path).embeddings
    rows = np.loadtxt(tmp_path / "train" / found.tensor_path, delimiter="\t")
    table = model.source_embedding.table.numpy()
    np.testing.assert_allclose(rows, table, rtol=1e-3)
    lines = (tmp_path / "train" / found.metadata_path).read_text().splitlines()
    entries = [line.split("\t")[0] for line in lines[1:]]
    assert entries == ["<pad>", "</s>", "<unk>", *"abcdefgh"]


def test_the_end_writes_two_matrices_with_the_entries_of_their_sides(tmp_path):
    sources = SymbolTokenizer([*"abcde"])
    model = tiny_transformer(seed=2, tie_embeddings=False, source_vocab_size=8)
    write_end(MetricsLog(tmp_path), model, (sources, SYMBOLS))
    found = {entry.tensor_name: entry for entry in config_of(tmp_path).embeddings}
    assert set(found) == {"source_embedding", "target_embedding"}
    for name, size in (("source_embedding", 8), ("target_embedding", 11)):
        rows = np.loadtxt(tmp_path / "train" / found[name].tensor_path, delimiter="\t")
        assert rows.shape == (size, 8)


class Folders:
    """A provider of data that knows the names of runs."""

    def __init__(self, logdir):
        events = logdir.rglob("events.out.tfevents.*")
        self.names = {str(path.parent.relative_to(logdir)) for path in events}

    def list_runs(self, ctx, *, experiment_id):
        return [types.SimpleNamespace(run_name=name) for name in self.names]


def apps_of_the_projector(folder):
    context = base_plugin.TBContext(data_provider=Folders(folder), logdir=str(folder))
    return ProjectorPlugin(context).get_plugin_apps()


def shown_by_the_projector(folder):
    """Return the tensors that the tab offers in all runs of a log directory."""
    apps = apps_of_the_projector(folder)
    return [
        entry
        for name in Client(apps["/runs"]).get("/").json
        for entry in Client(apps["/info"]).get(f"/?run={name}").json["embeddings"]
    ]


@pytest.mark.parametrize("logdir", ["", "run", "run/train", "run/eval"])
def test_the_projector_shows_only_the_embeddings_with_their_subwords(tmp_path, logdir):
    run = tmp_path / "run"
    run.mkdir()
    checkpoints_of(tiny_model(), run).save(1)
    log = MetricsLog(run)
    log.scalars("train", 1, {"loss": 1.0})
    write_beginning(log, DESCRIBED)
    assert shown_by_the_projector(tmp_path / logdir) == []
    write_end(log, tiny_transformer(seed=2), (SYMBOLS, SYMBOLS))
    shown = shown_by_the_projector(tmp_path / logdir)
    assert {"metadataPath" in entry for entry in shown} <= {True}
    assert len(shown) == (0 if logdir == "run/eval" else 1)


def test_branch_weights_are_written_at_the_step_of_the_evaluation(tmp_path):
    model = tiny_transformer(seed=2, branched_attention="split")
    log = MetricsLog(tmp_path)
    evaluate = branch_evaluator(model)
    for step in (7, 13):
        assert evaluate(step, log) == {}
    accumulator = EventAccumulator(str(tmp_path / "eval")).Reload()
    events = accumulator.Tensors("attention/branches")
    assert [event.step for event in events] == [7, 13]
    layers = json.loads(events[0].tensor_proto.string_val[0])["layers"]
    alphas = [layer.self_attention.alpha.numpy() for layer in model.encoder.layers]
    np.testing.assert_allclose([layer["alpha"] for layer in layers[:2]], alphas)


SUBWORDS = ["<pad>", "▁Haus", "a\tb", "\n", "\u2028", "<b>", "", " "]
MATRIX = np.random.default_rng(0).normal(size=(len(SUBWORDS), 6)).astype(np.float32)


@pytest.fixture
def get(tmp_path):
    """Return a function that reads a route of TensorBoard's projector."""
    write_projector(tmp_path, {"shared_embedding": (MATRIX, SUBWORDS)})
    MetricsLog(tmp_path).scalars("train", 1, {"loss": 1.0})
    apps = apps_of_the_projector(tmp_path)

    def read(route):
        arguments = {"run": "train", "name": "shared_embedding"}
        response = Client(apps[route]).get("/", query_string=arguments)
        assert response.status_code == 200, response.text
        return response

    return read


def test_the_projector_reads_the_matrix(get):
    assert get("/runs").json == ["train"]
    (embedding,) = get("/info").json["embeddings"]
    assert embedding["tensorName"] == "shared_embedding"
    assert embedding["tensorShape"] == [len(SUBWORDS), 6]
    found = np.frombuffer(get("/tensor").data, np.float32).reshape(MATRIX.shape)
    np.testing.assert_allclose(found, MATRIX, rtol=1e-3)


def test_every_row_has_its_subword_and_id(get):
    header, *rows = get("/metadata").text.removesuffix("\n").split("\n")
    assert header == "subword\tid"
    labels, ids = zip(*(row.split("\t") for row in rows), strict=True)
    assert list(ids) == [str(number) for number in range(len(SUBWORDS))]
    assert labels == ("<pad>", "▁Haus", r"a\tb", r"\n", r"\u2028", "<b>", "", " ")


def test_only_the_first_rows_of_a_large_vocabulary_are_written(tmp_path):
    count = MAX_ROWS + 10
    matrix, subwords = np.zeros((count, 1)), ["x"] * count
    write_projector(tmp_path, {"source_embedding": (matrix, subwords)})
    train = tmp_path / "train"
    lines = (train / "source_embedding.tsv").read_text().splitlines()
    assert len(lines) == MAX_ROWS
    labels = (train / "source_embedding_subwords.tsv").read_text().splitlines()
    assert len(labels) == 1 + MAX_ROWS


def test_a_matrix_of_another_length_is_refused(tmp_path):
    with pytest.raises(ValueError, match="one subword per row"):
        write_projector(tmp_path, {"x": (MATRIX, SUBWORDS[:-1])})
    assert not (tmp_path / "train" / "projector_config.pbtxt").exists()


SCORES = {"first": (10.0, 31.0), "second": (20.0, 25.0)}


@pytest.fixture
def table(tmp_path):
    """Return TensorBoard's table of two runs, one of which is complete."""
    for name, scores in SCORES.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        log = MetricsLog(folder)
        rate = 1.0 if name == "first" else 0.5
        write_hparams(log, {"learning_rate": rate, "shared": True, "usr_dir": None})
        for step, score in enumerate(scores):
            log.scalars("eval", step, {"bleu": score})
        log.scalars("train", 1, {"loss": 1.0})
        if name == "first":
            write_end(log, tiny_transformer(seed=2), (SYMBOLS, SYMBOLS))
    return context_of(tmp_path)


def context_of(folder):
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(folder))
    context = base_plugin.TBContext(data_provider=provider)
    return backend_context.Context(context)


def rows_of(table):
    """Return the rows as the tab shows them, sorted by BLEU, best first."""
    experiment = get_experiment.Handler(
        RequestContext(), table, "", api_pb2.GetExperimentRequest(include_metrics=True)
    ).run()
    metrics = [info.name for info in experiment.metric_infos]
    (bleu,) = [name for name in metrics if name.tag == "evaluation/bleu"]
    columns = [
        api_pb2.ColParams(metric=bleu, order=api_pb2.ORDER_DESC, include_in_result=True)
    ]
    names = [info.name for info in experiment.hparam_infos]
    columns += [api_pb2.ColParams(hparam=n, include_in_result=True) for n in names]
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=10,
        col_params=columns,
        include_metrics=True,
        allowed_statuses=[
            api_pb2.STATUS_UNKNOWN,
            api_pb2.STATUS_SUCCESS,
            api_pb2.STATUS_RUNNING,
        ],
    )
    handler = list_session_groups.Handler(RequestContext(), table, "", request)
    return metrics, list(handler.run().session_groups)


def test_a_row_has_its_settings_by_type_its_last_score_and_its_status(table):
    metrics, rows = rows_of(table)
    assert {name.tag for name in metrics} == {"evaluation/bleu"}
    assert [row.name for row in rows] == ["runs/first", "runs/second"]
    assert [row.metric_values[0].value for row in rows] == [31.0, 25.0]
    assert [row.sessions[0].status for row in rows] == [
        api_pb2.STATUS_SUCCESS,  # only of the complete run
        api_pb2.STATUS_UNKNOWN,
    ]
    values = rows[1].hparams
    assert values["learning_rate"].number_value == 0.5
    assert values["shared"].bool_value is True
    assert values["usr_dir"].string_value == "None"


def test_the_score_of_translations_comes_before_the_other_scores(tmp_path):
    log = MetricsLog(tmp_path)
    write_hparams(log, {"hparams_set": "transformer_tiny"})
    scores = {"nll": 2.0, "perplexity": 7.4, "token_accuracy": 0.5, "bleu": 31.0}
    log.scalars("eval", 1, scores)
    metrics, _ = rows_of(context_of(tmp_path))
    tags = [name.tag for name in metrics]
    assert tags[0] == "evaluation/bleu"
    assert len(tags) == len(scores)
