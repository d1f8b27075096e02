"""Parameters, operations and memory of a `Transformer`, without building it.

Of the memory of training on one device, weights, gradients and Adam's two moments are
exact. The activations are an estimate: the tensors that the backward pass reads,
counted layer by layer as in Korthikanti et al. 2022, "Reducing Activation Recomputation
in Large Transformer Models", section 4.1, for this encoder and decoder.
"""

from __future__ import annotations

import dataclasses

from t2t_repro.constants import network_in_attention
from t2t_repro.settings.hparams import HParams


def parameter_count(
    hparams: HParams, source_vocab_size: int, target_vocab_size: int
) -> int:
    """Count the parameters of `Transformer.from_hparams`.

    Args:
        hparams: Hparams of the model, with a built-in attention.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.

    Returns:
        Number of trained values.
    """
    h = hparams.resolved()
    d = h.hidden_size
    matrices = sum(_stack_matrices(h))
    norms = 2 * d * _normalizations(h)
    positions = 2 * h.max_length * d if h.pos in ("emb", "emb_large") else 0
    vocabulary = embedding_count(h, source_vocab_size, target_vocab_size)
    return matrices + _vectors(h) + norms + positions + vocabulary


def embedding_count(
    hparams: HParams, source_vocab_size: int, target_vocab_size: int
) -> int:
    """Count the parameters of the token embeddings and of the softmax.

    Args:
        hparams: Hparams of the model.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.
    """
    rows = (
        target_vocab_size
        if hparams.shared_embedding_and_softmax_weights
        else source_vocab_size + 2 * target_vocab_size
    )
    return rows * hparams.hidden_size + target_vocab_size * hparams.logit_bias


def wall_time_flops(hours: float, devices: int, flops_per_second: float) -> float:
    """Estimate the cost of training as the paper does (section 6.1, last paragraph).

    The estimate exceeds the operations of the model (`training_flops`), because no
    device is always busy.

    Args:
        hours: Time of training.
        devices: Number of devices.
        flops_per_second: Operations per second that one device sustains.

    Returns:
        Floating-point operations.
    """
    return hours * 3600 * devices * flops_per_second


def training_flops(
    hparams: HParams, target_vocab_size: int, tokens: int, length: int
) -> float:
    """Count the multiplications and additions of a training run.

    Every weight matrix is multiplied by every token of its side once forward and twice
    backward. The same holds for the products of attention; all sentences are assumed to
    have one length. R-Drop has two passes, as if from the first update on.
    Normalizations, softmaxes and the optimizer are not counted.

    Args:
        hparams: Hparams of the model, with a built-in attention.
        target_vocab_size: Size of the target vocabulary (V).
        tokens: Tokens per side over the whole training run.
        length: Length of a sentence in tokens.

    Returns:
        Floating-point operations.
    """
    h = hparams.resolved()
    softmax = h.hidden_size * target_vocab_size
    channels = h.attention_key_channels + h.attention_value_channels
    # A neighbourhood restricts only self-attention.
    seen = min(h.attention_neighbourhood or length, length)
    self_attentions = h.num_encoder_layers + h.num_decoder_layers
    positions = self_attentions * seen + h.num_decoder_layers * length
    multiplications = sum(_stack_matrices(h)) + softmax + positions * channels
    if h.branched_attention == "shared":
        # As in equation (6) of the Weighted Transformer, the network of a layer is
        # applied to every branch. BranchedAttention needs fewer multiplications.
        layers = h.num_encoder_layers + h.num_decoder_layers
        network = 2 * h.hidden_size * h.filter_size
        multiplications += layers * (h.num_heads - 1) * network
    passes = 2 if h.rdrop_weight else 1
    return passes * 3 * 2 * float(tokens) * multiplications


