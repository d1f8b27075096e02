"""Requests that TensorFlow Serving runs while it loads a SavedModel.

The first request after loading is slow, because TensorFlow initialises parts of a graph
when they first run. TensorFlow Serving reads up to 1,000 records from
`assets.extra/tf_serving_warmup_requests` and runs them before it accepts requests
(https://www.tensorflow.org/tfx/serving/saved_model_warmup).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tensorflow as tf

WARM_UP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"

# The last one is long enough for the search to grow its cache.
WARM_UP_TEXTS = ("", "A short sentence.", "A longer sentence with many words. " * 8)


def write_warm_up_requests(
    folder: Path, signatures: Mapping[str, Sequence[str]]
) -> bool:
    """Write one request per signature, if tensorflow-serving-api is installed.

    Args:
        folder: Folder of a SavedModel.
        signatures: Names of the inputs of each signature; all inputs are batches of
            strings.

    Returns:
        Whether the file was written: only that package has the format.
    """
    try:
        from tensorflow_serving.apis import prediction_log_pb2
    except ImportError:
        return False
    path = folder / WARM_UP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = tf.make_tensor_proto(list(WARM_UP_TEXTS))
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name, inputs in signatures.items():
            record = prediction_log_pb2.PredictionLog()
            request = record.predict_log.request
            # The server ignores the name of the model, which its user chooses.
            request.model_spec.signature_name = name
            for tensor in inputs:
                request.inputs[tensor].CopyFrom(texts)
            writer.write(record.SerializeToString(deterministic=True))
    return True
