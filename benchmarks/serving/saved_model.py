"""Measure a SavedModel: size, time to load, first and later answers, peak memory.

Each row runs in a separate process that imports only TensorFlow and tensorflow_text.
The second one first runs the warm-up requests of the export, as TensorFlow Serving does
while it loads a model (this needs tensorflow-serving-api). The last request of each
contains a short sentence and one of 20,000 emoji.

    python -m benchmarks.serving.saved_model --export_dir translator --text "We sleep."
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
LONG = "🙂" * 20_000


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long an action takes, and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak_mb() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(folder: str, text: str, warm_up: bool) -> dict[str, float]:
    """Load a SavedModel and send it requests.

    Args:
        folder: Folder of the SavedModel.
        text: A sentence.
        warm_up: Whether to run the warm-up requests first.

    Returns:
        Seconds and megabytes by name.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the SavedModel

    found = {}
    found["load s"], model = seconds(lambda: tf.saved_model.load(folder))
    if warm_up:
        found["warm up s"], _ = seconds(lambda: run_warm_up(folder, model.signatures))
    translate = model.signatures["serving_default"]
    for name in ("first answer s", "second answer s"):
        found[name], _ = seconds(lambda: translate(tf.constant([text])))
    found["peak MB"] = peak_mb()
    found["long answer s"], answer = seconds(
        lambda: translate(tf.constant([text, LONG]))
    )
    found["long peak MB"] = peak_mb()
    if "truncated" in answer:
        found["long is truncated"] = bool(answer["truncated"][1])
    return found


def run_warm_up(folder: str, signatures: Any) -> None:
    """Run the warm-up requests of a SavedModel."""
    import tensorflow as tf
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    file = str(Path(folder) / WARM_UP_FILE)
    for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
        request = PredictionLog.FromString(record).predict_log.request
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        signature = signatures[request.model_spec.signature_name]
        signature(**{key: tf.constant(value) for key, value in inputs.items()})


def main() -> None:
    """Measure in new processes, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--export_dir", required=True)
    parser.add_argument("--text", default="We sleep.")
    parser.add_argument("--measure", choices=("cold", "warm"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        found = measure(args.export_dir, args.text, args.measure == "warm")
        print(json.dumps({name: round(value, 3) for name, value in found.items()}))
        return
    files = [path for path in Path(args.export_dir).rglob("*") if path.is_file()]
    print(f"size {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
    has_requests = (Path(args.export_dir) / WARM_UP_FILE).exists()
    for kind in ("cold", "warm") if has_requests else ("cold",):
        ended = subprocess.run(
            [sys.executable, *sys.argv, "--measure", kind],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(f"{kind}: {ended.stdout.splitlines()[-1]}")


if __name__ == "__main__":
    main()
