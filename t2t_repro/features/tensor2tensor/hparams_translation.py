"""Turn the settings of a model of tensor2tensor into hparams of this package.

A value that changes what the model computes is followed or refused. One that only
changes how it was trained is followed or reported.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from t2t_repro import catalogue
from t2t_repro.constants import LEARNING_RATE_FACTORS, WIRINGS
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.old_names import (
    HPARAM_VALUES,
    HPARAMS,
    NOAM,
    legacy_constant,
)
from t2t_repro.features.tensor2tensor.old_settings import OldSettings
from t2t_repro.settings.hparams import HParams

# What the model computes depends on these, and only these values are followed.
_COMPUTED: dict[str, tuple[Any, ...]] = {
    "self_attention_type": ("dot_product",),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "pos": ("timing", "emb", "none", None),
    "norm_type": ("layer",),
    "multiply_embedding_mode": ("sqrt_depth",),
    "symbol_modality_skip_top": (False, 0),
    "prepend_mode": ("none",),
    "proximity_bias": (False, 0),
    "causal_decoder_self_attention": (True, 1),
    "unidirectional_encoder": (False, 0),
    "attention_variables_3d": (False, 0),
    "hard_attention_k": (0,),
    "num_area_layers": (0,),
    "nbr_decoder_problems": (1,),
    "weight_dtype": ("float32",),
    "bottom": ({},),
    "top": ({},),
    "name": ({},),
    "modality": ({},),
}
_MODALITIES = ("input_modalities", "target_modality")
_SYMBOLS = re.compile(r"((inputs|targets):)?(symbol(:default)?|default)")
# Same name, same meaning, and the value if the settings lack it.
_KEPT: dict[str, Any] = {
    "hidden_size": None,
    "filter_size": None,
    "num_heads": None,
    "num_hidden_layers": None,
    "num_encoder_layers": 0,
    "num_decoder_layers": 0,
    "attention_key_channels": 0,
    "attention_value_channels": 0,
    "layer_preprocess_sequence": None,
    "layer_postprocess_sequence": None,
    "norm_epsilon": 1e-6,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "symbol_dropout": 0.0,
    "label_smoothing": 0.0,
    "batch_size": 4096,
    "max_length": 256,
    "min_length_bucket": 8,
    "length_bucket_step": 1.1,
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.997,
    "optimizer_adam_epsilon": 1e-9,
    "learning_rate_warmup_steps": 8000,
    "clip_grad_norm": 0.0,
}
# Names whose zero is the value of another.
_MEANINGS = {
    "num_encoder_layers": "num_hidden_layers",
    "num_decoder_layers": "num_hidden_layers",
    "attention_key_channels": "hidden_size",
    "attention_value_channels": "hidden_size",
}
_SETS = (
    "transformer_base",
    "transformer_big",
    "transformer_base_v3",
    "transformer_big_v3",
    "transformer_tiny",
)
# Values that only training reads, whose answers `old_names` does not have.
_TRAINING: dict[str, tuple[Any, ...]] = {
    "weight_noise": (0.0,),
    "grad_noise_scale": (0.0,),
    "loss": ({},),
    "weights_fn": ({},),
}
ADAMS = ("adam", "true_adam", "Adam")


@dataclasses.dataclass(frozen=True)
class TranslatedHParams:
    """Hparams of this package.

    Attributes:
        hparams_set: Registered set that differs least.
        hparams: Changes to it, "name=value,name=value".
        notes: Differences of training, a line each.
    """

    hparams_set: str
    hparams: str
    notes: tuple[str, ...]


def translated_hparams(
    settings: OldSettings, *, tied: bool, input_bias: bool
) -> TranslatedHParams:
    """Turn settings into the nearest registered set and changes to it.

    Args:
        settings: The settings.
        tied: Whether one matrix is both embeddings and the softmax.
        input_bias: Whether the encoder's input has a bias.

    Raises:
        UserError: If the model computes something that no hparams express.
    """
    for problem in _inexpressible(settings):
        raise UserError(
            f"received {problem}, in {settings.origin}: the model computes something "
            "that this package does not."
        )
    schedule, notes = _schedule(settings)
    values = {
        **{name: settings.get(name, default) for name, default in _KEPT.items()},
        **schedule,
        "pos": _position(settings),
        "shared_embedding_and_softmax_weights": tied,
        "encoder_input_bias": input_bias,
    }
    for name, meaning in _MEANINGS.items():
        if values[name] == values[meaning]:
            values[name] = 0
    if not values["max_length"]:
        values["max_length"] = values["batch_size"]  # as tensor2tensor's batches do
    notes += _training_notes(settings)
    return _nearest_set(values, tuple(notes))


def _position(settings: OldSettings) -> str:
    pos = settings.values.get("pos", "timing")  # null means none
    return HPARAM_VALUES.get(("pos", pos), pos or "none")


def _inexpressible(settings: OldSettings) -> Iterator[str]:
    for name, accepted in _COMPUTED.items():
        value = settings.values.get(name, accepted[0])
        if value not in accepted:
            yield f"{name}={value}, expected {_text(accepted[0])}"
    for name in _MODALITIES:
        for part in re.split("[,;]", str(settings.get(name, "default"))):
            if not _SYMBOLS.fullmatch(part.strip()):
                yield f"{name}={part.strip()}, expected a symbol modality"
    before, after = (
        settings.get(f"layer_{place}process_sequence", None)
        for place in ("pre", "post")
    )
    wiring = WIRINGS.get(str(before))
    if wiring is None or wiring.postprocess != after:
        yield (
            f"layer_preprocess_sequence={before} with layer_postprocess_sequence="
            f"{after}, expected none with dan, or n with da"
        )
    heads = settings.get("num_heads", None)
    if type(heads) is not int or heads < 1:
        yield f"num_heads={heads}, expected a number of heads"


def _schedule(settings: OldSettings) -> tuple[dict[str, Any], list[str]]:
    """Return the hparams of the learning rate, and what could not be followed.

    Source: tensor2tensor utils/learning_rate.py. The legacy schedule counts updates
    from 1, as here, the others from 0.
    """
    schedule = settings.get("learning_rate_schedule", "legacy")
    decay = settings.get("learning_rate_decay_scheme", "noam")
    if schedule == "legacy" and decay == "noam":
        rate = settings.get("learning_rate", 0.1)
        if not isinstance(rate, int | float):
            raise UserError(
                f"received learning_rate={rate} in {settings.origin}, expected a "
                "number."
            )
        return {
            "learning_rate_schedule": NOAM,
            "learning_rate_constant": legacy_constant(rate),
            "learning_rate_first_step": 1,
        }, []
    factors = [factor.strip() for factor in str(schedule).split("*")]
    known = len(set(factors)) == len(factors) and set(factors) <= {
        *LEARNING_RATE_FACTORS
    }
    if not known:
        what = f"{decay} decay" if schedule == "legacy" else str(schedule)
        return {
            "learning_rate_schedule": NOAM,
            "learning_rate_constant": 2.0,
            "learning_rate_first_step": 0,
        }, [f"learning_rate_schedule: there is no {what} here; {NOAM} replaces it."]
    found = {
        "learning_rate_schedule": "*".join(factors),
        "learning_rate_constant": settings.get("learning_rate_constant", 1.0),
        "learning_rate_first_step": 0,
    }
    if "linear_decay" in factors:
        steps = settings.get("learning_rate_decay_steps", 5000)
        found["learning_rate_decay_steps"] = steps
    return found, []


def _training_notes(settings: OldSettings) -> list[str]:
    """Return what training does otherwise here."""
    notes = []
    for name, value in settings.values.items():
        old = HPARAMS.get(name)
        if name in _COMPUTED or (old is None and name not in _TRAINING):
            continue
        if name in _TRAINING and value not in _TRAINING[name]:
            notes.append(f"{name}={_text(value)}: training here has none.")
        elif old is not None and _text(value) not in (old.harmless or (_text(value),)):
            notes.append(f"{name}={_text(value)}: {old.answer}.")
    divisor = settings.get("vocab_divisor", 1)
    if divisor != 1:
        notes.append(
            f"vocab_divisor={divisor}: the run's vocabulary has the additional ids; "
            "prepare other data with its file as source_model."
        )
    dtype = settings.get("activation_dtype", "float32")
    if dtype != "float32":
        notes.append(
            f"activation_dtype={dtype}: imported as float32, in which the model "
            "computes at least as exactly."
        )
    return notes


def _text(value: Any) -> str:
    """Return a value as a flag has it."""
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def _nearest_set(values: dict[str, Any], notes: tuple[str, ...]) -> TranslatedHParams:
    """Return the set with the fewest differences, and the differences."""
    found = []
    for name in _SETS:
        changes = _changes(catalogue.hparams(name), values)
        found.append((len(changes), name, changes))
    _, name, changes = min(found, key=lambda candidate: candidate[0])
    text = ",".join(f"{key}={_text(value)}" for key, value in changes.items())
    return TranslatedHParams(name, text, notes)


def _changes(named: HParams, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that differ from those of a set, without idle ones."""
    names = set(named.names())
    changes = {
        name: value
        for name, value in values.items()
        if name in names and getattr(named, name) != value
    }
    idle = named.replace(**changes).ineffective_settings()
    return {name: value for name, value in changes.items() if name not in idle}
