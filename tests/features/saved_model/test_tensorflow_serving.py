"""A SavedModel answers the requests of TensorFlow Serving."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip(
    "tensorflow_serving.apis.predict_pb2",
    reason="needs the messages of tensorflow-serving-api",
)
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tests.support.model_server import ModelServer, predict_request

TEXTS = ["we sleep .", "", "the old horse", "漢字 🙂", "a child today"]


@pytest.fixture(scope="module")
def server(subword_system):
    return ModelServer(str(subword_system.folder))


@pytest.fixture(scope="module")
def expected(subword_system):
    return [best[0].text for best in subword_system.translator.translate(TEXTS)]


def arrays(response):
    return {key: tf.make_ndarray(value) for key, value in response.outputs.items()}


def test_these_translations_differ(expected):
    assert len(set(expected)) == len(expected)


def test_a_grpc_request_is_answered_in_order(server, expected):
    found = arrays(server.predict(predict_request("", {"inputs": TEXTS})))
    assert [text.decode() for text in found["outputs"]] == expected
    assert set(found) == {"outputs", "scores", "truncated"}
    assert (found["scores"].dtype, found["scores"].shape) == (np.float32, (5,))
    assert (found["truncated"].dtype, found["truncated"].shape) == (np.bool_, (5,))


def test_a_grpc_request_without_rows_is_answered(server):
    found = arrays(server.predict(predict_request("n_best", {"inputs": []})))
    assert found["outputs"].shape == (0, 2)


def test_a_grpc_request_for_scores_names_both_sides(server, subword_system):
    pairs = {"inputs": TEXTS, "targets": TEXTS[::-1]}
    found = arrays(server.predict(predict_request("score", pairs)))
    signature = subword_system.signatures["score"]
    scores = signature(**{key: tf.constant(texts) for key, texts in pairs.items()})
    np.testing.assert_allclose(found["scores"], scores["scores"], rtol=1e-5)
    assert found["tokens"].dtype == np.int32


def test_every_output_of_every_signature_has_one_row_per_input(server):
    # Otherwise the server can neither batch requests nor answer REST requests by row.
    for name in ("serving_default", "n_best", "score", "attention"):
        texts = {"inputs": TEXTS, "targets": TEXTS}
        if name in ("serving_default", "n_best"):
            del texts["targets"]
        found = arrays(server.predict(predict_request(name, texts)))
        assert {len(value) for value in found.values()} == {len(TEXTS)}


def test_requests_that_the_server_batches_have_their_own_answers(server, expected):
    # The server joins the rows of requests, and fills a batch up with its first row.
    rows = [*TEXTS[:2], *TEXTS[2:], TEXTS[0]]
    found = arrays(server.predict(predict_request("", {"inputs": rows})))
    outputs = [text.decode() for text in found["outputs"]]
    assert outputs[:2] == expected[:2]
    assert outputs[2:5] == expected[2:]


@pytest.mark.parametrize(
    "instances",
    [
        TEXTS,
        [{"inputs": text} for text in TEXTS],
        [{"b64": base64.b64encode(text.encode()).decode()} for text in TEXTS],
    ],
    ids=["values", "named values", "base64"],
)
def test_a_rest_request_by_row_is_answered_by_row(server, expected, instances):
    answer = server.post({"instances": instances})
    answer = json.loads(json.dumps(answer, allow_nan=False))
    assert [row["outputs"] for row in answer["predictions"]] == expected
    assert set(answer["predictions"][0]) == {"outputs", "scores", "truncated"}


@pytest.mark.parametrize("inputs", [TEXTS, {"inputs": TEXTS}])
def test_a_rest_request_by_column_is_answered_by_column(server, expected, inputs):
    answer = server.post({"inputs": inputs})
    answer = json.loads(json.dumps(answer, allow_nan=False))
    assert answer["outputs"]["outputs"] == expected
    assert answer["outputs"]["truncated"] == [False] * len(TEXTS)


def test_a_rest_request_names_its_signature(server, expected):
    body = {"signature_name": "n_best", "instances": TEXTS}
    rows = server.post(body)["predictions"]
    assert [row["outputs"][0] for row in rows] == expected
    assert {len(row["scores"]) for row in rows} == {2}


def test_answers_to_bytes_that_are_not_utf8_are_json(server):
    wrong = {"b64": base64.b64encode(b"\xff\xfe we \xed\xa0\x80").decode()}
    answer = server.post({"instances": [wrong]})
    json.dumps(answer, allow_nan=False)


def test_an_export_has_one_answerable_warm_up_request_per_signature(
    server, subword_system
):
    file = subword_system.folder / "assets.extra" / "tf_serving_warmup_requests"
    names = []
    for record_bytes in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        request = PredictionLog.FromString(record_bytes).predict_log.request
        names.append(request.model_spec.signature_name)
        assert server.predict(request).outputs["scores"].tensor_shape.dim[0].size == 3
    assert names == ["serving_default", "n_best", "score", "attention"]
