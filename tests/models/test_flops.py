"""The formula of operations agrees with the products of the traced training step."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.constants import TARGETS
from t2t_repro.models.estimates import training_flops
from t2t_repro.models.transformer import Transformer
from t2t_repro.training.losses import token_losses

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


def counted_flops(graph: tf.Graph) -> int:
    """Return two operations for every multiplication of a graph of static shapes."""
    return sum(2 * _multiplications(op) for op in graph.get_operations())


def _multiplications(op: tf.Operation) -> int:
    if op.type == "MatMul":
        rows, columns = op.outputs[0].shape.as_list()
        left = op.inputs[0].shape.as_list()
        inner = left[0] if op.get_attr("transpose_a") else left[1]
        return rows * columns * inner
    if op.type in ("BatchMatMulV2", "BatchMatMul"):
        left = op.inputs[0].shape.as_list()
        inner = left[-2] if op.get_attr("adj_x") else left[-1]
        return math.prod(op.outputs[0].shape.as_list()) * inner
    if op.type == "Einsum":
        equation = op.get_attr("equation").decode()
        sizes: dict[str, int] = {}
        terms = equation.partition("->")[0].split(",")
        for term, tensor in zip(terms, op.inputs, strict=True):
            shape = tensor.shape.as_list()
            leading = "XYZ"[: len(shape) - len(term.replace("...", ""))]
            letters = term.replace("...", leading)
            sizes |= dict(zip(letters, shape, strict=True))
        return math.prod(sizes.values())
    return 0


def traced_flops(hparams) -> int:
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
