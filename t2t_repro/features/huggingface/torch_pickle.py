"""The pickles of a `pytorch_model.bin`, read without Python's unpickler.

The instructions of a pickle can call any function, take much more memory than the file,
and make objects whose comparison never ends. Here only those instructions are followed
that describe tensors and put them into dicts.
"""

from __future__ import annotations

import itertools
import pickletools
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import ml_dtypes
import numpy as np

from t2t_repro.errors import UserError

# A file of weights has about 50 per tensor.
_MOST_INSTRUCTIONS = 2**20

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
    """A tensor inside a storage; what a file says of it is not checked yet."""

    storage: Any
    offset: Any
    shape: Any
    strides: Any


# What a pickle can call, by the names in PyTorch and Python
_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): lambda: {},
    ("torch._utils", "_rebuild_tensor_v2"): lambda *about: StoredTensor(*about[:4]),
    ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1"),
    *("BINUNICODE", "SHORT_BINUNICODE"),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = {"PROTO", "FRAME"}


def load_pickle(file: IO[bytes]) -> Any:
    """Return the dicts, lists, tuples, texts, numbers and tensors of a pickle.

    Args:
        file: A file at the pickle's first byte; afterwards it is behind the last one.

    Raises:
        UserError: If the pickle names anything that describes no tensors.
        ValueError: If it is something else or damaged; so do `TypeError`, `IndexError`,
            `KeyError` and `AttributeError`.
    """
    return _Machine().run(file)


class _Machine:
    """The stack and the memory of a pickle, and a method for each instruction."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}

    def run(self, file: IO[bytes]) -> Any:
        instructions = itertools.islice(pickletools.genops(file), _MOST_INSTRUCTIONS)
        for instruction, value, _ in instructions:
            name = instruction.name
            if name == "STOP":
                return self._stack.pop()
            if name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name]())
            elif name in _LITERALS:
                self._stack.append(value)
            elif name in _TUPLES:
                self._tuple_of(_TUPLES[name])
            elif name not in _IGNORED:
                if name not in _FOLLOWED:
                    raise ValueError(f"the instruction {name}")
                _FOLLOWED[name](self, value)
        raise ValueError(f"more than {_MOST_INSTRUCTIONS:,} instructions")

    def _mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _binput(self, number: int) -> None:
        self._memory[number] = self._stack[-1]

    def _memoize(self, _: Any) -> None:
        self._binput(len(self._memory))

    def _binget(self, number: int) -> None:
        self._stack.append(self._memory[number])

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _tuple_of(self, size: int) -> None:
        self._mark(None)
        self._marks[-1] -= size
        self._tuple(None)

    def _put(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(target) is not dict or type(key) is not str:
                raise ValueError("a key that is no name")
            target[key] = value

    def _setitems(self, _: Any) -> None:
        self._put(self._since_mark())

    def _setitem(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._put([key, value])

    def _appends(self, _: Any) -> None:
        values = self._since_mark()
        self._stack[-1].extend(values)

    def _append(self, _: Any) -> None:
        value = self._stack.pop()
        self._stack[-1].append(value)

    def _build(self, _: Any) -> None:
        self._stack.pop()  # attributes of a dict, such as the versions of its layers

    def _global(self, name: str) -> None:
        self._name(*name.split(" ", 1))

    def _stack_global(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._name(module, name)

    def _name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name that is no text")
        if module == "torch" and name in _STORAGES:
            self._stack.append(name)
        elif (module, name) in _CALLS:
            self._stack.append(_CALLS[module, name])
        else:
            raise UserError(
                f"it names {module}.{name}, which no file of weights needs and which "
                "is not executed"
            )

    def _reduce(self, _: Any) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        if called not in _CALLS.values():
            raise ValueError("a call of something else than a function")
        self._stack.append(called(*arguments))

    def _binpersid(self, _: Any) -> None:
        about = self._stack.pop()
        kind, key = about[1:3]
        if about[0] != "storage" or type(kind) is not str or type(key) is not str:
            raise ValueError("an object that is no array")
        if kind not in _STORAGES:
            raise ValueError(f"an array of kind {kind!r:.99}")
        self._stack.append(Storage(key, kind))


_FOLLOWED: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine._mark,
    "BINPUT": _Machine._binput,
    "LONG_BINPUT": _Machine._binput,
    "MEMOIZE": _Machine._memoize,
    "BINGET": _Machine._binget,
    "LONG_BINGET": _Machine._binget,
    "TUPLE": _Machine._tuple,
    "SETITEM": _Machine._setitem,
    "SETITEMS": _Machine._setitems,
    "APPEND": _Machine._append,
    "APPENDS": _Machine._appends,
    "BUILD": _Machine._build,
    "GLOBAL": _Machine._global,
    "STACK_GLOBAL": _Machine._stack_global,
    "REDUCE": _Machine._reduce,
    "BINPERSID": _Machine._binpersid,
}
