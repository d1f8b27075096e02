"""The settings of a model and its training: name, type, unit, help, accepted values.

Names are tensor2tensor's (layers/common_hparams.py, models/transformer.py). Most
fields have no default, because a value is written once, in the registered set that it
belongs to (the catalogue `hparams/`). A new field needs a default that does not change
existing models, so that the `hparams.json` of earlier runs remains readable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from t2t_repro import registry
from t2t_repro.constants import (
    DTYPE_POLICIES,
    LEARNING_RATE_FACTORS,
    POSITIONS,
    WIRINGS,
    Activation,
    Branched,
    BranchedInDecoder,
    BranchGain,
    BranchNormalization,
    BranchResidual,
    BranchWeightsInit,
    Compatibility,
    DecoderStart,
    FeedForwardKind,
)
from t2t_repro.errors import UserError
from t2t_repro.settings.hparam_checks import contradictions, ineffective
from t2t_repro.settings.typed_settings import TypedSettings, setting

# Far above every model and batch of today. They stop a slip or a damaged file before
# all memory is gone.
MAX_LAYERS = 1000
MAX_WIDTH = 1_000_000
MAX_LENGTH = 1_000_000
MAX_TOKENS = 2**31 - 1  # tokens of a batch, whose shapes are int32

# Ranges of several hparams
_UNITS = {"unit": "units", "at_least": 1, "at_most": MAX_WIDTH}
_UNITS_OR_0 = {"unit": "units", "at_least": 0, "at_most": MAX_WIDTH}
_LAYERS_OR_0 = {"unit": "layers", "at_least": 0, "at_most": MAX_LAYERS}
_LENGTH = {"unit": "tokens", "at_least": 1, "at_most": MAX_LENGTH}
_LENGTH_OR_0 = {"unit": "tokens", "at_least": 0, "at_most": MAX_LENGTH}
_SHARE = {"at_least": 0, "below": 1}
_PROBABILITY = {"unit": "probability", "at_least": 0, "below": 1}


@dataclass(frozen=True, kw_only=True)
class HParams(TypedSettings):
    """Settings of a model and its training, all explicit, typed and checked.

    `register_hparams` calls `with_origin` to record the set that a value comes from.
    `hparam_checks` says how the values must fit together.
    """

    flag: ClassVar[str] = "--hparams"
    flag_as_zero: ClassVar[str] = "given as 0"
    how_to_list: ClassVar[str] = (
        "`t2t show transformer_base` explains every name and value."
    )

    hidden_size: int = setting(
        "width of embeddings and of every sublayer (d_model)", **_UNITS
    )
    filter_size: int = setting(
        "inner width of the position-wise feed-forward layer (d_ff)", **_UNITS
    )
    num_heads: int = setting(
        "attention heads (h); divides key and value channels",
        unit="heads",
        at_least=1,
        at_most=MAX_WIDTH,
    )
    num_hidden_layers: int = setting(
        "layers of each stack that does not set its own number (N)",
        unit="layers",
        at_least=1,
        at_most=MAX_LAYERS,
    )
    num_encoder_layers: int = setting(
        "layers of the encoder; 0 = num_hidden_layers", **_LAYERS_OR_0
    )
    num_decoder_layers: int = setting(
        "layers of the decoder; 0 = num_hidden_layers", **_LAYERS_OR_0
    )
    attention_key_channels: int = setting(
        "queries and keys of all heads together (h d_k); 0 = hidden_size", **_UNITS_OR_0
    )
    attention_value_channels: int = setting(
        "values of all heads together (h d_v); 0 = hidden_size", **_UNITS_OR_0
    )
    attention_compatibility: Compatibility = setting(
        "function of queries and keys; section 3.2.1 of the paper compares the three"
    )
    attention_bias: bool = setting(
        "biases of the query, key, value and output projections, as in Marian", False
    )
    self_attention_type: str = setting(
        "self-attention of both stacks: dot_product = all positions, restricted = a "
        "neighbourhood, computed in blocks, restricted_masked = the same under a mask, "
        "or a name that a package in t2t_usr_dir registers"
    )
    attention_neighbourhood: int = setting(
        "positions seen around each position, odd (r of section 4); 0 = all",
        unit="positions",
        at_least=0,
        at_most=MAX_LENGTH,
    )
    ffn_layer: FeedForwardKind = setting(
        "the position-wise sublayer; parameter_attention has filter_size rows"
    )
    ffn_activation: Activation = setting(
        "function between the matrices of the feed-forward layer", "relu"
    )
    parameter_attention_heads: int = setting(
        "heads of attention over parameters (h_p); 0 = num_heads",
        unit="heads",
        at_least=0,
        at_most=MAX_WIDTH,
    )
    parameter_attention_key_channels: int = setting(
        "its queries and keys of all heads together (h_p d_pk); 0 = hidden_size",
        **_UNITS_OR_0,
    )
    parameter_attention_value_channels: int = setting(
        "its values of all heads together (h_p d_pv); 0 = hidden_size", **_UNITS_OR_0
    )
    branched_attention: Branched = setting(
        "the Weighted Transformer's sublayer of num_heads branches; split or shared is "
        "the form of its feed-forward network"
    )
    branched_in_decoder: BranchedInDecoder = setting(
        "attention of a decoder layer that is branched"
    )
    branch_normalization: BranchNormalization = setting(
        "function that keeps the sum of kappa and of alpha at one"
    )
    branch_merged: bool = setting(
        "whether branches have alpha alone, without kappa", False
    )
    branch_top_k: int = setting(
        "branches with the largest alphas that are summed; 0 = all",
        unit="branches",
        at_least=0,
    )
    branch_residual: BranchResidual = setting(
        "residual connections of branches: around = one for attention and network "
        "together, inside = that one, and one more in each branch, per_branch = both "
        "of the Transformer's, in each branch, shared = both, for the sums of branches",
        "around",
    )
    branch_gain: BranchGain = setting(
        "size of branches: none = kappa and alpha alone, unit = both times num_heads, "
        "initial = the initial output matrices times num_heads",
        "none",
    )
    branch_weights_init: BranchWeightsInit = setting(
        "initial kappa and alpha: random = uniform numbers divided by their sum, "
        "near_uniform = (1 + 0.1 N(0, 1)) / num_heads, uniform = 1 / num_heads",
        "random",
    )
    branch_learning_rate_constant: float = setting(
        "factor of the learning rate of kappa and alpha; 0 = they never change",
        1.0,
        at_least=0,
    )
    branch_learning_rate_warmup_steps: int = setting(
        "warm-up of the learning rate of kappa and alpha", unit="steps", at_least=1
    )
    branch_frozen_after_steps: int = setting(
        "number of updates after which kappa and alpha are frozen; 0 = never",
        unit="steps",
        at_least=0,
    )
    pos: str = setting(
        "positions: timing = the paper's interleaved sinusoids (not tensor2tensor's "
        "timing, which is timing_concat here), timing_halves = Marian's, emb = a "
        "learned table, emb_large = one that starts as large as sinusoids, or none",
        choices=tuple(POSITIONS),
    )
    layer_preprocess_sequence: str = setting(
        "before a sublayer: n = layer normalization", choices=tuple(WIRINGS)
    )
    layer_postprocess_sequence: str = setting(
        "after a sublayer: d = dropout, a = add the residual, n = layer normalization",
        choices=tuple(wiring.postprocess for wiring in WIRINGS.values()),
    )
    norm_epsilon: float = setting(
        "added to the variance in layer normalization", above=0
    )
    layer_prepostprocess_dropout: float = setting(
        "dropout of sublayer outputs and of embeddings plus positions (P_drop)",
        **_PROBABILITY,
    )
    attention_dropout: float = setting("dropout of attention weights", **_PROBABILITY)
    relu_dropout: float = setting(
        "dropout after the activation of the feed-forward layer", **_PROBABILITY
    )
    symbol_dropout: float = setting(
        "dropout of whole source and target symbols: their embedding is zero",
        0.0,
        **_PROBABILITY,
    )
    word_positions: bool = setting(
        "also encode positions counted in words: of a source token, the index of its "
        "word; of a target position, the number of words written before",
        False,
    )
    depth_positions: bool = setting(
        "also encode the number of open brackets at each target position, of problems "
        "whose targets have brackets",
        False,
    )
    label_smoothing: float = setting(
        "probability moved from the correct symbol to the others (epsilon_ls)",
        **_PROBABILITY,
    )
    rdrop_weight: float = setting(
        "weight of the divergence between two passes with different dropout (alpha of "
        "Liang et al. 2021, R-Drop); 0 = one pass",
        0.0,
        at_least=0,
    )
    rdrop_after_steps: int = setting(
        "updates with a single pass, at half the time, before R-Drop begins",
        0,
        unit="updates",
        at_least=0,
    )
    shared_embedding_and_softmax_weights: bool = setting(
        "one matrix for both embeddings and the projection before the softmax"
    )
    logit_bias: bool = setting(
        "bias of the logits, as Marian's final_logits_bias", False
    )
    encoder_input_bias: bool = setting(
        "one vector added to every position of the encoder's input, as tensor2tensor's "
        "row of the target space",
        False,
    )
    decoder_start: DecoderStart = setting(
        "what the first target position sees: the zero vector, or the embedding of "
        "padding, as in Marian",
        "zeros",
    )
    activation_dtype: str = setting(
        "dtype in which layers compute; variables stay float32",
        choices=tuple(DTYPE_POLICIES),
    )
    batch_size: int = setting(
        "batch of one replica: sentences times the padded length of the longer side",
        unit="tokens per replica",
        at_least=1,
        at_most=MAX_TOKENS,
    )
    update_tokens: int = setting(
        "tokens of one update on all replicas together, at most batch_size per replica "
        "at a time: the gradients of several micro-batches are added up; 0 = one "
        "micro-batch of batch_size",
        0,
        unit="tokens",
        at_least=0,
        at_most=MAX_TOKENS,
    )
    max_length: int = setting(
        "longest training pair that is used (longer side, EOS included); longer "
        "sources are translated in pieces; rows of learned positions",
        **_LENGTH,
    )
    min_length_bucket: int = setting("length of the shortest bucket", **_LENGTH)
    length_bucket_step: float = setting(
        "length of a bucket relative to the next shorter one", unit="ratio", above=1
    )
    packed_length: int = setting(
        "length of training rows that hold several pairs, in place of buckets; 0 = a "
        "row per pair",
        0,
        **_LENGTH_OR_0,
    )
    packed_source_length: int = setting(
        "length of the source side of packed rows, if sources are shorter than "
        "targets; training leaves out longer sources; 0 = packed_length",
        0,
        **_LENGTH_OR_0,
    )
    optimizer_adam_beta1: float = setting("decay of Adam's mean of gradients", **_SHARE)
    optimizer_adam_beta2: float = setting(
        "decay of Adam's mean of squared gradients", **_SHARE
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
    learning_rate_decay_steps: int = setting(
        "steps at the end of training in which linear_decay lowers the learning "
        "rate to zero",
        5_000,
        unit="steps",
        at_least=1,
    )
    learning_rate_first_step: int = setting(
        "number of the first update in learning_rate_schedule: 1, or 0 as in "
        "tensor2tensor, whose first update has a rate of zero if there is a warm-up",
        1,
        at_least=0,
        at_most=1,
    )
    clip_grad_norm: float = setting(
        "largest global gradient norm; 0 = no clipping", at_least=0
    )

    ema_decay: float = setting(
        "decay per update of an exponential moving average of the weights, which "
        "evaluations and the averaged model use; 0 = none",
        0.0,
        **_SHARE,
    )

    @property
    def learning_rate_factors(self) -> tuple[str, ...]:
        """Factors of `learning_rate_schedule`."""
        return tuple(self.learning_rate_schedule.split("*"))

    def parse(self, text: str) -> Self:
        """Apply overrides written as `name=value,name=value`.

        Raises:
            UsageError: If a name is unknown or given twice, a value has the wrong type
                or is out of range, or an override would have no effect.
        """
        parsed = super().parse(text)
        parsed.check_registered()
        return parsed

    def check_registered(self) -> None:
        """Check the values that name a registered object.

        Construction does not call it, because the `hparams.json` of a run is read
        before the user's package is imported.

        Raises:
            UsageError: If `self_attention_type` is not registered.
        """
        registry.attentions.entry(self.self_attention_type)

    def check_together(self) -> None:
        """Check how the values fit together.

        Raises:
            UserError: If two values that are valid alone contradict each other.
        """
        for problem in contradictions(self):
            raise UserError(problem)

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that have no effect."""
        return dict(ineffective(self))

    def resolved(self) -> Self:
        """Return a copy in which zeros that mean another setting have its value.

        The numbers of layers and the channels of attention are then those of the model.

        Raises:
            UsageError: If `self_attention_type` is not registered.
        """
        self.check_registered()
        meanings = {
            "num_encoder_layers": self.num_hidden_layers,
            "num_decoder_layers": self.num_hidden_layers,
            "attention_key_channels": self.hidden_size,
            "attention_value_channels": self.hidden_size,
            "parameter_attention_heads": self.num_heads,
            "parameter_attention_key_channels": self.hidden_size,
            "parameter_attention_value_channels": self.hidden_size,
        }
        open_names = {n: v for n, v in meanings.items() if not getattr(self, n)}
        # A zero that the user gave is still an override of the set.
        given = [n for n in open_names if self.origins.get(n) == self.flag]
        zeros = dict.fromkeys(given, self.flag_as_zero)
        resolved = self.replace(**open_names)
        return replace(resolved, origins={**resolved.origins, **zeros}).with_origin(
            "derived"
        )

    def for_vocabularies(self, *, shared: bool) -> Self:
        """Return the hparams of a model with one vocabulary or two.

        Ids of two vocabularies mean different text, so they share no matrix. Differs
        from tensor2tensor (`modalities.py`), which unties if the sizes differ and lets
        two vocabularies of one size share.

        Args:
            shared: Whether both sides have one vocabulary.
        """
        if shared:
            return self
        return self.replace(shared_embedding_and_softmax_weights=False)

    def given(self) -> dict[str, Any]:
        """Return the overrides by name, as `parse` read them before `resolved`."""
        zeros = (n for n, at in self.origins.items() if at == self.flag_as_zero)
        return {
            name: value
            for name, value in (self.values() | dict.fromkeys(zeros, 0)).items()
            if self.origins.get(name) in (self.flag, self.flag_as_zero)
        }
