"""Tensors of a `pytorch_model.bin`, read without PyTorch and without executing it.

PyTorch writes a pickle, whose instructions can call any function. Here they can only
make dicts and describe tensors; a file that names anything else is refused. PyTorch
1.6 and later (`torch/serialization.py: _save`) writes an uncompressed zip archive with
the pickle and a file per tensor; earlier versions (`_legacy_save`) wrote several
pickles and then the tensors.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import ml_dtypes
import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.huggingface.tensor_files import Tensors

_LARGEST_PICKLE = 16 * 2**20
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001


_STORAGES = {
    "DoubleStorage": np.dtype("<f8"),
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
}


class Storage(NamedTuple):
    """A named array of a file: its key, and the name of its kind."""

    key: str
    kind: str

    @property
    def dtype(self) -> np.dtype:
        """Type of its numbers."""
        return _STORAGES[self.kind]


class StoredTensor(NamedTuple):
    """A tensor inside a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Rebuild:
    """What makes a tensor; a pickle can change no attribute of it."""

    __slots__ = ()

    def __call__(
        self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any
    ) -> StoredTensor:
        return StoredTensor(storage, offset, shape, strides)


class _Parameter:
    """What makes a parameter of a tensor: the same tensor."""

    __slots__ = ()

    def __call__(self, data: Any, *_: Any) -> Any:
        return data


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _Rebuild(),
    ("torch._utils", "_rebuild_parameter"): _Parameter(),
    **{("torch", name): name for name in _STORAGES},
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that can only make dicts and describe tensors."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise UserError(
                f"it names {module}.{name}, which no file of weights needs and which "
                "is not executed"
            )
        return _KNOWN[module, name]

    def persistent_load(self, pid: Any) -> Storage:
        name, kind, key, *_ = pid
        if name != "storage" or kind not in _STORAGES:
            raise ValueError(f"an object of kind {kind!r}")
        return Storage(str(key), kind)


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
    found = _Unpickler(io.BytesIO(pickled)).load()

    def content(storage: Storage) -> np.ndarray:
        values = _stored(archive, f"{folder}data/{storage.key}")
        return np.frombuffer(values, storage.dtype)

    return _tensors(found, content)


def _stored(archive: zipfile.ZipFile, name: str, limit: float = math.inf) -> bytes:
    """Read a file of an archive that is not compressed, so it is not larger there."""
    about = archive.getinfo(name)
    if about.compress_type != zipfile.ZIP_STORED or about.file_size > limit:
        raise ValueError(f"{name} is compressed or too large")
    return archive.read(name)


def _read_legacy(file: IO[bytes]) -> Tensors:
    magic, protocol = _Unpickler(file).load(), _Unpickler(file).load()
    if (magic, protocol) != (_LEGACY_MAGIC, _LEGACY_PROTOCOL):
        raise ValueError("neither a zip archive nor PyTorch's older format")
    system = _Unpickler(file).load()
    if not system.get("little_endian"):
        raise ValueError("a byte order other than little")
    found, keys = _Unpickler(file).load(), _Unpickler(file).load()
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in found.values()}
    storages: dict[str, np.ndarray] = {}
    for key in keys:
        (length,) = struct.unpack("<q", file.read(8))
        dtype = dtypes[key]
        content = file.read(length * dtype.itemsize) if length >= 0 else b""
        if len(content) != length * dtype.itemsize:
            raise ValueError("the file ends in the middle of a tensor")
        storages[key] = np.frombuffer(content, dtype)
    return _tensors(found, lambda storage: storages[storage.key])


def _tensors(found: Any, content: Callable[[Storage], np.ndarray]) -> Tensors:
    """Return the tensors of floats of a dict, as float32."""
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__} instead of a dict of tensors")
    read: dict[str, np.ndarray] = {}
    tensors = {}
    for name, tensor in found.items():
        if type(name) is not str or not isinstance(tensor, StoredTensor):
            raise ValueError(f"{name!r} is no tensor")
        if not isinstance(tensor.storage, Storage):
            raise ValueError(f"{name} has no storage")
        if tensor.storage.dtype.kind == "i":
            continue
        key = tensor.storage.key
        if key not in read:
            read[key] = content(tensor.storage)
        tensors[name] = _view(name, tensor, read[key])
    return tensors


def _view(name: str, tensor: StoredTensor, values: np.ndarray) -> np.ndarray:
    numbers = (tensor.offset, *tensor.shape, *tensor.strides)
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"{name} has shape {tensor.shape}")
    size = math.prod(tensor.shape)
    in_order = [math.prod(tensor.shape[n + 1 :]) for n in range(len(tensor.shape))]
    if size > 1 and list(tensor.strides) != in_order:
        raise ValueError(f"{name} is not stored row by row")
    part = values[tensor.offset : tensor.offset + size]
    if len(part) != size:
        raise ValueError(f"{name} has {size} values, of which {len(part)} are there")
    return part.astype(np.float32).reshape(tensor.shape)
