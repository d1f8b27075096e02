from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import BranchedAttention, FeedForward, MultiHeadAttention
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)
X, MEMORY = RANDOM.normal(size=(2, 2, 5, 8)).astype("float32")
HEADS, VALUES = 2, 6
ATTENTION = {
    "hidden_size": 8,
    "num_heads": HEADS,
    "attention_key_channels": 4,
    "attention_value_channels": VALUES,
}


def branched(**options):
    layer = BranchedAttention(**(ATTENTION | {"filter_size": 12} | options))
    layer.build()
    randomize(layer, seed=1)
    layer.kappa.assign([0.3, 0.7])
    layer.alpha.assign([0.8, 0.2])
    return layer


def heads_of(layer):
    """Return head_i W_i^O per branch, `[num_heads, batch, length, hidden_size]`."""
    key, value = layer.project_memory(MEMORY)
    weights = np.asarray(layer.weights_of(X, key))
    heads = np.einsum("bnts,bnsh->nbth", weights, np.asarray(value))
    output = np.asarray(layer.output_projection.kernel)
    depth = VALUES // HEADS
    return [heads[i] @ output[i * depth : (i + 1) * depth] for i in range(HEADS)]


def network(layer, i, x):
    """Compute FFN_i by equation (4)."""
    i = 0 if layer.branched_attention == "shared" else i
    first, bias, second = (
        np.asarray(w)[i]
        for w in (layer.filter_kernel, layer.filter_bias, layer.feed_forward_kernel)
    )
    hidden = np.maximum(x @ first + bias, 0.0)
    return hidden @ second + np.asarray(layer.feed_forward_bias)


@pytest.mark.parametrize("form", ["split", "shared"])
def test_it_equals_equations_5_to_7_written_out(form):
    layer = branched(branched_attention=form)
    kappa, alpha = np.array([0.3, 0.7]), np.array([0.8, 0.2])
    expected = sum(
        alpha[i] * network(layer, i, kappa[i] * head)
        for i, head in enumerate(heads_of(layer))
    )
    np.testing.assert_allclose(layer(X, MEMORY), expected, rtol=1e-4, atol=1e-5)


def test_without_weights_the_branches_before_the_network_are_multi_head_attention():
    layer = branched(branched_attention="shared")
    plain = MultiHeadAttention(**ATTENTION)
    plain.build()
    plain.set_weights([np.asarray(w) for w in layer.weights if w.name == "kernel"])
    np.testing.assert_allclose(
        sum(heads_of(layer)), plain(X, MEMORY), rtol=1e-4, atol=1e-5
    )


def test_a_linear_network_of_unweighted_branches_applies_to_the_whole_attention():
    """Then sum_i FFN(head_i W_i^O) is FFN(multi-head attention) plus more biases."""
    layer = branched(branched_attention="shared")
    layer.kappa.assign(np.ones(HEADS))
    layer.alpha.assign(np.ones(HEADS))
    # The bias exceeds any activation, so that ReLU changes nothing.
    layer.filter_bias.assign(np.full((1, layer.filter_size), 50.0))
    plain = MultiHeadAttention(**ATTENTION)
    plain.build()
    plain.set_weights([np.asarray(w) for w in layer.weights if w.name == "kernel"])
    biases = (HEADS - 1) * network(layer, 0, np.zeros(layer.hidden_size))
    expected = network(layer, 0, np.asarray(plain(X, MEMORY))) + biases
    np.testing.assert_allclose(layer(X, MEMORY), expected, rtol=1e-4, atol=1e-3)


def test_one_branch_is_the_network_after_the_attention():
    one = {"num_heads": 1, "attention_key_channels": 8, "attention_value_channels": 8}
    layer = BranchedAttention(**(ATTENTION | one), filter_size=12)
    layer.build()
    randomize(layer, seed=2)
    layer.kappa.assign([1.0])
    layer.alpha.assign([1.0])
    plain = MultiHeadAttention(**(ATTENTION | one))
    plain.build()
    plain.set_weights([np.asarray(w) for w in layer.weights if w.name == "kernel"])
    feed_forward = FeedForward(hidden_size=8, filter_size=12)
    feed_forward.build()
    feed_forward.set_weights(
        [
            np.asarray(layer.filter_kernel)[0],
            np.asarray(layer.filter_bias)[0],
            np.asarray(layer.feed_forward_kernel)[0],
            np.asarray(layer.feed_forward_bias),
        ]
    )
    np.testing.assert_allclose(
        layer(X, MEMORY), feed_forward(plain(X, MEMORY)), rtol=1e-4, atol=1e-5
    )


def test_softmax_normalises_any_learned_weights():
    layer = branched(branch_normalization="softmax")
    layer.kappa.assign([0.0, np.log(3.0)])
    kappa, alpha = layer.branch_weights().values()
    np.testing.assert_allclose(kappa, [0.25, 0.75], rtol=1e-6)
    assert np.asarray(alpha).sum() == pytest.approx(1.0, abs=1e-6)
    assert layer.kappa.constraint is None


def test_gating_sums_only_the_branches_with_the_largest_alphas():
    layer = branched(branch_top_k=1)
    np.testing.assert_allclose(layer.branch_weights()["alpha"], [0.8, 0.0], rtol=1e-6)
    expected = 0.8 * network(layer, 0, 0.3 * heads_of(layer)[0])
    np.testing.assert_allclose(layer(X, MEMORY), expected, rtol=1e-4, atol=1e-5)


def test_gating_sums_top_k_branches_if_alphas_are_equal():
    layer = branched(branch_top_k=1)
    layer.alpha.assign(np.full(HEADS, 1 / HEADS))
    assert np.count_nonzero(layer.branch_weights()["alpha"]) == 1
