from __future__ import annotations

import numpy as np
import pytest
from tensorboard.plugins import base_plugin
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from t2t_repro.runs.tensorboard import MAX_ROWS, write_projector

SUBWORDS = ["<pad>", "▁Haus", "a\tb", "\n", "\u2028", "<b>", "", " "]
MATRIX = np.random.default_rng(0).normal(size=(len(SUBWORDS), 6)).astype(np.float32)


class Folder:
    """A provider of data that knows the names of runs."""

    def list_runs(self, ctx, *, experiment_id):
        class Run:
            run_name = "train"

        return [Run]


@pytest.fixture
def get(tmp_path):
    """Return a function that reads a route of TensorBoard's projector."""
    write_projector(tmp_path, {"shared_embedding": (MATRIX, SUBWORDS)})
    context = base_plugin.TBContext(data_provider=Folder(), logdir=str(tmp_path))
    apps = ProjectorPlugin(context).get_plugin_apps()

    def read(route):
        arguments = {"run": "train", "name": "shared_embedding"}
        response = Client(apps[route]).get("/", query_string=arguments)
        assert response.status_code == 200, response.text
        return response

    return read


def test_the_projector_finds_the_embedding(get):
    assert get("/runs").json == ["train"]
    (embedding,) = get("/info").json["embeddings"]
    assert embedding["tensorName"] == "shared_embedding"
    assert embedding["tensorShape"] == [len(SUBWORDS), 6]


def test_the_projector_reads_the_matrix(get):
    found = np.frombuffer(get("/tensor").data, np.float32).reshape(MATRIX.shape)
    np.testing.assert_allclose(found, MATRIX, rtol=1e-3)


def test_every_row_has_its_subword_and_id(get):
    header, *rows = get("/metadata").text.removesuffix("\n").split("\n")
    assert header == "subword\tid"
    labels, ids = zip(*(row.split("\t") for row in rows), strict=True)
    assert list(ids) == [str(number) for number in range(len(SUBWORDS))]
    assert labels == (
        "<pad>",
        "▁Haus",
        r"a\tb",
        r"\n",
        r"\u2028",
        "<b>",
        "",
        " ",
    )


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