def _stack_matrices(h: HParams) -> tuple[int, int]:
    """Count the values in the matrices of all encoder and of all decoder layers."""
    d = h.hidden_size
    attention = 2 * d * (h.attention_key_channels + h.attention_value_channels)
    feed_forward = 2 * d * h.filter_size
    if h.ffn_layer == "parameter_attention":
        channels = (
            h.parameter_attention_key_channels + h.parameter_attention_value_channels
        )
        # query and output projections, and the rows of all heads
        feed_forward = (d + h.filter_size) * channels
    encoder = h.num_encoder_layers * (attention + feed_forward)
    decoder = h.num_decoder_layers * (2 * attention + feed_forward)
    return encoder, decoder


def _vectors(h: HParams) -> int:
    """Count the values of biases and other vectors of the layers.

    Normalizations and the softmax are not among them.
    """
    layers = h.num_encoder_layers + h.num_decoder_layers
    attentions = h.num_encoder_layers + 2 * h.num_decoder_layers
    values = 0
    if h.ffn_layer == "dense_relu_dense":
        values += layers * (h.filter_size + h.hidden_size)
    if h.branched_attention != "none":
        weights = 1 if h.branch_merged else 2  # alpha, and kappa
        values += layers * weights * h.num_heads
    if h.attention_compatibility == "additive":
        values += attentions * h.attention_key_channels
    if h.attention_bias:
        channels = 2 * h.attention_key_channels + h.attention_value_channels
        values += attentions * (channels + h.hidden_size)
    return values + h.hidden_size * h.encoder_input_bias


def _normalizations(h: HParams) -> int:
    """Count the layer normalizations."""
    layers = h.num_encoder_layers + h.num_decoder_layers
    count = 2 * h.num_encoder_layers + 3 * h.num_decoder_layers
    if network_in_attention(h.branched_attention, h.branch_residual):
        count -= layers
    if h.branched_attention != "none" and h.branch_residual == "inside":
        count += layers * (h.num_heads if h.branched_attention == "split" else 1)
    return count + (2 if h.layer_preprocess_sequence == "n" else 0)


FLOAT32 = 4  # bytes
# Of the logits: they and their gradient, both float32.
LOGIT_TENSORS = 2
# R-Drop keeps the distributions and the difference between the logits as well, which
# have half as many rows as the two passes: about two more of the size of the logits.
RDROP_LOGIT_TENSORS = 4
# Of a sublayer of any kind, each of the hidden size: the output that dropout reads, the
# sum with the residual, and the normalized sum.
SUBLAYER_TENSORS = 3


def optimizer_slots(hparams: HParams) -> int:
    """Return the float32 values that the optimizer keeps per weight.

    They are Adam's mean and variance and, if asked for, a moving average of the weight.
    """
    return 3 if hparams.ema_decay else 2


@dataclasses.dataclass(frozen=True)
class TrainingMemory:
    """Bytes on one device by part.

    Attributes:
        weights: Trained weights, float32.
        gradients: One gradient per weight, float32, and their sum over the
            micro-batches of an update if it has several.
        optimizer: Values of `optimizer_slots`, float32.
        activations: Tensors kept for the backward pass of one batch; an estimate.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def fixed(self) -> int:
        """Bytes that do not depend on the batch."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return self.fixed + self.activations


def training_memory(
    hparams: HParams,
    source_vocab_size: int,
    target_vocab_size: int,
    *,
    rows: int,
    length: int,
    micro_batches: int = 1,
) -> TrainingMemory:
    """Estimate the memory of an update on one device.

    Args:
        hparams: Hparams of the model, with a built-in attention.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.
        rows: Sentence pairs of a step on this device.
        length: Padded length of both sides, in tokens.
        micro_batches: Micro-batches of the update, whose gradients are added up.
    """
    weights = FLOAT32 * parameter_count(hparams, source_vocab_size, target_vocab_size)
    per_pair = activation_bytes(hparams, target_vocab_size, length)
    passes = 2 if hparams.rdrop_weight else 1
    return TrainingMemory(
        weights=weights,
        gradients=weights if micro_batches == 1 else 2 * weights,
        optimizer=optimizer_slots(hparams) * weights,
        activations=passes * rows * per_pair,
    )


