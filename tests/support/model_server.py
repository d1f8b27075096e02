"""What TensorFlow Serving does with a request, without its server.

The server loads the graph of a SavedModel into a session, looks a request's signature
up, feeds the tensors by name, and fetches the outputs
(`tensorflow_serving/servables/tensorflow/predict_util.cc`). It makes such a request of
the JSON of a REST request first; for rows of JSON, every output has a row per input.
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow_text  # noqa: F401  TensorFlow Serving has these operations
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse


class ModelServer:
    """A SavedModel in a session."""

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


def predict_request(signature_name: str, texts: dict[str, list]) -> PredictRequest:
    request = PredictRequest()
    request.model_spec.name = "translator"
    request.model_spec.signature_name = signature_name
    for key, values in texts.items():
        tensor = tf.make_tensor_proto(values, tf.string, [len(values)])
        request.inputs[key].CopyFrom(tensor)
    return request
