from __future__ import annotations

import json
import types

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.plugins.projector import ProjectorConfig
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from t2t_repro import catalogue
from t2t_repro.features.attention_view.attention_summaries import branch_evaluator
from t2t_repro.runs.tensorboard import (
    MAX_ROWS,
    write_beginning,
    write_end,
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


def test_the_end_marks_the_run_as_successful(tmp_path):
    log = MetricsLog(tmp_path)
    write_end(log, tiny_transformer(seed=2), (SYMBOLS, SYMBOLS))
    found = EventAccumulator(str(tmp_path / "eval")).Reload().summary_metadata
    (content,) = [metadata.plugin_data.content for metadata in found.values()]
    ended = HParamsPluginData.FromString(content).session_end_info
    assert ended.status == pytest.approx(1)  # STATUS_SUCCESS


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


def test_the_settings_in_the_table_are_those_that_the_user_chose(tmp_path):
    write_beginning(MetricsLog(tmp_path), DESCRIBED)
    found = EventAccumulator(str(tmp_path / "eval")).Reload().summary_metadata
    (content,) = [metadata.plugin_data.content for metadata in found.values()]
    started = HParamsPluginData.FromString(content).session_start_info
    chosen = {"hparams_set", "problem", "random_seed", "hidden_size"}
    assert set(started.hparams) == chosen
    assert started.hparams["hidden_size"].number_value == 32


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