def activation_bytes(hparams: HParams, target_vocab_size: int, length: int) -> int:
    """Estimate the bytes that one sentence pair keeps for the backward pass.

    With hidden size d, K channels of keys, V of values, filter size F, h heads and
    padded length n, in elements per token:

    - attention: 2 K + 2 V for queries, keys, values and the heads' outputs, and h n
      weights in float32, which dropout keeps a second time;
    - additive attention: K n more, for tanh(q + k);
    - feed-forward network: F, which dropout keeps a second time;
    - attention over F parameters in its place: K for its queries, V for its heads'
      outputs, and h F weights in float32, with its own K, V and h;
    - either of them: 3 d, see `SUBLAYER_TENSORS`;
    - embeddings: 2 d;
    - softmax: twice the target vocabulary in float32, and four times with R-Drop.

    Measured on a CPU (`benchmarks/training_memory.py`, transformer_tiny, 32 x 64
    tokens, vocabulary of 8,000): 0.99 times the estimate if XLA compiles the step, and
    1.2 times without XLA, which keeps more intermediate tensors; with dropout and
    R-Drop, 0.92 and 1.2 times.

    A Weighted Transformer is counted as a Transformer. Restricted attention in blocks
    has 3 blocks of r / 2 weights per head in place of n.

    Args:
        hparams: Hparams of the model.
        target_vocab_size: Size of the target vocabulary.
        length: Padded length of both sides, in tokens.
    """
    h = hparams.resolved()
    size = FLOAT32 if h.activation_dtype == "float32" else FLOAT32 // 2
    sublayer = SUBLAYER_TENSORS * h.hidden_size * size
    feed_forward = sublayer + _network_bytes(h, size)
    seen = length
    if h.self_attention_type == "restricted":
        seen = 3 * max(h.attention_neighbourhood // 2, 1)
    own = sublayer + _attention_bytes(h, seen, size)
    cross = sublayer + _attention_bytes(h, length, size)
    encoder = h.num_encoder_layers * (own + feed_forward)
    decoder = h.num_decoder_layers * (own + cross + feed_forward)
    embeddings = 2 * 2 * h.hidden_size * size
    kept = RDROP_LOGIT_TENSORS if h.rdrop_weight else LOGIT_TENSORS
    logits = kept * target_vocab_size * FLOAT32
    return length * (encoder + decoder + embeddings + logits)


def _network_bytes(h: HParams, size: int) -> int:
    """Return the bytes per token of the feed-forward network, or what replaces it."""
    if h.ffn_layer != "parameter_attention":
        return _copies_kept(h.relu_dropout) * h.filter_size * size
    channels = h.parameter_attention_key_channels + h.parameter_attention_value_channels
    weights = h.parameter_attention_heads * h.filter_size
    return channels * size + weights * FLOAT32


def _attention_bytes(h: HParams, keys: int, size: int) -> int:
    """Return the bytes per query of attention to this number of keys."""
    projections = 2 * (h.attention_key_channels + h.attention_value_channels) * size
    weights = h.num_heads * keys * (FLOAT32 + size * (h.attention_dropout > 0))
    if h.attention_compatibility == "additive":
        weights += keys * h.attention_key_channels * size
    return projections + weights


def _copies_kept(dropout: float) -> int:
    return 2 if dropout else 1


def fitting_batch_size(
    hparams: HParams,
    source_vocab_size: int,
    target_vocab_size: int,
    available: float,
) -> int:
    """Return the largest `batch_size` whose largest bucket fits into some memory.

    With `update_tokens`, an update may have several micro-batches, so the sum of their
    gradients is counted.

    Args:
        hparams: Hparams of the model.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.
        available: Bytes of memory.

    Returns:
        Tokens per replica: a multiple of `packed_length` or, without packing, of
        `max_length`; 0 if not even one row of that length fits.
    """
    length = hparams.packed_length or hparams.max_length
    one = training_memory(
        hparams,
        source_vocab_size,
        target_vocab_size,
        rows=1,
        length=length,
        micro_batches=2 if hparams.update_tokens else 1,
    )
    rows = int((available - one.fixed) // one.activations)
    return max(rows, 0) * length
