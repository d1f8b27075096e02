"""Every value of every set, written a second time: a set never changes its meaning."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.training.optimizer import make_schedule

PAPER_BASE = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
    "num_encoder_layers": 0,
    "num_decoder_layers": 0,
    "attention_key_channels": 0,
    "attention_value_channels": 0,
    "attention_compatibility": "scaled_dot_product",
    "self_attention_type": "dot_product",
    "attention_neighbourhood": 0,
    "ffn_layer": "dense_relu_dense",
    "parameter_attention_heads": 0,
    "parameter_attention_key_channels": 0,
    "parameter_attention_value_channels": 0,
    "branched_attention": "none",
    "branched_in_decoder": "memory",
    "branch_normalization": "simplex",
    "branch_top_k": 0,
    "packed_length": 0,
    "packed_source_length": 0,
    "update_tokens": 0,
    "branch_residual": "around",
    "branch_gain": "none",
    "branch_weights_init": "random",
    "branch_learning_rate_constant": 1.0,
    "branch_learning_rate_warmup_steps": 400,
    "branch_frozen_after_steps": 0,
    "pos": "timing",
    "layer_preprocess_sequence": "none",
    "layer_postprocess_sequence": "dan",
    "norm_epsilon": 1e-6,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "symbol_dropout": 0.0,
    "word_positions": False,
    "depth_positions": False,
    "learning_rate_decay_steps": 5_000,
    "label_smoothing": 0.1,
    "rdrop_weight": 0.0,
    "rdrop_after_steps": 0,
    "shared_embedding_and_softmax_weights": True,
    "activation_dtype": "float32",
    "batch_size": 3125,
    "max_length": 256,
    "min_length_bucket": 8,
    "length_bucket_step": 1.1,
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.98,
    "optimizer_adam_epsilon": 1e-9,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_constant": 1.0,
    "learning_rate_warmup_steps": 4000,
    "clip_grad_norm": 0.0,
    "ema_decay": 0.0,
}
BIG = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16}
V3 = {
    "pos": "timing_concat",
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "batch_size": 4096,
    "optimizer_adam_beta2": 0.997,
    "learning_rate_constant": 2.0,
    "learning_rate_warmup_steps": 8000,
}
# Set -> differences from the paper's base.
SETS = {
    "transformer_base": {},
    "transformer_big": {**BIG, "layer_prepostprocess_dropout": 0.3},
    "transformer_big_enfr": BIG,
    "transformer_base_v3": V3,
    "transformer_big_v3": {
        **V3,
        **BIG,
        "layer_prepostprocess_dropout": 0.3,
        "batch_size": 2048,
    },
    "transformer_tiny": {
        "max_length": 64,
        "length_bucket_step": 1.6,
        "hidden_size": 128,
        "filter_size": 512,
        "num_heads": 4,
        "num_hidden_layers": 2,
        "layer_prepostprocess_dropout": 0.0,
        "batch_size": 2048,
        "min_length_bucket": 10,
        "learning_rate_constant": 0.5,
        "learning_rate_warmup_steps": 400,
    },
    "transformer_multi30k": {
        "max_length": 64,
        "hidden_size": 256,
        "filter_size": 512,
        "num_heads": 4,
        "num_hidden_layers": 3,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_prepostprocess_dropout": 0.25,
        "label_smoothing": 0.2,
        "activation_dtype": "bfloat16",
        "batch_size": 2048,
        "packed_length": 64,
        "min_length_bucket": 12,
        "length_bucket_step": 1.25,
        "learning_rate_schedule": (
            "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size*linear_decay"
        ),
        "learning_rate_warmup_steps": 1000,
        "learning_rate_decay_steps": 8600,
    },
}
# Of the paper's and of tensor2tensor's sets: reference values worked out by hand.
PEAKS = {
    "transformer_base": 6.99e-4,
    "transformer_big": 4.94e-4,
    "transformer_base_v3": 9.88e-4,
    "transformer_big_v3": 6.99e-4,
    "transformer_tiny": 2.21e-3,
    "transformer_multi30k": 1.98e-3,
}


@pytest.mark.parametrize("name", SETS)
def test_a_registered_set_never_changes_its_meaning(name):
    assert catalogue.hparams(name).values() == {**PAPER_BASE, **SETS[name]}


@pytest.mark.parametrize("name", PEAKS)
def test_the_learning_rate_peaks_where_the_card_says(name):
    hparams = catalogue.hparams(name)
    warmup = hparams.learning_rate_warmup_steps
    schedule = make_schedule(hparams, train_steps=20_000)
    before, peak, after = (float(schedule(warmup - 1 + n)) for n in (-1, 0, 1))
    assert peak == pytest.approx(PEAKS[name], rel=5e-3)
    assert max(before, after) < peak


def test_eight_replicas_of_the_papers_sets_make_the_papers_batch():
    assert 8 * catalogue.hparams("transformer_big").batch_size == 25_000
