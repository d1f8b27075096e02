"""The settings of a model that tensor2tensor trained, in its own names and values.

They come from `hparams.json`, which the trainer writes beside the checkpoints, or from
the name of the set that it was trained with, which `flags.txt` has. The shapes of the
variables must agree, and give what is missing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro import catalogue, registry
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.tensor2tensor.old_names import HPARAM_VALUES, HPARAMS, SETS
from t2t_repro.features.tensor2tensor.variable_names import MODEL, Shapes
from t2t_repro.files import parse_json, read_json

SETTINGS_FILE = "hparams.json"
FLAGS_FILES = ("flags.txt", "flags_t2t.txt")
_MAX_FLAGS_BYTES = 2**20
_FLAG = re.compile(r"^--(problem|hparams_set|hparams|model)=(.*)$", re.MULTILINE)
_NOT_SETS = ("", "None")

# Names whose value here is tensor2tensor's.
_OLD_VALUES = {(name, here): old for (name, old), here in HPARAM_VALUES.items()}


@dataclasses.dataclass(frozen=True)
class OldSettings:
    """Settings in tensor2tensor's names.

    Attributes:
        values: Value by name. Names that are missing have the default of their time.
        origin: Where they come from, for messages.
        problem: Name of the problem, or None if nothing tells.
    """

    values: Mapping[str, Any]
    origin: str
    problem: str | None = None

    def get(self, name: str, default: Any) -> Any:
        """Return a value, or a default if it is missing or null."""
        value = self.values.get(name)
        return default if value is None else value

    def layers(self, stack: str) -> int:
        """Return the number of layers of the encoder or the decoder."""
        return self.get(f"num_{stack}_layers", 0) or self.values["num_hidden_layers"]

    def channels(self, kind: str) -> int:
        """Return the channels of all heads together, of "key" or "value"."""
        return self.get(f"attention_{kind}_channels", 0) or self.values["hidden_size"]


def read_old_settings(
    folder: Path,
    shapes: Shapes,
    *,
    hparams_set: str | None = None,
    hparams: str = "",
    problem: str | None = None,
) -> OldSettings:
    """Return the settings of a checkpoint.

    Args:
        folder: Folder of the checkpoint.
        shapes: Shape of each variable.
        hparams_set: Set that the model was trained with, in tensor2tensor's names or
            registered by a package; needed if the folder has no `hparams.json`.
        hparams: Changes to it, "name=value,name=value".
        problem: Problem that the model was trained on, if the folder does not tell.

    Raises:
        UserError: If they are missing, damaged, or contradict the shapes.
        UsageError: If the set or a change is refused.
    """
    flags = _read_flags(folder)
    problem = problem or flags.get("problem")
    changes = _parsed(hparams)
    path = next((p for p in _files(folder) if p.is_file()), None)
    hparams_set = hparams_set or _known_set(flags.get("hparams_set", ""))
    if path is not None:
        values, origin = _read_values(path), str(path)
    elif hparams_set:
        values, origin = _values_of_set(hparams_set), f"hparams_set={hparams_set}"
        values |= _parsed(flags.get("hparams", ""))
    elif "num_heads" in changes:
        values, origin = _default_values(shapes), "the shapes of the variables"
    else:
        named = flags.get("hparams_set", "transformer_base")
        raise UserError(
            f"received {folder} without {SETTINGS_FILE}, expected it there, or the set "
            f"that the model was trained with, such as hparams_set={named} (with the "
            "t2t_usr_dir that registers it, if it is your own), or hparams with at "
            "least num_heads: the shapes of the variables do not tell it."
        )
    values = _renamed(values | changes)
    found = settings_of_shapes(shapes)
    settings = OldSettings(found | values, origin, problem)
    _check_agrees(settings, found)
    return settings


def _files(folder: Path) -> list[Path]:
    # `t2t-avg-all` writes none; its folder is often inside that of the run.
    above = folder.resolve().parent
    is_run = (above / FLAGS_FILES[0]).is_file()
    return [folder / SETTINGS_FILE, *([above / SETTINGS_FILE] if is_run else [])]


def _read_values(path: Path) -> dict[str, Any]:
    try:
        values = read_json(path)
        if not isinstance(values, dict) or "hidden_size" not in values:
            raise ValueError("it has no hidden_size")
    except (ValueError, OSError) as error:
        raise UserError(
            f"received {path}, expected the settings that `t2t-trainer` wrote: {error}"
        ) from error
    if "versions" in values or "tokenizers" in values:
        raise UserError(f"received {path}, which describes a run of `t2t train`.")
    return values


def _read_flags(folder: Path) -> dict[str, str]:
    """Return the flags of the training that tell about the model."""
    found: dict[str, str] = {}
    for name in FLAGS_FILES:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _MAX_FLAGS_BYTES:
            matches = _FLAG.findall(path.read_text("utf-8", "replace"))
            found |= {flag: value for flag, value in matches if value not in _NOT_SETS}
    return found


def _known_set(name: str) -> str | None:
    """Return the name of a set that the flags have, if it is known here."""
    return name if name in SETS or name in registry.hparams_sets else None


def _parsed(hparams: str) -> dict[str, Any]:
    """Parse "name=value,name=value"; numbers and booleans get their types."""
    given: dict[str, Any] = {}
    for piece in hparams.split(",") if hparams.strip() else []:
        name, equals, text = (part.strip() for part in piece.partition("="))
        if not equals:
            raise UsageError(f"hparams: received {piece!r}, expected name=value.")
        spelt = text.lower() if text.lower() in ("true", "false") else text
        try:
            given[name] = parse_json(spelt)
        except ValueError:
            given[name] = text
    return given


def _values_of_set(name: str) -> dict[str, Any]:
    """Return the values of a set by tensor2tensor's name, or of a package's set."""
    old = SETS.get(name)
    if old is not None and not old.base:
        raise UserError(
            f"received hparams_set={name}, expected one with the same values here: "
            f"{old.answer}. Give its values as hparams, such as num_heads=8."
        )
    changes = {} if old is None else dict(old.changes)
    text = ",".join(f"{key}={value}" for key, value in changes.items())
    found = catalogue.hparams(name if old is None else old.base).parse(text)
    return {
        name: _OLD_VALUES.get((name, str(value)), value)
        for name, value in found.values().items()
    }


def _default_values(shapes: Shapes) -> dict[str, Any]:
    """Return the values of the base model with the wiring that the names show."""
    wiring = settings_of_shapes(shapes)["layer_preprocess_sequence"]
    name = "transformer_base_v1" if wiring == "none" else "transformer_base_v3"
    values = _values_of_set(name)
    return {name: value for name, value in values.items() if name not in _SHAPED}


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of an early version under their later names."""
    renamed = {name: old.renamed for name, old in HPARAMS.items() if old.renamed}
    return {renamed.get(name, name): value for name, value in values.items()}


