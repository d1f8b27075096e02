"""tensor2tensor's hparams sets, as sets and hparams of this project.

Source: tensor2tensor 1.15 `models/transformer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_RELATIVE_ATTENTION = (
    "there is no relative attention, but a package can register it (docs/extending.md)"
)


@dataclass(frozen=True)
class OldSet:
    """An hparams set of tensor2tensor.

    Attributes:
        base: Registered set to start from; empty if no set has the same values.
        changes: Hparams that differ from it.
        answer: The nearest set, if no set has the same values.
    """

    base: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


_V3 = "transformer_base_v3"
_BIG = "transformer_big_v3"
_BIG_SIZES = {"hidden_size": "1024", "filter_size": "4096", "num_heads": "16"}
_NO_RELATIVE = f"{NO_RELATIVE_ATTENTION}; nearest: transformer_base_v3"
_NO_TPU_SET = "TPUs and Adafactor are not supported; nearest: transformer_base_v3"
_NO_PREPEND = (
    "there are no language models; an encoder and a decoder with the same hparams: "
    "transformer_base_v3"
)

# "transformer_base" is tensor2tensor's last base model in its commands, and the paper's
# in `t2t train`.
SETS = {
    "transformer_base": OldSet(_V3),
    "transformer_base_v3": OldSet(_V3),
    "transformer_base_v2": OldSet(_V3, {"optimizer_adam_beta2": "0.98"}),
    "transformer_base_v1": OldSet(
        "transformer_base", {"batch_size": "4096", "pos": "timing_concat"}
    ),
    "transformer_base_single_gpu": OldSet(
        _V3,
        {
            "batch_size": "1024",
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
            "learning_rate_constant": "0.1",
            "learning_rate_warmup_steps": "16000",
        },
    ),
    "transformer_big": OldSet(_BIG),
    "transformer_big_single_gpu": OldSet(
        _BIG,
        {
            "layer_prepostprocess_dropout": "0.1",
            "learning_rate_warmup_steps": "16000",
        },
    ),
    "transformer_big_dr1": OldSet(
        _V3, {**_BIG_SIZES, "layer_prepostprocess_dropout": "0.1"}
    ),
    "transformer_big_dr2": OldSet(
        _V3, {**_BIG_SIZES, "layer_prepostprocess_dropout": "0.2"}
    ),
    "transformer_big_enfr": OldSet(
        _V3,
        {
            **_BIG_SIZES,
            "filter_size": "8192",
            "layer_prepostprocess_dropout": "0.1",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    "transformer_tiny": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "128",
            "filter_size": "512",
            "num_heads": "4",
        },
    ),
    "transformer_small": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "256",
            "filter_size": "1024",
            "num_heads": "4",
        },
    ),
    "transformer_test": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "16",
            "filter_size": "8",
            "num_heads": "2",
        },
    ),
    "transformer_parsing_base": OldSet(
        _V3,
        {
            "attention_dropout": "0.2",
            "layer_prepostprocess_dropout": "0.2",
            "max_length": "512",
            "learning_rate_warmup_steps": "16000",
            "hidden_size": "1024",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    "transformer_parsing_big": OldSet(
        _BIG,
        {
            "layer_prepostprocess_dropout": "0.1",
            "max_length": "512",
            "learning_rate_warmup_steps": "4000",
        },
    ),
    "transformer_parsing_ice": OldSet(
        _V3,
        {
            "batch_size": "4096",
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
            "learning_rate_constant": "0.1",
            "learning_rate_warmup_steps": "16000",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    **{
        f"transformer_{letter}{value}": OldSet(_V3, {name: number})
        for letter, name, values in (
            ("l", "num_hidden_layers", {"2": "2", "4": "4", "8": "8", "10": "10"}),
            ("h", "num_heads", {"1": "1", "4": "4", "16": "16", "32": "32"}),
            ("k", "attention_key_channels", {"128": "128", "256": "256"}),
            ("ff", "filter_size", {"1024": "1024", "4096": "4096"}),
            ("hs", "hidden_size", {"256": "256", "1024": "1024"}),
            ("dr", "layer_prepostprocess_dropout", {"0": "0.0", "2": "0.2"}),
            ("ls", "label_smoothing", {"0": "0.0", "2": "0.2"}),
        )
        for value, number in values.items()
    },
    "transformer_base_multistep8": OldSet(
        answer="nearest: transformer_base_v3 with update_tokens=32768"
    ),
    "transformer_parameter_attention_a": OldSet(
        answer="nearest: transformer_base_aop1, the paper's"
    ),
    "transformer_parameter_attention_b": OldSet(
        answer="nearest: transformer_base_aop2, the paper's"
    ),
    "transformer_relative": OldSet(answer=_NO_RELATIVE),
    "transformer_relative_tiny": OldSet(answer=_NO_RELATIVE),
    "transformer_relative_big": OldSet(answer=_NO_RELATIVE),
    "transformer_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_big_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_tiny_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_packed_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_prepend": OldSet(answer=_NO_PREPEND),
    "transformer_clean": OldSet(
        answer="nearest: transformer_base_v3 with label_smoothing=0,"
        "layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0"
    ),
}
