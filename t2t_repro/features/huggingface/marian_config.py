"""The settings of a MarianMT model: `config.json`, and hparams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from t2t_repro import catalogue
from t2t_repro.constants import Activation
from t2t_repro.errors import UserError
from t2t_repro.settings.hparams import HParams

HPARAMS_SET = "transformer_marian"
# Of torch's LayerNorm, which MarianMT does not change.
NORM_EPSILON = 1e-5
# Other names of the same functions
_ACTIVATIONS: dict[str, Activation] = {
    **{name: name for name in get_args(Activation)},
    "silu": "swish",
}
# Values of `config.json` that this package can compute, besides those above.
_EXPECTED = {"model_type": "marian", "scale_embedding": True}


class MarianConfig:
    """The content of a `config.json`.

    Args:
        values: Its values.

    Raises:
        UserError: If it is not a MarianMT model's, or has settings that cannot be
            computed here; the message names the first one.
    """

    # Defaults of `transformers.MarianConfig`; those of sizes are never right.
    _DEFAULTS: Mapping[str, Any] = {
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "max_position_embeddings": 1024,
        "scale_embedding": False,
    }

    def __init__(self, values: Mapping[str, Any]) -> None:
        if not isinstance(values, Mapping):
            raise UserError("received a config.json without settings")
        self.values = {**self._DEFAULTS, **values}
        for name, expected in _EXPECTED.items():
            self._check(name, self.values.get(name), expected)
        for part in ("attention_heads", "ffn_dim"):
            decoder = self._size(f"decoder_{part}")
            self._check(f"encoder_{part}", self._size(f"encoder_{part}"), decoder)
        self.pad = self._size("pad_token_id", 0)
        self.eos = self._size("eos_token_id", 0)
        self._check(
            "decoder_start_token_id", values.get("decoder_start_token_id"), self.pad
        )
        self.check_bad_words(values)
        activation = self.values.get("activation_function")
        if type(activation) is not str or activation not in _ACTIVATIONS:
            raise UserError(
                f"received config.json with activation_function={activation!r}, "
                f"expected one of {', '.join(_ACTIVATIONS)}"
            )
        self.shares_embeddings = self._is("share_encoder_decoder_embeddings")
        self.ties_softmax = self._is("tie_word_embeddings")
        self.hidden_size = self._size("d_model")
        self.filter_size = self._size("encoder_ffn_dim")
        self.encoder_layers = self._size("encoder_layers")
        self.decoder_layers = self._size("decoder_layers")
        self.vocab_size = self._size("vocab_size")
        target = self.values.get("decoder_vocab_size")
        self.target_vocab_size = (
            self.vocab_size
            if target is None or self.shares_embeddings
            else self._size("decoder_vocab_size")
        )

    def check_bad_words(self, values: Mapping[str, Any]) -> None:
        """Refuse words that must not be generated, besides padding, which never is.

        Args:
            values: Values of config.json or of generation_config.json.
        """
        words = values.get("bad_words_ids")
        if words is not None:
            self._check("bad_words_ids", words, [[self.pad]])

    def _check(self, name: str, value: object, expected: object) -> None:
        if value != expected:
            raise UserError(
                f"received config.json with {name}={value!r}, expected {expected!r}: "
                "this is no MarianMT model, or one that this package cannot compute"
            )

    def _size(self, name: str, least: int = 1) -> int:
        value = self.values.get(name)
        if type(value) is not int or value < least:
            raise UserError(
                f"received config.json with {name}={value!r}, expected a number of at "
                f"least {least}"
            )
        return value

    def _is(self, name: str) -> bool:
        value = self.values[name]
        if type(value) is not bool:
            raise UserError(
                f"received config.json with {name}={value!r}, expected true or false"
            )
        return value

    def overrides(self) -> str:
        """Return the hparams that differ from the set's, as "name=value,...".

        Raises:
            UsageError: If a value is out of range, before anything has its size.
        """
        base = catalogue.hparams(HPARAMS_SET)
        values = {
            "hidden_size": self.hidden_size,
            "filter_size": self.filter_size,
            "num_heads": self._size("encoder_attention_heads"),
            "num_hidden_layers": self.encoder_layers,
            "num_decoder_layers": self.decoder_layers,
            "ffn_activation": _ACTIVATIONS[self.values["activation_function"]],
            "max_length": self._size("max_position_embeddings"),
            "layer_prepostprocess_dropout": self.values["dropout"],
            "attention_dropout": self.values["attention_dropout"],
            "relu_dropout": self.values["activation_dropout"],
            "shared_embedding_and_softmax_weights": self.shares_embeddings
            and self.ties_softmax,
        }
        if self.encoder_layers == self.decoder_layers:
            del values["num_decoder_layers"]
        changed = {n: v for n, v in values.items() if v != getattr(base, n)}
        text = ",".join(f"{name}={value}" for name, value in changed.items())
        base.parse(text)
        return text


# hparam -> the value that MarianMT computes, and how to train a model that has it
_NEEDED: dict[str, tuple[object, str]] = {
    "layer_preprocess_sequence": ("none", "train with post-norm"),
    "pos": ("timing_halves", "train with it"),
    "norm_epsilon": (NORM_EPSILON, "train with it"),
    "self_attention_type": ("dot_product", "train with it"),
    "attention_compatibility": ("scaled_dot_product", "train with it"),
    "ffn_layer": ("dense_relu_dense", "train with it"),
    "branched_attention": ("none", "train without branches"),
    "word_positions": (False, "train without them"),
    "depth_positions": (False, "train without them"),
    "encoder_input_bias": (False, "train without it"),
}


def check_marian(model: str, hparams: HParams) -> None:
    """Refuse a model that MarianMT cannot compute.

    Args:
        model: Name of the model in the registry.
        hparams: Its hparams.

    Raises:
        UserError: If it is refused; the message names each reason, and what to change.
    """
    reasons = [*_reasons(model, hparams)]
    if reasons:
        raise UserError(
            f"MarianMT cannot compute this model: {'; '.join(reasons)}.\n"
            f"hparams_set={HPARAMS_SET} has all of these settings."
        )


def _reasons(model: str, h: HParams) -> Iterator[str]:
    if model != "transformer":
        yield f"received model={model}, expected transformer"
    for name, (needed, advice) in _NEEDED.items():
        value = getattr(h, name)
        if value != needed:
            yield f"received {name}={value}, expected {needed}: {advice}"
    for name in ("attention_key_channels", "attention_value_channels"):
        if getattr(h, name) not in (0, h.hidden_size):
            yield (
                f"received {name}={getattr(h, name)}, expected hidden_size="
                f"{h.hidden_size}: train with it"
            )


def config_values(
    h: HParams, vocab_sizes: tuple[int, int], pad: int, eos: int, *, shared: bool
) -> dict[str, Any]:
    """Return the content of the `config.json` of a model.

    Args:
        h: Resolved hparams that `check_marian` accepts.
        vocab_sizes: Sizes of both vocabularies.
        pad: Marian's id of padding.
        eos: Marian's id of the end of a sentence.
        shared: Whether embeddings and softmax are one matrix.
    """
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": vocab_sizes[0],
        "decoder_vocab_size": vocab_sizes[1],
        "d_model": h.hidden_size,
        "encoder_layers": h.num_encoder_layers,
        "decoder_layers": h.num_decoder_layers,
        "encoder_ffn_dim": h.filter_size,
        "decoder_ffn_dim": h.filter_size,
        "encoder_attention_heads": h.num_heads,
        "decoder_attention_heads": h.num_heads,
        "activation_function": h.ffn_activation,
        "dropout": h.layer_prepostprocess_dropout,
        "attention_dropout": h.attention_dropout,
        "activation_dropout": h.relu_dropout,
        "max_position_embeddings": max(h.max_length, 512),
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": shared,
        "pad_token_id": pad,
        "eos_token_id": eos,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": eos,
        "dtype": "float32",
    }
