"""Every reading of the Weighted Transformer equals its equations in NumPy."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from t2t_repro.layers import BranchedAttention, DecoderLayer, EncoderLayer
from tests.support import branch_probe
from tests.support.branch_probe import CASES, MEMORY, SIZES, X, made, weights_of

TWO_RESIDUALS = ("per_branch", "shared")
RANDOM = np.random.default_rng(9)


@pytest.fixture(scope="module")
def on_tensorflow() -> dict[str, np.ndarray]:
    return branch_probe.results()


# tests/models/test_jax.py compares JAX.
@pytest.mark.parametrize("name", CASES)
def test_both_layers_equal_the_numpy_reference(on_tensorflow, name):
    for layer, expected in branch_probe.reference_outputs(name).items():
        np.testing.assert_allclose(on_tensorflow[layer], expected, rtol=1e-5, atol=1e-5)


# The first position sees only itself.
@pytest.mark.filterwarnings("ignore:You are using a softmax:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_step_per_position_equals_the_whole_sequence(name):
    layer = made(DecoderLayer, name, 3)
    x, memory = X[:1, :3].astype("float32"), MEMORY[:1].astype("float32")
    cache, length = layer.initial_cache(memory), x.shape[1]
    steps = []
    for position in range(length):
        history = np.ones((1, 1, 1, position + 1), bool)
        now = x[:, position : position + 1]
        y, cache = layer.step(now, cache, position, history, append=True)
        steps.append(ops.convert_to_numpy(y))
    found = np.concatenate(steps, axis=1)
    np.testing.assert_allclose(found, layer(x, memory), rtol=1e-5, atol=1e-5)


def plain_and_twin(layer_class, **changes):
    """Make a Transformer's layer, and one with "shared" residuals and its weights."""
    plain = layer_class(**SIZES, **changes)
    options = {
        **SIZES,
        **changes,
        "branched_attention": "split",
        "branch_residual": "shared",
    }
    twin = layer_class(**options, branch_weights_init="uniform")
    unit = layer_class(**options, branch_weights_init="uniform", branch_gain="unit")
    for layer in (plain, twin, unit):
        layer.build()
    branch_probe.randomize(plain, 5)
    for layer in (twin, unit):
        weights = weights_of(plain)
        for weight in layer.weights:
            if weight.name not in ("kappa", "alpha"):
                weight.assign(weights.pop(weight.path.partition("/")[2], None))
        assert not weights
    return plain, twin, unit


@pytest.mark.parametrize("in_decoder", ["memory", "self"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer])
def test_shared_residuals_without_weights_are_the_transformer(
    layer_class, norm, in_decoder
):
    """As the paper says of kappa = alpha = 1; and of 1 / M with unit gain."""
    changes = {"norm": norm, "branched_in_decoder": in_decoder}
    plain, twin, unit = plain_and_twin(layer_class, **changes)
    for weight in twin.weights:
        if weight.name in ("kappa", "alpha"):
            weight.assign(np.ones(3))
    inputs = (X, MEMORY) if layer_class is DecoderLayer else (X,)
    expected = plain(*inputs)
    np.testing.assert_allclose(twin(*inputs), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(unit(*inputs), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer])
