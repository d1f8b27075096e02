"""What can be set about a model, its training and its decoding.

Names are tensor2tensor's (layers/common_hparams.py, models/transformer.py). `HParams`
has no defaults: a value is written once, in the registered set it belongs to (the
catalogue `hparams/`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from t2t_repro.errors import UserError
from t2t_repro.settings.typed_settings import TypedSettings, setting

LEARNING_RATE_FACTORS = (
    "constant",
    "linear_warmup",
    "rsqrt_decay",
    "rsqrt_hidden_size",
)
# Post-norm as in the paper, and tensor2tensor's later pre-norm: what stands before a
# sublayer decides what must stand behind it.
RESIDUAL_WIRINGS = {"none": "dan", "n": "da"}
SINUSOIDS = ("timing", "timing_concat")
# Settings that earlier versions wrote to `hparams.json` and nothing ever read.
RETIRED = ("optimizer",)


@dataclass(frozen=True, kw_only=True)
class HParams(TypedSettings):
    """A model and its training: every value explicit, typed and checked.

    `with_origin`, called by `register_hparams`, notes which set a value comes from.
    """

    flag: ClassVar[str] = "--hparams"
    how_to_list: ClassVar[str] = (
        "`t2t show transformer_base` explains every name and value."
    )

    hidden_size: int = setting(
        "width of embeddings and of every sublayer (d_model)", unit="units", at_least=1
    )
    filter_size: int = setting(
        "inner width of the position-wise feed-forward layer (d_ff)",
        unit="units",
        at_least=1,
    )
    num_heads: int = setting(
        "attention heads (h); divides key and value channels", unit="heads", at_least=1
    )
    num_hidden_layers: int = setting(
        "layers of each stack that has no number of its own (N)",
        unit="layers",
        at_least=1,
    )
    num_encoder_layers: int = setting(
        "layers of the encoder; 0 = num_hidden_layers", unit="layers", at_least=0
    )
    num_decoder_layers: int = setting(
        "layers of the decoder; 0 = num_hidden_layers", unit="layers", at_least=0
    )
    attention_key_channels: int = setting(
        "queries and keys of all heads together (h d_k); 0 = hidden_size",
        unit="units",
        at_least=0,
    )
    attention_value_channels: int = setting(
        "values of all heads together (h d_v); 0 = hidden_size",
        unit="units",
        at_least=0,
    )
    attention_compatibility: str = setting(
        "how queries meet keys; the paper's section 3.2.1 weighs the three",
        choices=("scaled_dot_product", "dot_product", "additive"),
    )
    self_attention_type: str = setting(
        "what a position sees of its own sequence: all, or a neighbourhood, computed "
        "in blocks or, for comparison, under a mask",
        choices=("dot_product", "restricted", "restricted_masked"),
    )
    attention_neighbourhood: int = setting(
        "positions seen round each one, odd (r of section 4); 0 = all",
        unit="positions",
        at_least=0,
    )
    ffn_layer: str = setting(
        "the position-wise sublayer; parameter_attention has filter_size rows",
        choices=("dense_relu_dense", "parameter_attention"),
    )
    parameter_attention_heads: int = setting(
        "heads of attention over parameters (h_p); 0 = num_heads",
        unit="heads",
        at_least=0,
    )
    parameter_attention_key_channels: int = setting(
        "its queries and keys of all heads together (h_p d_pk); 0 = hidden_size",
        unit="units",
        at_least=0,
    )
    parameter_attention_value_channels: int = setting(
        "its values of all heads together (h_p d_pv); 0 = hidden_size",
        unit="units",
        at_least=0,
    )
    branched_attention: str = setting(
        "the Weighted Transformer's sublayer, num_heads branches; split or shared = "
        "its feed-forward network",
        choices=("none", "split", "shared"),
    )
    branched_in_decoder: str = setting(
        "the attention of a decoder layer that is branched", choices=("memory", "self")
    )
    branch_normalization: str = setting(
        "what keeps kappa and alpha at sum one", choices=("simplex", "softmax")
    )
    branch_top_k: int = setting(
        "branches of largest alpha that are summed; 0 = all",
        unit="branches",
        at_least=0,
    )
    branch_learning_rate_warmup_steps: int = setting(
        "warm-up of kappa's and alpha's own learning rate", unit="steps", at_least=1
    )
    branch_frozen_after_steps: int = setting(
        "kappa and alpha stay as they are after so many updates; 0 = never",
        unit="steps",
        at_least=0,
    )
    pos: str = setting(
        "positions: timing = the paper's interleaved sinusoids (not tensor2tensor's "
        "timing, which is timing_concat here), emb = a learned table, or none",
        choices=("timing", "timing_concat", "emb", "none"),
    )
    layer_preprocess_sequence: str = setting(
        "before a sublayer: n = layer normalisation", choices=tuple(RESIDUAL_WIRINGS)
    )
    layer_postprocess_sequence: str = setting(
        "behind a sublayer: d = dropout, a = add the residual, n = layer normalisation",
        choices=tuple(RESIDUAL_WIRINGS.values()),
    )
    norm_epsilon: float = setting(
        "added to the variance in layer normalisation", above=0
    )
    layer_prepostprocess_dropout: float = setting(
        "dropout of sublayer outputs and of embeddings plus positions (P_drop)",
        unit="probability",
        at_least=0,
        below=1,
    )
    attention_dropout: float = setting(
        "dropout of attention weights", unit="probability", at_least=0, below=1
    )
    relu_dropout: float = setting(
        "dropout behind the ReLU of the feed-forward layer",
        unit="probability",
        at_least=0,
        below=1,
    )
    label_smoothing: float = setting(
        "mass taken from the right symbol and spread over the others (epsilon_ls)",
        unit="probability",
        at_least=0,
        below=1,
    )
    shared_embedding_and_softmax_weights: bool = setting(
        "one matrix for both embeddings and the projection before the softmax"
    )
    activation_dtype: str = setting(
        "what layers compute in; variables stay float32",
        choices=("float32", "bfloat16", "float16"),
    )
    batch_size: int = setting(
        "batch of one replica: sentences times the longer side's padded length",
        unit="tokens per replica",
        at_least=1,
    )
    max_length: int = setting(
        "longer training pairs are left out (longer side, EOS included), longer "
        "sources are translated in pieces; rows of learned positions",
        unit="tokens",
        at_least=1,
    )
    min_length_bucket: int = setting(
        "length of the shortest bucket", unit="tokens", at_least=1
    )
    length_bucket_step: float = setting(
        "length of a bucket relative to the one below it", unit="ratio", above=1
    )
    optimizer_adam_beta1: float = setting(
        "decay of Adam's mean of gradients", at_least=0, below=1
    )
    optimizer_adam_beta2: float = setting(
        "decay of Adam's mean of squared gradients", at_least=0, below=1
    )
    optimizer_adam_epsilon: float = setting("Adam's epsilon", above=0)
    learning_rate_schedule: str = setting(
        f"product of {', '.join(LEARNING_RATE_FACTORS)}, joined by *"
    )
    learning_rate_constant: float = setting("the factor `constant`", above=0)
    learning_rate_warmup_steps: int = setting(
        "steps of rising learning rate, read by linear_warmup and rsqrt_decay",
        unit="steps",
        at_least=1,
    )
    clip_grad_norm: float = setting(
        "largest global norm of the gradient; 0 = not clipped", at_least=0
    )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the settings back; those of `RETIRED` are left out."""
        kept = {name: value for name, value in values.items() if name not in RETIRED}
        return super().from_dict(kept)

    def check_together(self) -> None:
        """Raises UserError where values that are fine alone do not fit together."""
        for problem in self._misfits():
            raise UserError(problem)

    def _misfits(self) -> Iterator[str]:
        factors = self.learning_rate_factors
        for factor in factors:
            if factor not in LEARNING_RATE_FACTORS or factors.count(factor) > 1:
                yield (
                    "learning_rate_schedule: received "
                    f"{self.learning_rate_schedule!r}, expected each of "
                    f"{', '.join(LEARNING_RATE_FACTORS)} at most once, joined by *."
                )
                return
        for name in ("attention_key_channels", "attention_value_channels"):
            channels = getattr(self, name) or self.hidden_size
            if channels % self.num_heads:
                origin = name if getattr(self, name) else "hidden_size"
                yield (
                    f"num_heads must divide {origin}: received "
                    f"num_heads={self.num_heads}, {origin}={channels}."
                )
        yield from self._variant_misfits()
        behind = RESIDUAL_WIRINGS[self.layer_preprocess_sequence]
        if self.layer_postprocess_sequence != behind:
            wirings = " or ".join(map("/".join, RESIDUAL_WIRINGS.items()))
            yield (
                "layer_preprocess_sequence/layer_postprocess_sequence: received "
                f"{self.layer_preprocess_sequence}/{self.layer_postprocess_sequence}, "
                f"expected {wirings} (post-norm or pre-norm); set both."
            )
        if self.pos in SINUSOIDS and self.hidden_size % 2:
            yield (
                f"pos={self.pos} needs an even hidden_size: received "
                f"hidden_size={self.hidden_size}."
            )

    def _variant_misfits(self) -> Iterator[str]:
        restricted = self.self_attention_type != "dot_product"
        if restricted and self.attention_neighbourhood % 2 == 0:
            yield (
                f"self_attention_type={self.self_attention_type} needs an odd "
                "attention_neighbourhood: received "
                f"attention_neighbourhood={self.attention_neighbourhood}."
            )
        if not restricted and self.attention_neighbourhood:
            yield (
                "attention_neighbourhood needs self_attention_type=restricted: "
                f"received attention_neighbourhood={self.attention_neighbourhood}, "
                f"self_attention_type={self.self_attention_type}."
            )
        if self.ffn_layer == "parameter_attention":
            yield from self._parameter_attention_misfits()
        if self.branched_attention != "none":
            yield from self._branched_misfits()

    def _parameter_attention_misfits(self) -> Iterator[str]:
        heads = self.parameter_attention_heads or self.num_heads
        for side in ("key", "value"):
            name = f"parameter_attention_{side}_channels"
            channels = getattr(self, name) or self.hidden_size
            if channels % heads:
                yield (
                    f"parameter_attention_heads must divide {name}: received "
                    f"{heads} heads, {channels} channels."
                )

    def _branched_misfits(self) -> Iterator[str]:
        if self.ffn_layer != "dense_relu_dense":
            yield (
                "branched_attention holds the feed-forward network itself: received "
                f"branched_attention={self.branched_attention}, "
                f"ffn_layer={self.ffn_layer}."
            )
        if self.self_attention_type != "dot_product":
            yield (
                "branched_attention attends to all positions: received "
                f"self_attention_type={self.self_attention_type}."
            )
        if self.branched_attention == "split" and self.filter_size % self.num_heads:
            yield (
                "num_heads must divide filter_size where branches split it: received "
                f"num_heads={self.num_heads}, filter_size={self.filter_size}."
            )
        if self.branch_top_k > self.num_heads:
            yield (
                "branch_top_k must not exceed num_heads: received "
                f"branch_top_k={self.branch_top_k}, num_heads={self.num_heads}."
            )

    @property
    def learning_rate_factors(self) -> tuple[str, ...]:
        """The names joined by * in `learning_rate_schedule`."""
        return tuple(self.learning_rate_schedule.split("*"))

    def ineffective_settings(self) -> dict[str, str]:
        """Returns setting -> reason for those that nothing reads beside the others."""
        idle = {}
        factors = self.learning_rate_factors
        schedule = (
            f"learning_rate_schedule={self.learning_rate_schedule} has no factor "
        )
        if "constant" not in factors:
            idle["learning_rate_constant"] = schedule + "constant."
        if not {"linear_warmup", "rsqrt_decay"} & set(factors):
            idle["learning_rate_warmup_steps"] = (
                schedule + "linear_warmup or rsqrt_decay."
            )
        if self.num_encoder_layers and self.num_decoder_layers:
            idle["num_hidden_layers"] = (
                "num_encoder_layers and num_decoder_layers are both set; "
                "override those, or set one of them to 0."
            )
        if self.ffn_layer != "parameter_attention":
            idle |= dict.fromkeys(
                _names_with("parameter_attention_"), f"ffn_layer={self.ffn_layer}."
            )
        if self.branched_attention == "none":
            idle |= dict.fromkeys(
                _names_with("branch_", "branched_in"), "branched_attention=none."
            )
        if self.min_length_bucket >= self.max_length:
            idle["length_bucket_step"] = (
                f"min_length_bucket={self.min_length_bucket} is not below "
                f"max_length={self.max_length}, so there is one bucket."
            )
        return idle

    def resolved(self) -> HParams:
        """Returns a copy in which every 0 that stands for another value is that value.

        The layers' numbers and the attention's channels are then what the model has.
        """
        stands_for = {
            "num_encoder_layers": self.num_hidden_layers,
            "num_decoder_layers": self.num_hidden_layers,
            "attention_key_channels": self.hidden_size,
            "attention_value_channels": self.hidden_size,
            "parameter_attention_heads": self.num_heads,
            "parameter_attention_key_channels": self.hidden_size,
            "parameter_attention_value_channels": self.hidden_size,
        }
        open_names = {n: v for n, v in stands_for.items() if not getattr(self, n)}
        return self.replace(**open_names).with_origin("derived")


def _names_with(*prefixes: str) -> list[str]:
    return [name for name in HParams.names() if name.startswith(prefixes)]
