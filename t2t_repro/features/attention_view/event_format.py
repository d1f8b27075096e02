"""Attention in event files: names of tags, and documents as bytes.

A sentence pair is a time series of blob sequences, so that TensorBoard can list the
steps without reading the documents. Each tensor is a string `[1]` that holds one
compressed document. Kappa and alpha are a time series of strings `[]`.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Sequence
from typing import Any

from t2t_repro.files import parse_json

PLUGIN_NAME = "attention"
FORMAT = 1
# Three kinds of attention between 512 tokens on each side, with 6 layers of 8 heads,
# take 100 MB.
MAX_DOCUMENT_BYTES = 128 * 2**20
BRANCHES_TAG = f"{PLUGIN_NAME}/branches"


class DamagedError(ValueError):
    """Error raised when the bytes of a tensor are not what this package writes."""


def sentence_tag(sentence_id: str) -> str:
    """Return the tag of a sentence pair, such as "attention/sentence_0"."""
    return f"{PLUGIN_NAME}/{sentence_id}"


def sentence_id_of(tag: str) -> str:
    """Return the id of a sentence pair from its tag, such as "sentence_0"."""
    return tag.removeprefix(sentence_tag(""))


def pack_document(document: dict[str, Any]) -> bytes:
    """Return a document as compressed JSON.

    Raises:
        ValueError: If a number in it is not finite, which JSON cannot express.
    """
    return gzip.compress(_to_json(document), mtime=0)


def unpack_document(content: bytes) -> dict[str, Any]:
    """Return the document from the bytes of `pack_document`.

    Raises:
        DamagedError: If the bytes hold no document of this version.
    """
    try:
        # A few bytes can stand for gigabytes of zeros.
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            text = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedError("it is not compressed") from error
    if len(text) > MAX_DOCUMENT_BYTES:
        raise DamagedError(f"it is larger than {MAX_DOCUMENT_BYTES:,} bytes")
    return _from_json(text, "maps")


def pack_branches(layers: Sequence[dict[str, Any]]) -> bytes:
    """Return kappa and alpha of every layer as JSON.

    Args:
        layers: Dictionaries with "name", "kappa" and "alpha".

    Raises:
        ValueError: If a number in it is not finite, which JSON cannot express.
    """
    return _to_json({"version": FORMAT, "layers": list(layers)})


def unpack_branches(content: bytes) -> list[dict[str, Any]]:
    """Return the layers from the bytes of `pack_branches`.

    Raises:
        DamagedError: If the bytes hold no layers of this version.
    """
    return _from_json(content, "layers")["layers"]


def pack_title(title: str) -> bytes:
    """Return the title of a time series, as its metadata hold it."""
    return _to_json({"version": FORMAT, "title": title})


def unpack_title(content: bytes) -> str | None:
    """Return the title from the bytes of `pack_title`, or None if there is none."""
    try:
        return _from_json(content, "title")["title"]
    except DamagedError:
        return None


def _to_json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Broken text can have a lone surrogate, which UTF-8 cannot express.
    return text.encode("utf-8", errors="replace")


_TYPES = {"maps": list, "layers": list, "title": str}


def _from_json(text: bytes, name: str) -> dict[str, Any]:
    """Parse a JSON object of this version that has a value of this name."""
    try:
        values = parse_json(text)
    except ValueError as error:
        raise DamagedError("it is not JSON") from error
    if not isinstance(values, dict):
        raise DamagedError("it is not a JSON object")
    if values.get("version") != FORMAT:
        raise DamagedError(
            f"it has version {values.get('version')!r}, expected version {FORMAT}"
        )
    if not isinstance(values.get(name), _TYPES[name]):
        raise DamagedError(f'it has no "{name}"')
    return values
