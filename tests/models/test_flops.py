"""The formula of operations agrees with the products of the traced training step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.constants import TARGETS
from t2t_repro.models.estimates import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import token_losses
from tests.support.matmul_count import counted_flops

VOCAB_SIZE, ROWS, LENGTH = 13, 3, 7
SIZES = {
    "hidden_size": 8,
    "filter_size": 20,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "attention_key_channels": 6,
    "attention_value_channels": 10,
}
VARIANTS = {
    "base": {},
    "pre-norm, parameter attention": {
        "layer_preprocess_sequence": "n",
        "layer_postprocess_sequence": "da",
        "ffn_layer": "parameter_attention",
    },
}


def traced_flops(hparams) -> int:
    """Count the products of a forward and a backward pass."""
    model = Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE)
    weights = [variable.value for variable in model.trainable_variables]

    @tf.function
    def gradients(batch):
        with tf.GradientTape() as tape:
            loss, _ = token_losses(batch[TARGETS], model(batch, training=True), 0.1)
        return tape.gradient(loss, weights)

    side = tf.TensorSpec((ROWS, LENGTH), tf.int32)
    batch = {"inputs": side, "targets": side}
    return counted_flops(gradients.get_concrete_function(batch).graph)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_formula_counts_every_product_of_the_graph(variant):
    hparams = catalogue.hparams("transformer_base").replace(
        **SIZES, **VARIANTS[variant]
    )
    formula = training_flops(hparams, VOCAB_SIZE, ROWS * LENGTH, LENGTH)
    assert traced_flops(hparams) == formula
