"""Write a trained system as a SavedModel, with requests that warm it up.

The first request after loading is slow, because TensorFlow initializes parts of a graph
when they first run. TensorFlow Serving reads up to 1,000 records from
`assets.extra/tf_serving_warmup_requests` and runs them before it accepts requests
(https://www.tensorflow.org/tfx/serving/saved_model_warmup).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import atomic_folder, check_new_folder, has_pattern
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.features.saved_model.served_translator import ServedTranslator
    from t2t_repro.runs.system import System

logger = logging.getLogger(__name__)

MAX_SOURCE_TOKENS = 4096  # about 16,000 letters of English, or 16 sources of 256 tokens

WARM_UP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"

# The last one is long enough for the search to grow its cache.
WARM_UP_TEXTS = ("", "A short sentence.", "A longer sentence with many words. " * 8)


def check_saved_model_folder(export_dir: str | Path) -> None:
    """Refuse a folder that exists, or that TensorFlow could not load.

    Raises:
        UserError: If it is refused.
    """
    check_new_folder(export_dir)
    folder = Path(export_dir).absolute()
    if has_pattern(folder):
        raise UserError(
            f"received export folder {folder}, expected a path without [ and \\, from "
            "which TensorFlow loads no SavedModel: give another."
        )


def export_system(
    system: System,
    export_dir: str | Path,
    decode_hparams: DecodeHParams | None = None,
    max_source_tokens: int | None = None,
) -> Path:
    """Write a system as a SavedModel: strings in, translations and scores out.

    That of an ensemble has no signature `attention`.

    Args:
        system: The trained system.
        export_dir: Folder to create.
        decode_hparams: Settings of the search.
        max_source_tokens: Tokens of a source to translate, rounded up to whole pieces
            of `max_length`; the rest is cut, and the output "truncated" says so. The
            default is `MAX_SOURCE_TOKENS`.

    Raises:
        UserError: If the folder exists or cannot be written.
        UsageError: If the settings ask for random translations or minimum Bayes risk,
            or `max_source_tokens` is less than 1.
    """
    # So that this module, whose checks come first, needs no TensorFlow.
    from t2t_repro.features.saved_model.served_translator import ServedTranslator

    hparams = system.with_problem_defaults(decode_hparams or DecodeHParams())
    _check_search_is_exportable(hparams)
    system.warn_of_raw_text()
    served = ServedTranslator(
        system.model,
        system.source_tokenizer,
        system.target_tokenizer,
        hparams,
        system.max_input_length,
        MAX_SOURCE_TOKENS if max_source_tokens is None else max_source_tokens,
        system.problem,
    )
    export_saved_model(served, export_dir)
    return Path(export_dir)


def _check_search_is_exportable(hparams: DecodeHParams) -> None:
    """Refuse settings of the search that an export cannot follow.

    Raises:
        UsageError: If a setting is refused.
    """
    if hparams.samples:
        raise UsageError(
            f"{hparams.argument()}: received sampling_method=random, expected argmax: "
            "an export does not draw at random."
        )
    if hparams.mbr_scale:
        raise UsageError(
            f"{hparams.argument()}: received mbr_scale={hparams.mbr_scale}, expected "
            "0: an export cannot compare the texts of hypotheses."
        )


def export_saved_model(served: ServedTranslator, export_dir: str | Path) -> None:
    """Write a SavedModel, all of it or nothing.

    With tensorflow-serving-api installed, it contains warm-up requests for TensorFlow
    Serving.

    Args:
        served: System to write.
        export_dir: Folder to create.

    Raises:
        UserError: If the folder exists, or cannot be written or loaded.
    """
    import tensorflow as tf

    export_dir = Path(export_dir)
    check_saved_model_folder(export_dir)
    signatures = exported_functions(served)
    try:
        with atomic_folder(export_dir) as folder:
            tf.saved_model.save(served, str(folder), signatures=signatures)
            warms_up = write_warm_up_requests(folder, _input_names(signatures))
    except (OSError, tf.errors.OpError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(f"cannot write {export_dir}: {reason}") from error
    if not warms_up:
        logger.info(
            "no warm-up requests for TensorFlow Serving, whose first answers will be "
            "slow: `pip install tensorflow-serving-api` and export again to have them"
        )


def exported_functions(served: ServedTranslator) -> dict[str, Any]:
    """Return the functions of a system by the names of their signatures."""
    functions = {
        "serving_default": served.translate,
        "n_best": served.n_best,
        "score": served.score,
    }
    if served.attention is not None:
        functions["attention"] = served.attention
    return functions


def _input_names(signatures: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        name: [spec.name for spec in function.input_signature]
        for name, function in signatures.items()
    }


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
    import tensorflow as tf

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
