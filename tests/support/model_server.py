"""What TensorFlow Serving does with a request, without its server.

The server loads the graph of a SavedModel into a session, looks a request's signature
up, feeds the tensors by name, and fetches the outputs
(`tensorflow_serving/servables/tensorflow/predict_util.cc`). For REST, it converts JSON
to such a request first (https://www.tensorflow.org/tfx/serving/api_rest).
"""

from __future__ import annotations

import base64
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  TensorFlow Serving has these operations
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse


class ModelServer:
    """A SavedModel in a session.

    Args:
        folder: Folder of the SavedModel.
    """

    def __init__(self, folder: str) -> None:
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            self._meta_graph = tf.compat.v1.saved_model.loader.load(
                self._session, ["serve"], folder
            )

    def predict(self, request: PredictRequest) -> PredictResponse:
        """Answer a gRPC request, which arrives as bytes."""
        request = PredictRequest.FromString(request.SerializeToString())
        name = request.model_spec.signature_name or "serving_default"
        signature = self._meta_graph.signature_def[name]
        if set(request.inputs) != set(signature.inputs):
            raise ValueError(f"Received inputs {sorted(request.inputs)}.")
        fed = {
            signature.inputs[key].name: tf.make_ndarray(tensor)
            for key, tensor in request.inputs.items()
        }
        fetched = {key: info.name for key, info in signature.outputs.items()}
        response = PredictResponse()
        for key, value in self._session.run(fetched, fed).items():
            dtype = signature.outputs[key].dtype
            tensor = tf.make_tensor_proto(value, dtype=dtype, shape=value.shape)
            response.outputs[key].CopyFrom(tensor)
        return response

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer the JSON body of a REST request, by rows or by columns."""
        name = body.get("signature_name", "serving_default")
        inputs = [*self._meta_graph.signature_def[name].inputs]
        is_by_row = "instances" in body
        given = body["instances"] if is_by_row else body["inputs"]
        columns = _columns_of_rows(given, inputs) if is_by_row else given
        if not isinstance(columns, dict):
            columns = {inputs[0]: columns}
        request = predict_request(
            name, {key: [*map(_as_bytes, texts)] for key, texts in columns.items()}
        )
        outputs = {
            key: _as_json(tf.make_ndarray(tensor))
            for key, tensor in self.predict(request).outputs.items()
        }
        if not is_by_row:
            return {"outputs": outputs}
        rows = zip(*outputs.values(), strict=True)
        return {"predictions": [dict(zip(outputs, row, strict=True)) for row in rows]}


def predict_request(signature_name: str, texts: dict[str, list]) -> PredictRequest:
    """Return the gRPC request that a client builds."""
    request = PredictRequest()
    request.model_spec.name = "translator"
    request.model_spec.signature_name = signature_name
    for key, values in texts.items():
        tensor = tf.make_tensor_proto(values, tf.string, [len(values)])
        request.inputs[key].CopyFrom(tensor)
    return request


def _columns_of_rows(rows: list, inputs: list[str]) -> dict[str, list]:
    """Convert rows, which are values if there is one input, to columns."""
    if rows and not _is_named(rows[0]):
        rows = [{inputs[0]: row} for row in rows]
    return {key: [row[key] for row in rows] for key in inputs}


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and "b64" not in row


def _as_bytes(value: str | dict[str, str]) -> bytes:
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return value.encode()


def _as_json(value: Any) -> Any:
    """Convert an array to lists; strings must be UTF-8, as the server demands."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [*map(_as_json, value)] if isinstance(value, list) else value
