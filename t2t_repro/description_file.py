"""JSON files that describe the folder they are in, and how two descriptions differ.

A run's `hparams.json` and the manifest of prepared data are such files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from t2t_repro.errors import UserError
from t2t_repro.files import check_tensorflow_path

# The largest description is the manifest of prepared data, below a megabyte.
MAX_BYTES = 32 * 2**20
_MAX_DIGITS = 20  # of any 64-bit number

_Description = TypeVar("_Description")


def load_description(
    path: Path,
    build: Callable[[dict[str, Any]], _Description],
    *,
    expected_format: int,
    advice: str,
) -> _Description | None:
    """Read a description, or return None if there is no file.

    Args:
        path: Path of the file.
        build: Makes the description from the values of the file.
        expected_format: Value that the file must have under "format".
        advice: Next step if the file cannot be used, for messages.

    Returns:
        The return value of `build`.

    Raises:
        UserError: If the path is refused, or the file is damaged or has another
            format.
    """
    check_tensorflow_path(path.parent)
    if not path.exists():
        return None
    try:
        values = read_json(path)
        if values["format"] != expected_format:
            raise UserError(
                f"received format {values['format']}, expected {expected_format}: "
                f"another version of t2t_repro wrote it; {advice}"
            )
        return build(values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({type(error).__name__}: {error}); {advice}"
        ) from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, which may come from anybody.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not JSON, or no program of this package wrote it: it is not
            a regular file, too large, or nested too deeply, or has a number of too many
            digits.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError("it is not a regular file")  # reading might never end
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    return parse_json(content)


def parse_json(content: bytes | str) -> Any:
    """Return the value of JSON text of bounded size; bytes are UTF-8.

    Raises:
        ValueError: See `read_json`.
    """
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        return json.loads(text, parse_int=_bounded_int)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _bounded_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    return int(text)


def description_text(values: Mapping[str, Any]) -> str:
    """Return the content of a description's file."""
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def differences(recorded: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each value that differs.

    Args:
        recorded: Values of the description in the folder.
        requested: Requested values. Names that are missing here are not compared.

    Returns:
        Phrases such as "num_shards is 10 there, 3 now", in the order of `requested`.
    """
    return [
        f"{name} is {recorded.get(name)!r} there, {value!r} now"
        for name, value in requested.items()
        if recorded.get(name) != value
    ]
