"""Ids, feature names, and the values of options and which of them fit together.

Imports nothing of Keras, so that hparams can be parsed before it is loaded. A `Literal`
is a choice whose values hparams and layers share. A mapping translates the value of an
hparam, which is tensor2tensor's, to the value that the layers use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

# tensor2tensor data_generators/text_encoder.py (PAD_ID, EOS_ID); the unknown symbol's
# id is this project's, the next free one.
PAD_ID = 0
EOS_ID = 1
UNK_ID = 2

# Padding of the kinds of words that a `TargetGrammar` tells apart.
NO_WORD = -1

INPUTS = "inputs"
TARGETS = "targets"

# Where each token of a packed row belongs; tensor2tensor `generator_utils.py:
# pack_examples`. Segments are counted from 1 (0 is padding), positions from 0.
INPUTS_SEGMENTATION = "inputs_segmentation"
INPUTS_POSITION = "inputs_position"
TARGETS_SEGMENTATION = "targets_segmentation"
TARGETS_POSITION = "targets_position"

# Kappa and alpha of a Weighted Transformer at test time (section 4.4 of its paper).
BRANCH_WEIGHT_MODES = ("learned", "random", "uniform")

Compatibility = Literal["scaled_dot_product", "dot_product", "additive"]
Norm = Literal["post", "pre"]
FeedForwardKind = Literal["dense_relu_dense", "parameter_attention"]
BranchNetwork = Literal["split", "shared"]
Branched = Literal["none", "split", "shared"]
BranchedInDecoder = Literal["memory", "self"]
BranchNormalization = Literal["simplex", "softmax"]
BranchResidual = Literal["around", "inside", "per_branch", "shared"]
BranchGain = Literal["none", "unit", "initial"]
BranchWeightsInit = Literal["random", "near_uniform", "uniform"]
Activation = Literal["relu", "swish", "gelu"]
DecoderStart = Literal["zeros", "pad"]
SinusoidForm = Literal["interleaved", "concatenated", "halves"]
PositionKind = Literal[
    "interleaved", "concatenated", "halves", "learned", "learned_large", "none"
]
ColumnOrder = Literal["reversed", "rolled"]


# sacreBLEU's tokenizers (`BLEU.TOKENIZERS`); auto = the one that fits the text
AUTO_TOKENIZER = "auto"
BLEU_TOKENIZERS = (
    AUTO_TOKENIZER,
    "13a",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "char",
    "flores101",
    "flores200",
    "spBLEU-1K",
    "spm",
    "none",
)


class Wiring(NamedTuple):
    """The order of normalization, dropout and addition around a sublayer.

    Attributes:
        postprocess: Value of the hparam `layer_postprocess_sequence`.
        norm: Value of the layers' option `norm`.
    """

    postprocess: str
    norm: Norm


class BuiltIn(NamedTuple):
    """An attention of this package.

    Attributes:
        module: Module that defines the class, for listings.
        summary: One line for listings.
    """

    module: str
    summary: str


# hparam `layer_preprocess_sequence` -> post-norm, as in the paper, or tensor2tensor's
# later pre-norm.
WIRINGS = {"none": Wiring("dan", "post"), "n": Wiring("da", "pre")}

# hparam `pos` -> kind of `layers.Positions`
POSITIONS: dict[str, PositionKind] = {
    "timing": "interleaved",
    "timing_concat": "concatenated",
    "timing_halves": "halves",
    "emb": "learned",
    "emb_large": "learned_large",
    "none": "none",
}
SINUSOIDS = tuple(
    name for name, kind in POSITIONS.items() if kind in get_args(SinusoidForm)
)

# factors of the hparam `learning_rate_schedule`
LEARNING_RATE_FACTORS = (
    "constant",
    "linear_warmup",
    "rsqrt_decay",
    "rsqrt_hidden_size",
    "linear_decay",
)

# hparam `activation_dtype` -> Keras dtype policy
DTYPE_POLICIES = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}

# hparam `self_attention_type` -> where its class is; `layers/sublayers.py` has the
# class. A user's package can add others with `registry.register_attention`.
SELF_ATTENTIONS = {
    "dot_product": BuiltIn(
        "t2t_repro.layers.attention", "Attention to all positions (the paper's)."
    ),
    "restricted": BuiltIn(
        "t2t_repro.layers.attention",
        "Attention to a neighbourhood, computed in blocks.",
    ),
    "restricted_masked": BuiltIn(
        "t2t_repro.layers.attention",
        "Attention to a neighbourhood, computed under a mask, for comparison.",
    ),
}


def check_choice(name: str, value: object, choice: Any) -> None:
    """Check an argument of a layer.

    Args:
        name: Name of the argument.
        value: Value of the argument.
        choice: A `Literal` of the accepted values.

    Raises:
        ValueError: If the value is not accepted.
    """
    if value not in get_args(choice):
        raise ValueError(
            f"`{name}` must be one of {get_args(choice)}. Received: {value!r}"
        )


def network_in_attention(network: str, residual: BranchResidual) -> bool:
    """Return whether branched attention contains the feed-forward network.

    Args:
        network: Form of the feed-forward network, "none", "split" or "shared".
        residual: Place of residual connections and normalizations.
    """
    return network != "none" and residual in ("around", "inside")


def layer_contradictions(options: Any) -> Iterator[str]:
    """Yield a message for every combination of options that no layer can have.

    Args:
        options: An `HParams` or a `LayerStructure`, which have these options.
    """
    o = options
    if o.self_attention_type == "dot_product" and o.attention_neighbourhood:
        yield (
            "attention_neighbourhood needs self_attention_type=restricted: received "
            f"attention_neighbourhood={o.attention_neighbourhood}, "
            f"self_attention_type={o.self_attention_type}."
        )
    if o.branched_attention == "none":
        return
    branched = f"received branched_attention={o.branched_attention}"
    if o.self_attention_type != "dot_product":
        yield (
            f"branched_attention needs self_attention_type=dot_product: {branched}, "
            f"self_attention_type={o.self_attention_type}."
        )
    if o.attention_bias or o.ffn_activation != "relu":
        yield (
            "branched_attention has no biases of attention and needs ReLU: "
            f"{branched}, attention_bias={o.attention_bias}, "
            f"ffn_activation={o.ffn_activation}, "
            "expected attention_bias=False, ffn_activation=relu."
        )
    if o.branched_attention == "split" and o.filter_size % o.num_heads:
        yield (
            "num_heads must divide filter_size if branches split it: received "
            f"num_heads={o.num_heads}, filter_size={o.filter_size}."
        )
    placed = f"{branched}, branch_residual={o.branch_residual}"
    if o.branched_attention == "shared" and o.branch_residual == "shared":
        yield (
            "one network after one residual connection gives every branch the same "
            "output, so alpha has no effect; split the network, or choose another "
            f"residual connection: {placed}."
        )
    is_average = (o.branched_attention, o.branch_residual) == ("shared", "per_branch")
    if is_average and o.branch_gain != "none":
        yield (
            "one network applied to the residual stream of every branch is an average "
            "of whole networks already, which a gain multiplies by the number of "
            "branches; split the network, or choose no gain: "
            f"{placed}, branch_gain={o.branch_gain}."
        )
