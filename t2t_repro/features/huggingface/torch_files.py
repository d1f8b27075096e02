"""Tensors of a `pytorch_model.bin`, read without PyTorch and without executing it.

PyTorch 1.6 and later (`torch/serialization.py: _save`) writes an uncompressed zip
archive with a pickle, which `torch_pickle` reads, and a file per tensor; earlier
versions (`_legacy_save`) wrote several pickles and then the tensors.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.huggingface.tensor_files import Tensors
from t2t_repro.features.huggingface.torch_pickle import (
    Storage,
    StoredTensor,
    load_pickle,
)

_LARGEST_PICKLE = 16 * 2**20
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_MOST_AXES = 8


def read_torch_file(path: Path) -> Tensors:
    """Read all tensors of floats of a file that `torch.save` wrote.

    Args:
        path: Path of the file.

    Returns:
        float32 arrays by name.

    Raises:
        UserError: If the file is cut or damaged, or its pickle names anything but
            tensors and dicts.
    """
    try:
        with path.open("rb") as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    return _read_zip(archive)
            file.seek(0)
            return _read_legacy(file)
    except UserError as error:
        raise UserError(f"received {path}: {error}") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # a damaged pickle raises errors of any kind
        raise UserError(
            f"received {path}, which is cut, damaged or not written by torch.save: "
            f"{type(error).__name__}: {error}"
        ) from error


def _read_zip(archive: zipfile.ZipFile) -> Tensors:
    names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(names) != 1:
        raise ValueError(f"{len(names)} files data.pkl")
    folder = names[0].removesuffix("data.pkl")
    order = f"{folder}byteorder"
    if order in archive.namelist() and _stored(archive, order) != b"little":
        raise ValueError("a byte order other than little")
    pickled = _stored(archive, names[0], _LARGEST_PICKLE)
    found = load_pickle(io.BytesIO(pickled))
    _check_no_overlap(archive)

    def content(storage: Storage) -> np.ndarray:
        values = _stored(archive, f"{folder}data/{storage.key}")
        return np.frombuffer(values, storage.dtype)

    return _tensors(found, content)


def _check_no_overlap(archive: zipfile.ZipFile) -> None:
    """Refuse files that share bytes, which would need more memory than the archive has.

    Raises:
        ValueError: If they are refused.
    """
    last = 0
    for about in sorted(archive.infolist(), key=lambda about: about.header_offset):
        if about.header_offset < last:
            raise ValueError("files that overlap")
        last = about.header_offset + about.file_size


def _stored(archive: zipfile.ZipFile, name: str, limit: float = math.inf) -> bytes:
    """Read a file of an archive that is not compressed, so it is not larger there."""
    about = archive.getinfo(name)
    if about.compress_type != zipfile.ZIP_STORED or about.file_size > limit:
        raise ValueError(f"{name} is compressed or too large")
    return archive.read(name)


def _read_legacy(file: IO[bytes]) -> Tensors:
    head = io.BytesIO(file.read(_LARGEST_PICKLE))
    magic, protocol = load_pickle(head), load_pickle(head)
    if (magic, protocol) != (_LEGACY_MAGIC, _LEGACY_PROTOCOL):
        raise ValueError("neither a zip archive nor PyTorch's older format")
    system = load_pickle(head)
    if not system.get("little_endian"):
        raise ValueError("a byte order other than little")
    found, keys = load_pickle(head), load_pickle(head)
    file.seek(head.tell())
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in found.values()}
    storages: dict[str, np.ndarray] = {}
    end = os.fstat(file.fileno()).st_size
    for key in keys:
        (length,) = struct.unpack("<q", file.read(8))
        dtype = dtypes[key]
        size = length * dtype.itemsize
        if not 0 <= size <= end - file.tell():
            raise ValueError("the file ends in the middle of a tensor")
        storages[key] = np.frombuffer(file.read(size), dtype)
    return _tensors(found, lambda storage: storages[storage.key])


def _tensors(found: Any, content: Callable[[Storage], np.ndarray]) -> Tensors:
    """Return the tensors of floats of a dict, as float32."""
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__} instead of a dict of tensors")
    read: dict[str, np.ndarray] = {}
    tensors = {}
    for name, tensor in found.items():
        if not isinstance(tensor, StoredTensor):
            raise ValueError(f"{name!r:.99} is no tensor")
        if not isinstance(tensor.storage, Storage):
            raise ValueError(f"{name!r:.99} has no storage")
        if tensor.storage.dtype.kind == "i":
            continue
        key = tensor.storage.key
        if key not in read:
            read[key] = content(tensor.storage).astype(np.float32, copy=False)
        tensors[name] = _view(name, tensor, read[key])
    return tensors


def _view(name: str, tensor: StoredTensor, values: np.ndarray) -> np.ndarray:
    shape, strides = tensor.shape, tensor.strides
    if not (type(shape) is type(strides) is tuple and len(shape) <= _MOST_AXES):
        raise ValueError(f"{name!r:.99} has another shape than a tensor of weights")
    if not all(type(n) is int and n >= 0 for n in (tensor.offset, *shape, *strides)):
        raise ValueError(f"{name!r:.99} has a shape of other numbers than sizes")
    size = math.prod(shape)
    in_order = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    if size > 1 and list(strides) != in_order:
        raise ValueError(f"{name!r:.99} is not stored row by row")
    part = values[tensor.offset : tensor.offset + size]
    if len(part) != size:
        raise ValueError(
            f"{name!r:.99} has {size} values, of which {len(part)} are there"
        )
    return part.reshape(shape)
