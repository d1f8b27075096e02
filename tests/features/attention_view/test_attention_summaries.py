from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto import summary_pb2
from tensorboard.util import tensor_util

from t2t_repro.features.attention_view import attention_summaries
from t2t_repro.features.attention_view.attention_summaries import (
    draw_map,
    layer_means,
    write_attention,
)
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.attention_documents import (
    SOURCE,
    TARGET,
    attention_map,
    make_document,
    sequence,
)


def values_of(folder):
    found = {}
    for path in folder.glob("events*"):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                array = tensor_util.make_ndarray(value.tensor)
                found[value.tag] = (event.step, value.metadata, array)
    return found


def test_a_document_is_written_with_the_metadata_of_the_plugin(tmp_path):
    document = make_document(title="dev sentence 3") | {"first_words": "Der <b> …"}
    write_attention(MetricsLog(tmp_path), 200, 2, document)
    step, metadata, array = values_of(tmp_path / "eval")["attention/sentence_2"]
    assert (step, array.shape) == (200, (1,))
    assert json.loads(gzip.decompress(array[0])) == document
    assert metadata.plugin_data.plugin_name == "attention"
    assert metadata.data_class == summary_pb2.DATA_CLASS_BLOB_SEQUENCE
    content = json.loads(metadata.plugin_data.content)
    title = "dev sentence 3: Der <b> …"
    assert content == {"version": 1, "title": title}
    assert metadata.display_name == title


def test_broken_text_is_written(tmp_path):
    document = make_document()
    document["sequences"]["source"]["text"] = "\ud800 <script>"
    write_attention(MetricsLog(tmp_path), 1, 0, document)
    _, _, array = values_of(tmp_path / "eval")["attention/sentence_0"]
    written = json.loads(gzip.decompress(array[0]))
    assert written["sequences"]["source"]["text"] == "? <script>"


def picture_of(folder):
    tag = "samples/encoder_decoder_attention/sentence_0"
    _, metadata, array = values_of(folder)[tag]
    assert metadata.plugin_data.plugin_name == "images"
    width, height, png = array
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    assert pixels.shape == (int(height), int(width), 3)
    return pixels


def test_the_encoder_decoder_attention_is_a_picture(tmp_path):
    document = make_document()
    write_attention(MetricsLog(tmp_path), 5, 0, document)
    expected = draw_map(document, "memory", "dev sentence 1, step 5")
    np.testing.assert_array_equal(picture_of(tmp_path / "eval"), expected)


def one_head(weights, queries=TARGET, keys=SOURCE):
    """Return a document whose encoder-decoder attention has one layer and one head."""
    document = make_document()
    document["sequences"] |= {"source": sequence(keys), "target": sequence(queries)}
    document["maps"] = [attention_map("memory", "target", "source", weights)]
    return document


def cells(pixels, rows, columns):
    """Return the color in the middle of every cell of a picture of one layer."""
    size = attention_summaries.CELL
    bottom = pixels.shape[0] - 2 * attention_summaries.MARGIN - 1
    right = next(
        x
        for x in range(pixels.shape[1] - 1, 0, -1)
        if (pixels[bottom - size // 2, x] < 250).any()
    )
    ys = [bottom - size * rows + size * row + size // 2 for row in range(rows)]
    xs = [right - size * columns + size * c + size // 2 for c in range(columns)]
    return pixels[np.ix_(ys, xs)].mean(axis=-1)


def test_a_cell_is_darker_the_larger_its_weight_is():
    weights = np.zeros((1, 1, len(TARGET), len(SOURCE)))
    weights[..., 0] = np.linspace(0.1, 1.0, len(TARGET))
    document = one_head(weights)
    shade = cells(draw_map(document, "memory", "x"), *weights.shape[2:])
    assert (np.diff(shade[:, 0]) < 0).all()
    assert (shade[:, 1:] > 250).all()
    assert shade[-1, 0] < 80


def test_layers_are_drawn_as_the_mean_of_their_heads():
    weights = np.random.default_rng(0).random((2, 3, len(TARGET), len(SOURCE)))
    entry = attention_map("memory", "target", "source", weights)
    means = layer_means(entry, len(TARGET), len(SOURCE))
    np.testing.assert_allclose(means, weights.mean(axis=1), atol=1e-3)


def test_only_the_first_tokens_of_a_long_sentence_are_drawn():
    words = ["▁ab"] * 200
    weights = np.full((1, 1, 200, 200), 0.005)
    pixels = draw_map(one_head(weights, words, words), "memory", "x")
    assert (
        max(pixels.shape)
        < 100 + attention_summaries.MAX_TOKENS * attention_summaries.CELL + 100
    )


@pytest.mark.parametrize(
    "token", ["", "\n", "<script>", "x" * 10_000, "עברית", "\u202e", "中", "\ud800"]
)
@pytest.mark.parametrize("fonts", [attention_summaries.FONTS, ()])
def test_any_token_can_be_drawn(monkeypatch, token, fonts):
    monkeypatch.setattr(attention_summaries, "FONTS", fonts)
    weights = np.full((1, 1, 2, 2), 0.5)
    pixels = draw_map(one_head(weights, [token, "a"], [token, "b"]), "memory", token)
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 3
    assert max(pixels.shape) < 1000


def test_without_tokens_or_a_decoder_there_is_no_picture(tmp_path):
    document = make_document()
    document["maps"] = document["maps"][:1]
    write_attention(MetricsLog(tmp_path), 5, 0, document)
    assert list(values_of(tmp_path / "eval")) == ["attention/sentence_0"]
    document = make_document()
    document["sequences"]["target"]["tokens"] = []
    assert draw_map(document, "memory", "x") is None


def test_without_a_font_umlauts_lose_their_dots(monkeypatch):
    monkeypatch.setattr(attention_summaries, "FONTS", ())
    weights = np.full((1, 1, 1, 1), 0.5)
    with_dots = draw_map(one_head(weights, ["▁Männer"], ["a"]), "memory", "x")
    without = draw_map(one_head(weights, ["▁Manner"], ["a"]), "memory", "x")
    np.testing.assert_array_equal(with_dots, without)
