"""Parameters and operations, counted by hand for a small model."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.models.estimates import parameter_count, training_flops, wall_time_flops
from t2t_repro.settings.hparams import HParams

VOCAB_SIZE, TOKENS, LENGTH = 10, 7, 5
# Attention has 2 * 4 * (6 + 2) = 64 values, the network 2 * 4 * 6 = 48.
MATRICES = 1 * (64 + 48) + 2 * (2 * 64 + 48)
SOFTMAX = 4 * VOCAB_SIZE
CHANNELS = 6 + 2
SELF_ATTENTION = (1 + 2) * LENGTH * CHANNELS
CROSS_ATTENTION = 2 * LENGTH * CHANNELS


def small(**changes) -> HParams:
    sizes = {
        "hidden_size": 4,
        "filter_size": 6,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "attention_key_channels": 6,
        "attention_value_channels": 2,
    }
    return catalogue.hparams("transformer_base").replace(**(sizes | changes))


def flops(**changes) -> float:
    return training_flops(small(**changes), VOCAB_SIZE, TOKENS, LENGTH)


def test_training_is_a_forward_and_two_backward_products_of_two_operations():
    multiplications = MATRICES + SOFTMAX + SELF_ATTENTION + CROSS_ATTENTION
    assert multiplications == 464 + 40 + 120 + 80
    assert flops() == 3 * 2 * TOKENS * multiplications == 29_568


def test_rdrop_has_two_passes():
    assert flops(rdrop_weight=5.0) == 2 * flops()


def test_a_neighbourhood_narrows_self_attention_and_not_cross_attention():
    restricted = {"self_attention_type": "restricted"}
    fewer = 3 * 2 * TOKENS * (1 + 2) * (LENGTH - 3) * CHANNELS
    assert flops(attention_neighbourhood=3, **restricted) == flops() - fewer
    assert flops(attention_neighbourhood=31, **restricted) == flops()


def test_a_shared_network_is_applied_to_every_branch():
    more = 3 * 2 * TOKENS * 3 * (2 - 1) * 48
    assert flops(branched_attention="shared") == flops() + more
    assert flops(branched_attention="split") == flops()


def test_attention_over_parameters_has_rows_and_two_projections():
    # Per layer: (4 + 6) * (2 + 10) in place of the network's 48.
    changes = {
        "ffn_layer": "parameter_attention",
        "parameter_attention_key_channels": 2,
        "parameter_attention_value_channels": 10,
    }
    assert flops(**changes) == flops() + 3 * 2 * TOKENS * 3 * (120 - 48)


def test_parameters_are_matrices_biases_normalizations_and_the_vocabulary():
    # Biases of 3 networks, 2 + 2 * 3 normalizations, one shared matrix.
    assert parameter_count(small(), 10, 10) == MATRICES + 3 * 10 + 8 * 8 + 40
    untied = small(shared_embedding_and_softmax_weights=False)
    assert parameter_count(untied, 9, 10) == MATRICES + 3 * 10 + 8 * 8 + 4 * (9 + 20)


@pytest.mark.parametrize("branched", ["split", "shared"])
def test_branches_add_two_weights_per_head_and_remove_a_normalization(branched):
    found = parameter_count(small(branched_attention=branched), 10, 10)
    assert found == parameter_count(small(), 10, 10) + 3 * 2 * 2 - 3 * 8


def test_wall_time_is_in_hours():
    assert wall_time_flops(2.0, 3, 5.0) == 2 * 3600 * 3 * 5