def test_with_shared_residuals_any_weights_are_a_transformers(layer_class):
    """kappa and alpha scale the rows of W^O and W_2, which a Transformer can learn."""
    plain, _, unit = plain_and_twin(layer_class)
    kernels = {weight.path.partition("/")[2]: weight for weight in plain.weights}
    for weight in unit.weights:
        if weight.name in ("kappa", "alpha"):
            own = RANDOM.dirichlet(np.ones(3))
            weight.assign(own)
            sublayer = weight.path.partition("/")[2].rpartition("/")[0]
            kernel = kernels[f"{sublayer}/output/kernel"]
            per_row = np.repeat(3 * own, kernel.shape[0] // 3)
            kernel.assign(kernel.numpy() * per_row[:, None])
    inputs = (X, MEMORY) if layer_class is DecoderLayer else (X,)
    np.testing.assert_allclose(unit(*inputs), plain(*inputs), rtol=1e-5, atol=1e-5)


def test_networks_with_one_input_begin_as_the_transformers_network():
    """The same random numbers, in the same order."""
    layers = []
    for options in (SIZES, CASES["shared"]):
        keras.utils.set_random_seed(7)
        layer = EncoderLayer(**options)
        layer.build()
        layers.append(weights_of(layer))
    plain, twin = layers
    for path in ("self_attention/output/kernel", "feed_forward/filter/kernel"):
        limit = np.abs(plain[path]).max()
        assert np.abs(twin[path]).max() == pytest.approx(limit, rel=0.2)


@pytest.mark.parametrize("residual", ["around", "inside", *TWO_RESIDUALS])
def test_an_initial_gain_multiplies_the_output_matrices_by_the_branches(residual):
    spreads = []
    for gain in ("none", "initial"):
        options = CASES[residual] | {"branch_gain": gain, "hidden_size": 64}
        options |= {
            "attention_key_channels": 48,
            "attention_value_channels": 48,
            "filter_size": 96,
        }
        layer = EncoderLayer(**options)
        layer.build()
        spreads.append({k: w.std() for k, w in weights_of(layer).items()})
    plain, larger = spreads
    outputs = {"self_attention/output/kernel"} | {
        path
        for path in plain
        if path.endswith(("feed_forward_kernel", "feed_forward/output/kernel"))
    }
    assert len(outputs) == 2
    for path in plain:
        factor = 3 if path in outputs else 1
        if path.endswith("kernel"):
            assert larger[path] == pytest.approx(factor * plain[path], rel=0.1), path


@pytest.mark.parametrize("normalization", ["simplex", "softmax"])
@pytest.mark.parametrize("residual", ["around", "inside", *TWO_RESIDUALS])
@pytest.mark.parametrize(
    ("init", "spread"),
    [("uniform", (0, 1e-6)), ("near_uniform", (0.04, 0.2)), ("random", (0.35, 1.0))],
)
def test_branch_weights_begin_on_the_simplex_with_their_spread(
    residual, init, spread, normalization
):
    keras.utils.set_random_seed(3)
    options = CASES[residual] | {
        "num_heads": 16,
        "attention_key_channels": 16,
        "attention_value_channels": 16,
        "filter_size": 32,
        "branch_weights_init": init,
        "branch_normalization": normalization,
    }
    layer = EncoderLayer(**options)
    layer.build()
    owner = layer.self_attention if layer.feed_forward is None else layer.feed_forward
    kappa, alpha = (
        ops.convert_to_numpy(part.branch_weights()[name])
        for part, name in ((layer.self_attention, "kappa"), (owner, "alpha"))
    )
    for weights in (kappa, alpha):
        assert weights.sum() == pytest.approx(1.0, abs=1e-5)
        assert weights.mean() == pytest.approx(1 / 16)
        assert spread[0] <= 16 * weights.std() <= spread[1]
    assert init == "uniform" or not np.allclose(kappa, alpha)


def branched(**options) -> BranchedAttention:
    layer = BranchedAttention(hidden_size=8, num_heads=2, filter_size=12, **options)
    layer.build()
    return layer


def test_softmax_makes_shares_of_weights_that_nothing_constrains():
    layer = branched(branch_normalization="softmax")
    layer.kappa.assign([0.0, np.log(3.0)])
    np.testing.assert_allclose(layer.branch_weights()["kappa"], [0.25, 0.75], rtol=1e-6)
    assert layer.kappa.constraint is None


def test_gating_sums_top_k_branches_if_alphas_are_equal():
    layer = branched(branch_top_k=1)
    layer.alpha.assign([0.5, 0.5])
    assert np.count_nonzero(layer.branch_weights()["alpha"]) == 1
