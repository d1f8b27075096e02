"""Parameters and work of a `Transformer`, counted by formula and not by building it."""

from __future__ import annotations

from t2t_repro.settings.hparams import HParams


def parameter_count(
    hparams: HParams, source_vocab_size: int, target_vocab_size: int
) -> int:
    """Count the parameters of `Transformer.from_hparams`.

    Args:
        hparams: A hparams set.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.

    Returns:
        The number of trained values.
    """
    h = hparams.resolved()
    d = h.hidden_size
    matrices = sum(_stack_matrices(h))
    norms = 2 * d * _normalizations(h)
    vocabulary = (
        target_vocab_size
        if h.shared_embedding_and_softmax_weights
        else source_vocab_size + 2 * target_vocab_size
    )
    positions = 2 * h.max_length if h.pos == "emb" else 0
    return matrices + _vectors(h) + norms + (vocabulary + positions) * d


def wall_time_flops(hours: float, devices: int, flops_per_second: float) -> float:
    """Estimate the cost of a training as the paper does (section 6.1, last paragraph).

    Time, times the number of devices, times what each sustains: more than what the
    model multiplies (`training_flops`), as no device is always busy.

    Args:
        hours: Of training.
        devices: That were used.
        flops_per_second: That one sustains.
    """
    return hours * 3600 * devices * flops_per_second


def training_flops(
    hparams: HParams, target_vocab_size: int, tokens: int, length: int
) -> float:
    """Count the multiplications and additions of training on some tokens.

    Every weight matrix meets every token of its side once forward and twice backward,
    and so do the products of attention, whose sentences are taken to be of one length.
    Normalisations, softmaxes and the optimizer are left out.

    Args:
        hparams: A hparams set.
        target_vocab_size: Size of the target vocabulary (V).
        tokens: Of each side, over the whole training.
        length: Of a sentence, in tokens.

    Returns:
        Floating-point operations.
    """
    h = hparams.resolved()
    softmax = h.hidden_size * target_vocab_size
    channels = h.attention_key_channels + h.attention_value_channels
    # A neighbourhood is of self-attention alone.
    seen = min(h.attention_neighbourhood or length, length)
    self_attentions = h.num_encoder_layers + h.num_decoder_layers
    positions = self_attentions * seen + h.num_decoder_layers * length
    multiplications = sum(_stack_matrices(h)) + softmax + positions * channels
    if h.branched_attention == "shared":
        # The one network of a layer is applied to every branch, as equation (6) of the
        # Weighted Transformer has it; BranchedAttention needs fewer multiplications.
        layers = h.num_encoder_layers + h.num_decoder_layers
        network = 2 * h.hidden_size * h.filter_size
        multiplications += layers * (h.num_heads - 1) * network
    return 3 * 2 * float(tokens) * multiplications


def _stack_matrices(h: HParams) -> tuple[int, int]:
    """Count the values in the matrices of the encoder's layers and the decoder's."""
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
    """Count biases and what else is no matrix, normalisations left out."""
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
    branched = h.branched_attention != "none"
    encoder = h.num_encoder_layers * (1 if branched else 2)
    decoder = h.num_decoder_layers * (2 if branched else 3)
    final = 2 if h.layer_preprocess_sequence == "n" else 0
    return encoder + decoder + final
