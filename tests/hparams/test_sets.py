"""The registered sets: their values, peaks of the learning rate, and parameters."""

from __future__ import annotations

import inspect
import json

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.errors import UsageError
from t2t_repro.models.estimates import parameter_count
from tests.golden import make_values

GOLDEN = json.loads(make_values.HPARAMS.read_text(encoding="utf-8"))
# Set -> its parameters at 37,000 subwords, counted by hand.
PARAMETERS = {
    "transformer_base": 63_045_632,
    "transformer_big": 214_171_648,
    # "192 additional weights": kappa and alpha of 8 branches in 12 layers
    "weighted_transformer_base": 63_045_632 + 192,
    "weighted_transformer_big": 214_171_648 + 12 * 2 * 16,
    # No biases where the feed-forward network has 2,560 per layer.
    "transformer_base_aop1": 63_045_632 - 12 * 2_560,
    "transformer_base_c_n2": 33_644_544,
    "transformer_base_c_d1024": 163_815_424,
    "transformer_base_e_learned": 63_045_632 + 2 * 256 * 512,
}
# tensor2tensor's name -> ours, as rows of Table 3 are named.
ALIASES = {
    "transformer_big_dr1": "transformer_big_enfr",
    "transformer_big_dr3": "transformer_big",
    "transformer_parameter_attention_a": "transformer_base_aop1",
    **{
        f"transformer_{theirs}": f"transformer_base_{ours}"
        for theirs, ours in (
            *(("dr0", "d_dr0"), ("dr2", "d_dr2"), ("ls0", "d_ls0"), ("ls2", "d_ls2")),
            *(("h1", "a_h1"), ("h4", "a_h4"), ("h16", "a_h16"), ("h32", "a_h32")),
            *(("ff1024", "c_dff1024"), ("ff4096", "c_dff4096")),
            *(("hs256", "c_d256"), ("hs1024", "c_d1024")),
            *(("k128", "b_dk16"), ("k256", "b_dk32")),
            *(("l2", "c_n2"), ("l4", "c_n4"), ("l8", "c_n8")),
        )
    },
}


def test_a_registered_set_never_changes_its_meaning():
    """For a new set, run `python tests/golden/make_values.py`."""
    assert make_values.all_sets() == GOLDEN


@pytest.mark.parametrize("name", sorted(GOLDEN.keys() - ALIASES.keys()))
def test_every_set_has_a_card_with_its_lines(name):
    catalogue.load()
    lines = (inspect.getdoc(registry.hparams_sets.get(name)) or "").splitlines()
    for label in ("Source", "Published", "Measured", "Command"):
        assert len([x for x in lines if x.startswith(f"{label}: ")]) == 1, label


def test_eight_replicas_of_the_papers_sets_make_the_papers_batch():
    assert 8 * catalogue.hparams("transformer_big").batch_size == 25_000


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_set_has_its_parameters(name):
    """Of estimates against built models, see tests/models/test_sizes.py."""
    found = parameter_count(catalogue.hparams(name), 37_000, 37_000)
    assert found == PARAMETERS[name]


@pytest.mark.parametrize("alias", ALIASES)
def test_tensor2tensors_names_are_accepted_if_they_mean_the_same(alias):
    assert catalogue.hparams(alias) == catalogue.hparams(ALIASES[alias])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("transformer_parameter_attention_b", "transformer_base_aop2"),
        ("transformer_l10", "num_hidden_layers=10"),
        ("transformer_base_v2", "transformer_base_v3"),
    ],
)
def test_other_names_are_refused_with_an_explanation(name, answer):
    catalogue.load()
    with pytest.raises(UsageError, match=answer):
        registry.hparams_sets.get(name)
