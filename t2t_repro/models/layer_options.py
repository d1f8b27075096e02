"""Turn hparams into the options of the layers."""

from __future__ import annotations

from t2t_repro.choices import WIRINGS
from t2t_repro.layers.options import LayerOptions
from t2t_repro.settings.hparams import HParams


def layer_options(h: HParams) -> LayerOptions:
    """Make the options of all layers.

    Args:
        h: Resolved hparams.

    Returns:
        The options of the encoder's and the decoder's layers.
    """
    return LayerOptions(
        hidden_size=h.hidden_size,
        filter_size=h.filter_size,
        num_heads=h.num_heads,
        key_channels=h.attention_key_channels,
        value_channels=h.attention_value_channels,
        norm=WIRINGS[h.layer_preprocess_sequence].norm,
        norm_epsilon=h.norm_epsilon,
        residual_dropout=h.layer_prepostprocess_dropout,
        attention_dropout=h.attention_dropout,
        relu_dropout=h.relu_dropout,
        compatibility=h.attention_compatibility,
        self_attention=h.self_attention_type,
        neighbourhood=h.attention_neighbourhood,
        feed_forward=h.ffn_layer,
        parameter_attention_heads=h.parameter_attention_heads,
        parameter_attention_key_channels=h.parameter_attention_key_channels,
        parameter_attention_value_channels=h.parameter_attention_value_channels,
        branched=h.branched_attention,
        branched_in_decoder=h.branched_in_decoder,
        branch_normalization=h.branch_normalization,
        branch_top_k=h.branch_top_k,
        branch_residual=h.branch_residual,
        branch_gain=h.branch_gain,
        branch_weights_init=h.branch_weights_init,
    )
