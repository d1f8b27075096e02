"""Read the body of a request: bounded first, then parsed, then typed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.requests import Request

from t2t_repro.features.serving.service_settings import (
    ServiceError,
    ServiceSettings,
    expected,
)
from t2t_repro.settings.decode_hparams import DecodeHParams

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_MOST_DISCARDED = 67_108_864  # bytes of a body that is too long
_MAX_FIELDS = 2000  # of a form
_SURROGATES = re.compile("[\ud800-\udfff]")
# Names of DecodeHParams that only the server chooses, and what requests say instead.
_REFUSED = {
    "batch_size": "the server chooses it",
    "return_beams": "ask for alternatives, or for the signature n_best",
    "write_beam_scores": "answers of TensorFlow Serving's interface have scores",
}
_MAX_LENGTH = 500  # largest min_length and extra_length of a request
# TensorFlow's graph has operations per token of an n-gram: 1,000 take 40 s to trace.
_MAX_NGRAM = 50


async def read_body(request: Request, settings: ServiceSettings) -> bytes:
    """Return the body of a request.

    Raises:
        ServiceError: If it is too long or comes too slowly.
    """
    too_long = ServiceError(
        413,
        f"received a body of more than {settings.max_body:,} bytes: send less at once.",
        {"Connection": "close"},
    )
    announced = request.headers.get("content-length", "0")
    size = int(announced) if len(announced) < 16 else math.inf
    if size > settings.max_body and (
        size > _MOST_DISCARDED or "expect" in request.headers
    ):
        raise too_long
    body, received = bytearray(), 0
    try:
        async with asyncio.timeout(settings.read_timeout):
            # What is too long is read, too: a client that sends sees no answer.
            async for chunk in request.stream():
                received += len(chunk)
                if received <= settings.max_body:
                    body += chunk
                elif received > _MOST_DISCARDED:
                    raise too_long
    except TimeoutError:
        if max(size, received) > settings.max_body:
            raise too_long from None
        raise ServiceError(
            408,
            f"received {received:,} bytes of the body in {settings.read_timeout:g} s, "
            "expected all of it.",
            {"Connection": "close"},
        ) from None
    if received > settings.max_body:
        raise too_long
    return bytes(body)


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ServiceError: If it is not one.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:100]
        raise ServiceError(
            400, f"received a body that is not JSON in UTF-8 ({reason})."
        ) from None
    if not isinstance(value, dict):
        raise expected(value, "a JSON object")
    return value


def parse_form(body: bytes) -> dict[str, Any]:
    """Parse a form; a field that is repeated becomes a list.

    Raises:
        ServiceError: If it is not UTF-8, or has too many fields.
    """
    try:
        fields = urllib.parse.parse_qs(
            body.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError as error:
        raise ServiceError(
            400, f"received a form that is not valid ({error})."
        ) from None
    return {name: v if len(v) > 1 else v[0] for name, v in fields.items()}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def media_type(request: Request) -> str:
    """Return the type of a request's body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def as_text(value: Any, name: str) -> str:
    """Return a text; lone surrogates, which are no characters, become U+FFFD.

    Raises:
        ServiceError: If it is not a string.
    """
    if not isinstance(value, str):
        raise expected(value, f"a string as {name}")
    return _SURROGATES.sub("\ufffd", value)


def as_row(value: Any, name: str) -> str:
    """Return a text of TensorFlow Serving's JSON, which may be `{"b64": ...}`.

    Raises:
        ServiceError: If it is no text.
    """
    if isinstance(value, dict) and value.keys() == {"b64"}:
        encoded = as_text(value["b64"], "b64")
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise expected(encoded, f"base64 in {name}") from None
        return content.decode("utf-8", "replace")
    return as_text(value, name)


def check_texts(texts: list[str], settings: ServiceSettings) -> list[str]:
    """Refuse texts that are too many or too long.

    Raises:
        ServiceError: If there are none, or the limits are exceeded.
    """
    if not texts:
        raise ServiceError(400, "received no text, expected at least one.")
    if len(texts) > settings.max_texts:
        raise ServiceError(
            413,
            f"received {len(texts):,} texts, expected at most {settings.max_texts:,}: "
            "send them in several requests.",
        )
    characters = sum(map(len, texts))
    if characters > settings.max_characters:
        raise ServiceError(
            413,
            f"received {characters:,} characters, expected at most "
            f"{settings.max_characters:,}: send them in several requests.",
        )
    return texts


def search_settings(
    base: DecodeHParams, given: Any, settings: ServiceSettings
) -> DecodeHParams:
    """Apply the `decode_hparams` of a request to the settings of a model.

    Args:
        base: Settings of the model.
        given: Names and values of `DecodeHParams`, from JSON.
        settings: Limits.

    Raises:
        ServiceError: If a value is refused.
        UserError: If a name is unknown, or a value has the wrong type.
    """
    if not isinstance(given, Mapping):
        raise expected(given, 'an object such as {"beam_size": 4} as decode_hparams')
    if not given:
        return base
    for name, advice in _REFUSED.items():
        if name in given:
            raise ServiceError(400, f"received decode_hparams.{name}: {advice}.")
    changed = base.replace(**given)
    limits = {
        "beam_size": settings.max_beam_size,
        "extra_length": max(_MAX_LENGTH, base.extra_length),
        "min_length": _MAX_LENGTH,
        "no_repeat_ngram_size": max(_MAX_NGRAM, base.no_repeat_ngram_size),
    }
    for name, limit in limits.items():
        if name in given and given[name] > limit:
            raise expected(given[name], f"decode_hparams.{name} of at most {limit}")
    idle = changed.ineffective_settings()
    for name in given:
        if name in idle:
            raise ServiceError(
                400, f"decode_hparams.{name} would have no effect: {idle[name]}"
            )
    # As if `--decode_hparams` had them, so that the problem's defaults do not apply.
    origins = {**changed.origins, **dict.fromkeys(given, DecodeHParams.flag)}
    return dataclasses.replace(changed, origins=origins)
