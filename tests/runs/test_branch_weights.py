from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.runs.branch_weights import (
    branch_monitor,
    branch_values,
    branched_layers,
    replace_branch_weights,
)
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.tiny_model import tiny_transformer
from tests.support.tiny_training import metrics_of


@pytest.fixture
def model():
    model = tiny_transformer(branched_attention="split")
    for n, (_, owners) in enumerate(branched_layers(model)):
        owners["kappa"].kappa.assign([0.1 * n, 1 - 0.1 * n])
        owners["alpha"].alpha.assign([0.5, 0.5])
    return model


@pytest.mark.parametrize("which", ["memory", "self"])
def test_the_branched_sublayer_is_found_at_both_places_in_the_decoder(which):
    model = tiny_transformer(branched_attention="shared", branched_in_decoder=which)
    layers = dict(branched_layers(model))
    expected = getattr(model.decoder.layers[0], f"{which}_attention")
    assert layers["decoder/layer_0"] == {"kappa": expected, "alpha": expected}


def test_kappa_and_alpha_may_belong_to_two_sublayers():
    model = tiny_transformer(branched_attention="split", branch_residual="shared")
    layer = model.decoder.layers[1]
    assert dict(branched_layers(model))["decoder/layer_1"] == {
        "kappa": layer.memory_attention,
        "alpha": layer.feed_forward,
    }
    replace_branch_weights(model, "uniform", seed=1)
    assert branch_values(model)[3] == {
        "name": "decoder layer 2",
        "kappa": pytest.approx([0.5, 0.5]),
        "alpha": pytest.approx([0.5, 0.5]),
    }


def test_the_monitor_writes_every_weight(model, tmp_path):
    log = MetricsLog(tmp_path)
    log.monitors.append(branch_monitor(model, log))
    log.scalars("eval", 6, {})
    log.scalars("train", 7, {})
    (line,) = metrics_of(tmp_path, "branches")
    assert line["step"] == 7
    assert line["decoder/layer_1/kappa/0"] == pytest.approx(0.3)
    assert line["decoder/layer_1/kappa/1"] == pytest.approx(0.7)
    weights = {name for name in line if "/" in name}
    assert len(weights) == 4 * 2 * 2


def test_a_layer_without_kappa_has_alpha_alone():
    model = tiny_transformer(branched_attention="split", branch_merged=True)
    replace_branch_weights(model, "uniform", seed=1)
    assert branch_values(model)[0] == {
        "name": "encoder layer 1",
        "alpha": pytest.approx([0.5, 0.5]),
    }


def test_the_values_of_every_layer_have_its_number(model):
    values = branch_values(model)
    assert [layer["name"] for layer in values] == [
        "encoder layer 1",
        "encoder layer 2",
        "decoder layer 1",
        "decoder layer 2",
    ]
    assert values[3]["kappa"] == pytest.approx([0.3, 0.7])
    assert values[3]["alpha"] == pytest.approx([0.5, 0.5])


def all_weights(model):
    return np.array(
        [
            [owners["kappa"].kappa.numpy(), owners["alpha"].alpha.numpy()]
            for _, owners in branched_layers(model)
        ]
    )


def test_random_weights_lie_on_the_simplex_and_follow_the_seed(model):
    draws = []
    for seed in (1, 1, 2):
        replace_branch_weights(model, "random", seed)
        draws.append(all_weights(model))
    np.testing.assert_allclose(draws[0].sum(axis=-1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.allclose(draws[0], draws[2])
    assert len(np.unique(draws[0])) == draws[0].size


def test_weights_before_a_softmax_are_replaced_by_logarithms():
    model = tiny_transformer(branched_attention="split", branch_normalization="softmax")
    random = tiny_transformer(branched_attention="split")
    for each in (model, random):
        replace_branch_weights(each, "random", seed=3)
    for one, other in zip(branch_values(model), branch_values(random), strict=True):
        assert one["kappa"] == pytest.approx(other["kappa"], rel=1e-5)
        assert one["alpha"] == pytest.approx(other["alpha"], rel=1e-5)
    replace_branch_weights(model, "uniform", seed=3)
    assert branch_values(model)[0]["alpha"] == pytest.approx([0.5, 0.5])


def test_learned_weights_stay_as_they_are(model):
    before = all_weights(model)
    replace_branch_weights(model, "learned", seed=1)
    np.testing.assert_array_equal(all_weights(model), before)


def test_an_unknown_mode_is_refused(model):
    with pytest.raises(ValueError, match="`mode` must be"):
        replace_branch_weights(model, "equal", seed=1)
