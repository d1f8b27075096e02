"""Requests and answers are those of TensorFlow Serving's REST interface.

https://www.tensorflow.org/tfx/serving/api_rest
"""

from __future__ import annotations

import base64

import pytest

from tests.support.served import ShoutingModel, serving

MODEL = "/v1/models/en-de"
PREDICT = f"{MODEL}:predict"


def b64(content: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(content).decode()}


def row(text: str) -> dict[str, object]:
    return {"outputs": text, "scores": 0.0, "truncated": False}


def columns(*texts: str) -> dict[str, list]:
    count = len(texts)
    return {
        "outputs": [*texts],
        "scores": [0.0] * count,
        "truncated": [False] * count,
    }


N_BEST_ROW = {
    "outputs": ["A", "A?", "A??", "A???"],
    "scores": [0.0, -1.0, -2.0, -3.0],
    "truncated": False,
}
SCORE_ROW = {"scores": -1.5, "tokens": 3, "truncated": False}
PAIR = {"inputs": "a", "targets": "ein Hund"}

# In row format, an answer has a row per instance; in column format, one per input.
ANSWERED = {
    "one input, without its name": (
        {"instances": ["a", "B c"]},
        {"predictions": [row("A"), row("B C")]},
    ),
    "one input, by its name": (
        {"instances": [{"inputs": "a"}]},
        {"predictions": [row("A")]},
    ),
    "a string in base64 by its name": (
        {"instances": [{"inputs": b64("ä".encode())}]},
        {"predictions": [row("Ä")]},
    ),
    "bytes that are not UTF-8": (
        {"instances": [b64(b"a\xff")]},
        {"predictions": [row("A\ufffd")]},
    ),
    "columns without a name": (
        {"inputs": ["a", "b"]},
        {"outputs": columns("A", "B")},
    ),
    "columns by name": (
        {"inputs": {"inputs": ["a", b64(b"b")]}},
        {"outputs": columns("A", "B")},
    ),
    "the default signature by its name": (
        {"signature_name": "serving_default", "instances": ["a"]},
        {"predictions": [row("A")]},
    ),
    "several hypotheses": (
        {"signature_name": "n_best", "instances": ["a"]},
        {"predictions": [N_BEST_ROW]},
    ),
    "several hypotheses in columns": (
        {"signature_name": "n_best", "inputs": ["a"]},
        {"outputs": {name: [value] for name, value in N_BEST_ROW.items()}},
    ),
    "two inputs": (
        {"signature_name": "score", "instances": [PAIR, PAIR]},
        {"predictions": [SCORE_ROW, SCORE_ROW]},
    ),
    "two inputs in columns": (
        {"signature_name": "score", "inputs": {k: [v] for k, v in PAIR.items()}},
        {"outputs": {name: [value] for name, value in SCORE_ROW.items()}},
    ),
    "an empty text": ({"instances": [""]}, {"predictions": [row("")]}),
}

REFUSED = {
    "neither rows nor columns": {"signature_name": "serving_default"},
    "rows and columns": {"instances": ["a"], "inputs": ["a"]},
    "no list of rows": {"instances": "a"},
    "a number": {"instances": [1]},
    "a list in a row": {"instances": [["a"]]},
    "null": {"instances": [None]},
    "no rows": {"instances": []},
    "rows of different inputs": {"instances": ["a", PAIR]},
    "an unknown input": {"instances": [{"input": "a"}]},
    "an input too many": {"instances": [PAIR]},
    "an input too few": {"signature_name": "score", "instances": ["a"]},
    "columns of different lengths": {
        "signature_name": "score",
        "inputs": {"inputs": ["a", "b"], "targets": ["a"]},
    },
    "a column that is no list": {"inputs": {"inputs": "a"}},
    "an unknown signature": {"signature_name": "regress", "instances": ["a"]},
    "a signature that is no string": {"signature_name": 1, "instances": ["a"]},
    "wrong base64": {"instances": [{"b64": "*"}]},
    "base64 of a number": {"instances": [{"b64": 1}]},
    "an unknown field": {"instances": ["a"], "examples": []},
}


@pytest.fixture(scope="module")
def client():
    with serving(ShoutingModel()) as client:
        yield client


@pytest.mark.parametrize("name", ANSWERED)
def test_a_request_gets_the_answer_that_tensorflow_serving_gives(client, name):
    request, expected = ANSWERED[name]
    answer = client.ask(PREDICT, request)
    assert (answer.status, answer.json) == (200, expected)


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_that_tensorflow_serving_refuses_is_refused(client, name):
    answer = client.ask(PREDICT, REFUSED[name])
    assert answer.status == 400
    assert [*answer.json] == ["error"]
    assert "expected" in answer.error


def test_a_model_has_a_status_and_one_version(client):
    version = {"version": "1", "state": "AVAILABLE"}
    version["status"] = {"error_code": "OK", "error_message": ""}
    for path in (MODEL, f"{MODEL}/versions/1"):
        assert client.ask(path).json == {"model_version_status": [version]}
    request = {"instances": ["a"]}
    assert client.ask(f"{MODEL}/versions/1:predict", request).status == 200
    for path in ("/v1/models/fr-de", f"{MODEL}/versions/2"):
        assert client.ask(path).status == 404
        assert client.ask(f"{path}:predict", request).status == 404


def test_metadata_describes_the_tensors_of_every_signature(client):
    found = client.ask(f"{MODEL}/metadata").json
    assert found["model_spec"] == {
        "name": "en-de",
        "signature_name": "",
        "version": "1",
    }
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert [*signatures] == ["serving_default", "n_best", "score", "attention"]
    scored = signatures["score"]
    assert scored["method_name"] == "tensorflow/serving/predict"
    types = {
        kind: {name: tensor["dtype"] for name, tensor in scored[kind].items()}
        for kind in ("inputs", "outputs")
    }
    assert types == {
        "inputs": {"inputs": "DT_STRING", "targets": "DT_STRING"},
        "outputs": {
            "scores": "DT_FLOAT",
            "tokens": "DT_INT32",
            "truncated": "DT_BOOL",
        },
    }
    shape = signatures["n_best"]["outputs"]["outputs"]["tensor_shape"]
    assert shape == {"dim": [{"size": "-1", "name": ""}] * 2, "unknown_rank": False}


@pytest.mark.parametrize(
    "kind",
    [
        *("application/json", "text/plain", "application/x-www-form-urlencoded"),
        *("application/octet-stream", ""),
    ],
)
def test_json_is_read_whatever_the_content_type_says(client, kind):
    headers = {"Content-Type": kind} if kind else {}
    answer = client.ask(PREDICT, b'{"instances": ["a"]}', headers=headers)
    assert answer.json == {"predictions": [row("A")]}
