"""Count the parameters and operations of a `Transformer` without building it."""

from __future__ import annotations

from t2t_repro.choices import network_in_attention
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
    positions = 2 * h.max_length * d if h.pos == "emb" else 0
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
    return rows * hparams.hidden_size


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
    """Count the values of biases and other vectors, without normalizations."""
    layers = h.num_encoder_layers + h.num_decoder_layers
    attentions = h.num_encoder_layers + 2 * h.num_decoder_layers
    values = 0
    if h.ffn_layer == "dense_relu_dense":
        values += layers * (h.filter_size + h.hidden_size)
    if h.branched_attention != "none":
        values += layers * 2 * h.num_heads  # kappa and alpha
    if h.attention_compatibility == "additive":
        values += attentions * h.attention_key_channels
    return values


def _normalizations(h: HParams) -> int:
    """Count the layer normalizations."""
    layers = h.num_encoder_layers + h.num_decoder_layers
    count = 2 * h.num_encoder_layers + 3 * h.num_decoder_layers
    if network_in_attention(h.branched_attention, h.branch_residual):
        count -= layers
    if h.branched_attention != "none" and h.branch_residual == "inside":
        count += layers * (h.num_heads if h.branched_attention == "split" else 1)
    return count + (2 if h.layer_preprocess_sequence == "n" else 0)
