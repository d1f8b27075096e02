"""TensorFlow Serving's REST interface (https://www.tensorflow.org/tfx/serving/api_rest).

Requests and answers are those of a SavedModel of `t2t export`, so that a client moves
to TensorFlow Serving without a change. Differs from TensorFlow Serving: a request may
have `decode_hparams`, and the input `target_prefix`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_repro.features.serving.request_bodies import (
    as_row,
    as_text,
    check_texts,
    search_settings,
)
from t2t_repro.features.serving.served_models import (
    ATTENTION,
    N_BEST,
    SCORE,
    TRANSLATE,
    ServedModel,
)
from t2t_repro.features.serving.service import Service, all_found
from t2t_repro.features.serving.service_settings import ServiceError, expected

VERSION = "1"
_FIELDS = ("signature_name", "instances", "inputs", "decode_hparams", "api_key")
# Attention weights of more pairs would be tens of megabytes of text.
_MOST_ATTENTION = 8
_NO_SCORE = -1e9  # as exported: the score of a hypothesis that does not exist
_DIGITS = 6

_STRING, _FLOAT, _INT, _BOOL = "DT_STRING", "DT_FLOAT", "DT_INT32", "DT_BOOL"
_TEXTS = {"inputs": (_STRING, 1)}
_PAIRS = {"inputs": (_STRING, 1), "targets": (_STRING, 1)}
_SCORED = {"scores": (_FLOAT, 1), "tokens": (_INT, 1), "truncated": (_BOOL, 1)}
# Type and number of dimensions of the inputs and outputs of each signature.
_SIGNATURES = {
    TRANSLATE: (
        _TEXTS,
        {"outputs": (_STRING, 1), "scores": (_FLOAT, 1), "truncated": (_BOOL, 1)},
    ),
    N_BEST: (
        _TEXTS,
        {"outputs": (_STRING, 2), "scores": (_FLOAT, 2), "truncated": (_BOOL, 1)},
    ),
    SCORE: (_PAIRS, _SCORED),
    ATTENTION: (
        _PAIRS,
        {
            **_SCORED,
            "input_tokens": (_STRING, 2),
            "target_tokens": (_STRING, 2),
            "encoder_self": (_FLOAT, 5),
            "decoder_self": (_FLOAT, 5),
            "memory": (_FLOAT, 5),
        },
    ),
}


def status(model: ServedModel) -> dict[str, Any]:
    """Return the status of a model."""
    version = {
        "version": VERSION,
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    return {"model_version_status": [version]}


def metadata(model: ServedModel) -> dict[str, Any]:
    """Return the signatures of a model."""
    signatures = {
        name: {
            "inputs": _tensors(name, _SIGNATURES[name][0]),
            "outputs": _tensors(name, _SIGNATURES[name][1]),
            "method_name": "tensorflow/serving/predict",
            "defaults": {},
        }
        for name in model.signatures
    }
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": VERSION},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _tensors(signature: str, types: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    return {
        name: {
            "dtype": dtype,
            "tensor_shape": {
                "dim": [{"size": "-1", "name": ""}] * dimensions,
                "unknown_rank": False,
            },
            "name": f"{signature}_{name}:0",
        }
        for name, (dtype, dimensions) in types.items()
    }


async def predict(
    service: Service, model: ServedModel, body: Mapping[str, Any]
) -> dict[str, Any]:
    """Answer a request of `:predict`, in row or column format.

    Raises:
        ServiceError: If the request cannot be answered.
        UserError: If a setting of the search is refused.
    """
    for name in body:
        if name not in _FIELDS:
            raise expected(name, f"only {', '.join(_FIELDS)} in a request")
    signature = as_text(body.get("signature_name", TRANSLATE), "signature_name")
    if signature not in model.signatures:
        raise expected(signature, f"one of {', '.join(model.signatures)}")
    columns, in_rows = _columns(body, _SIGNATURES[signature][0])
    given = body.get("decode_hparams", {})
    if signature in (SCORE, ATTENTION):
        if given:
            raise ServiceError(
                400,
                f"the signature {signature} searches nothing: leave out "
                "decode_hparams.",
            )
        outputs = await _pair_outputs(service, model, signature, columns)
    else:
        outputs = await _search(service, model, signature, columns, given)
    if not in_rows:
        return {"outputs": outputs}
    names = [*outputs]
    rows = zip(*outputs.values(), strict=True)
    return {"predictions": [dict(zip(names, row, strict=True)) for row in rows]}


def _columns(
    body: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[dict[str, list[str]], bool]:
    """Return the inputs by name, and whether they came in rows."""
    if ("instances" in body) == ("inputs" in body):
        raise expected([*body], 'either "instances" (rows) or "inputs" (columns)')
    in_rows = "instances" in body
    given = body["instances" if in_rows else "inputs"]
    named = _named_rows(given, wanted) if in_rows else _named_columns(given, wanted)
    for name in named:
        if name not in wanted and (name != "target_prefix" or "targets" in wanted):
            raise expected(name, f"the inputs {', '.join(wanted)}")
    for name in wanted:
        if name not in named:
            raise expected([*named], f"the input {name}")
    columns = {
        name: [as_row(value, name) for value in values]
        for name, values in named.items()
    }
    if len({*map(len, columns.values())}) > 1:
        sizes = {name: len(values) for name, values in columns.items()}
        raise expected(sizes, "inputs of the same length")
    return columns, in_rows


def _named_rows(rows: Any, wanted: Mapping[str, Any]) -> dict[str, list[Any]]:
    if not isinstance(rows, list):
        raise expected(rows, 'a list as "instances"')
    only = next(iter(wanted))
    named = [
        row if isinstance(row, dict) and row.keys() != {"b64"} else {only: row}
        for row in rows
    ]
    names = named[0].keys() if named else {only}
    for row in named:
        if row.keys() != names:
            raise expected([*row], f"the inputs {', '.join(names)} in every instance")
    return {name: [row[name] for row in named] for name in names}


def _named_columns(inputs: Any, wanted: Mapping[str, Any]) -> dict[str, list[Any]]:
    if not isinstance(inputs, dict) or inputs.keys() == {"b64"}:
        inputs = {next(iter(wanted)): inputs}
    for name, values in inputs.items():
        if not isinstance(values, list):
            raise expected(values, f"a list of strings as {name}")
    return inputs


async def _search(
    service: Service,
    model: ServedModel,
    signature: str,
    columns: Mapping[str, list[str]],
    given: Any,
) -> dict[str, list[Any]]:
    texts = check_texts(columns["inputs"], service.settings)
    hparams = search_settings(model.hparams, given, service.settings)
    if signature == N_BEST and hparams.beam_size > 1:
        hparams = hparams.replace(return_beams=True)
    hparams = model.settings(hparams)
    prefixes = columns.get("target_prefix")
    futures = service.translations(model, texts, hparams, prefixes)
    found = await all_found(futures)
    wanted = max(map(len, found)) if signature == N_BEST else 1
    outputs, scores = [], []
    for hypotheses in found:
        missing = wanted - len(hypotheses)
        outputs.append([h.text for h in hypotheses] + [""] * missing)
        own = [round(h.score, _DIGITS) for h in hypotheses]
        scores.append(own + [_NO_SCORE] * missing)
    if signature == TRANSLATE:
        outputs, scores = [row[0] for row in outputs], [row[0] for row in scores]
    truncated = [False] * len(texts)
    return {"outputs": outputs, "scores": scores, "truncated": truncated}


async def _pair_outputs(
    service: Service,
    model: ServedModel,
    signature: str,
    columns: Mapping[str, list[str]],
) -> dict[str, list[Any]]:
    sources = columns["inputs"]
    check_texts([*sources, *columns["targets"]], service.settings)
    if signature == ATTENTION and len(sources) > _MOST_ATTENTION:
        raise ServiceError(
            413, f"received {len(sources)} pairs, expected at most {_MOST_ATTENTION}."
        )
    pairs = [*zip(sources, columns["targets"], strict=True)]
    found = await service.pairs(model, signature, pairs)
    return {name: _json_values(array) for name, array in found.items()}


def _json_values(array: np.ndarray) -> list[Any]:
    if array.dtype.kind == "f":
        return np.round(array.astype(float), _DIGITS).tolist()
    values: Sequence[Any] = array.tolist()
    return _decoded(values)


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [_decoded(one) for one in value] if isinstance(value, list) else value