_CONVOLUTION = "(conv_hidden_relu/)?"
_SHAPED = (
    "hidden_size",
    "filter_size",
    "num_hidden_layers",
    "num_encoder_layers",
    "num_decoder_layers",
    "attention_key_channels",
    "attention_value_channels",
)


def settings_of_shapes(shapes: Shapes) -> dict[str, Any]:
    """Return the settings that the variables of a checkpoint show.

    Args:
        shapes: Shape of each variable of a checkpoint that `check_variables` accepts.

    Raises:
        UserError: If a stack has no layer.
    """
    depths = {stack: _depth(shapes, stack) for stack in ("encoder", "decoder")}
    first = f"{MODEL}/body/encoder/layer_0"
    attention = f"{first}/self_attention"
    hidden, keys = _shape(shapes, f"{attention}/multihead_attention/q/kernel")
    _, values = _shape(shapes, f"{attention}/multihead_attention/v/kernel")
    _, inner = _shape(shapes, f"{first}/ffn/{_CONVOLUTION}conv1/kernel")
    is_pre = any(
        name.startswith(f"{MODEL}/body/encoder/layer_prepostprocess/")
        for name in shapes
    )
    found = {
        "hidden_size": hidden,
        "filter_size": inner,
        "num_hidden_layers": depths["encoder"],
        "num_encoder_layers": depths["encoder"],
        "num_decoder_layers": depths["decoder"],
        "attention_key_channels": keys,
        "attention_value_channels": values,
        "layer_preprocess_sequence": "n" if is_pre else "none",
        "layer_postprocess_sequence": "da" if is_pre else "dan",
    }
    positions = shapes.get(f"{MODEL}/body/inputs_positional_embedding")
    if positions is not None:
        found |= {"pos": "emb", "max_length": positions[0]}
    return found


def _depth(shapes: Shapes, stack: str) -> int:
    pattern = re.compile(rf"{MODEL}/body/{stack}/layer_(\d+)/")
    matches = filter(None, map(pattern.match, shapes))
    return 1 + max((int(match[1]) for match in matches), default=-1)


def _shape(shapes: Shapes, pattern: str) -> tuple[int, ...]:
    """Return the last two axes of the first variable whose name matches."""
    found = next((s for n, s in shapes.items() if re.fullmatch(pattern, n)), None)
    if found is None or len(found) < 2:
        name = pattern.replace(_CONVOLUTION, "")
        raise UserError(
            f"received a checkpoint without the matrix {name}, expected a model with "
            "an encoder and a decoder."
        )
    return found[-2:]


def _check_agrees(settings: OldSettings, found: Mapping[str, Any]) -> None:
    """Refuse settings that are not those of the variables.

    Raises:
        UserError: If one differs; the message names it.
    """
    given: dict[str, Any] = {
        "hidden_size": settings.values["hidden_size"],
        "filter_size": settings.values["filter_size"],
        "num_encoder_layers": settings.layers("encoder"),
        "num_decoder_layers": settings.layers("decoder"),
        "attention_key_channels": settings.channels("key"),
        "attention_value_channels": settings.channels("value"),
        "layer_preprocess_sequence": settings.values["layer_preprocess_sequence"],
    }
    if settings.get("pos", "timing") == "emb" or "pos" in found:
        given |= {n: settings.values[n] for n in ("pos", "max_length")}
    for name, value in given.items():
        if value != found.get(name):
            raise UserError(
                f"received {name}={value} in {settings.origin}, expected "
                f"{found.get(name)}, which the variables of the checkpoint show."
            )
