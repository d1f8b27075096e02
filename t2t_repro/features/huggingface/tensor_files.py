"""Tensors of a `model.safetensors`, read and written.

Format (https://github.com/huggingface/safetensors): the length of a header, uint64; the
header, JSON with the dtype, shape and place of each tensor; and the bytes of all
tensors. Nothing in it is executed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.files import atomic_file, parse_json

Tensors = dict[str, np.ndarray]

# float formats of both kinds of files, by the names of safetensors
FLOATS: dict[str, Any] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
}
_LENGTH = struct.Struct("<Q")
_LONGEST_HEADER = 16 * 2**20


def read_safetensors(path: Path) -> Tensors:
    """Read all tensors of a file.

    Args:
        path: Path of the file.

    Returns:
        float32 arrays by name.

    Raises:
        UserError: If the file is cut or damaged, or has tensors of integers.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size - _LENGTH.size
            length = _LENGTH.unpack(file.read(_LENGTH.size))[0]
            if length > min(size, _LONGEST_HEADER):
                raise ValueError(f"a header of {length} bytes")
            header = parse_json(file.read(length))
            header.pop("__metadata__", None)
            content = np.memmap(path, np.uint8, "r", _LENGTH.size + length)
            _check_places(header, len(content))
            return {
                name: _tensor(content, **description)
                for name, description in header.items()
            }
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise UserError(
            f"received {path}, which is cut, damaged or no safetensors file: {error}"
        ) from error


def _check_places(header: Mapping[str, Any], size: int) -> None:
    """Refuse tensors that share bytes, which would need more memory than the file has.

    Raises:
        ValueError: If they are refused.
    """
    last = 0
    for start, end in sorted(about["data_offsets"] for about in header.values()):
        if start < last:
            raise ValueError("tensors that overlap")
        last = end
    if last > size:
        raise ValueError(f"tensors up to byte {last}, of which {size} are there")


def _tensor(
    content: np.ndarray, *, dtype: str, shape: list[int], data_offsets: list[int]
) -> np.ndarray:
    """Read one tensor.

    Raises:
        ValueError: If its place does not fit its shape or its dtype.
    """
    start, end = data_offsets
    kind = np.dtype(FLOATS[dtype])
    if not all(type(n) is int and n >= 0 for n in (*shape, start, end)):
        raise ValueError(f"shape {shape} at {data_offsets}")
    if end - start != math.prod(shape) * kind.itemsize:
        raise ValueError(f"{dtype} {shape} at {data_offsets}")
    values = np.frombuffer(content[start:end].tobytes(), kind.newbyteorder("<"))
    return values.astype(np.float32).reshape(shape)


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write float32 tensors in the order of their names.

    Args:
        path: Path of the file.
        tensors: Arrays by name.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name in sorted(tensors):
        end = offset + tensors[name].size * 4
        header[name] = {
            "dtype": "F32",
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    with atomic_file(path) as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for name in sorted(tensors):
            file.write(np.ascontiguousarray(tensors[name], "<f4").tobytes())
