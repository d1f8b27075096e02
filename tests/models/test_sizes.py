"""Parameters are those of built models; some operations are counted by hand.

tests/models/test_flops.py counts those of a traced training step.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from t2t_repro import catalogue
from t2t_repro.constants import SELF_ATTENTIONS
from t2t_repro.errors import UserError
from t2t_repro.models.estimates import parameter_count, training_flops, wall_time_flops
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.hparams import HParams

VOCAB_SIZE, TOKENS, LENGTH = 10, 7, 5
SIZES = {
    "hidden_size": 4,
    "filter_size": 6,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "attention_key_channels": 6,
    "attention_value_channels": 2,
}


def hparams(**changes: Any) -> HParams:
    return catalogue.hparams("transformer_base").replace(**changes)


def small(**changes: Any) -> HParams:
    return hparams(**(SIZES | changes))


class Watched:
    """Hparams that remember which of them are read."""

    def __init__(self, given: HParams) -> None:
        self.given, self.read = given.resolved(), set()

    def resolved(self) -> Watched:
        return self

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self.given, name)


def other_values(name: str, value: Any) -> tuple[Any, ...]:
    """Return values of a hparam unlike the given one; some may not be accepted."""
    about = HParams.about(name)
    if name == "self_attention_type":
        choices = tuple(SELF_ATTENTIONS)
    else:
        choices = (False, True) if about.kind is bool else about.choices
    if choices:
        return tuple(choice for choice in choices if choice != value)
    return (0.25,) if about.kind is float else (2 * value or 1, value + 2, 1)


BASES = [
    {},
    {"self_attention_type": "restricted", "attention_neighbourhood": 3},
    {
        "ffn_layer": "parameter_attention",
        "parameter_attention_key_channels": 2,
        "parameter_attention_value_channels": 10,
    },
    {"branched_attention": "split"},
]
COUNTERS = TokenCounters((TokenCounter((3,)),), (TokenCounter((3,)),))


def built(given: HParams) -> Transformer:
    return Transformer.from_hparams(given, VOCAB_SIZE, VOCAB_SIZE, COUNTERS)


def read_by_the_model() -> list[str]:
    watched = Watched(small())
    Transformer.from_hparams.__func__(dict, watched, 1, 1, COUNTERS)
    return sorted(watched.read & {*HParams.names()})


def variations(name: str) -> list[HParams]:
    """Return hparams with other values of one in the first base that accepts any."""
    found = []
    for base in (small(**changes) for changes in BASES):
        for value in other_values(name, getattr(base, name)):
            with contextlib.suppress(UserError):
                found.append(base.replace(**{name: value}))
        found = [given for given in found if name not in given.ineffective_settings()]
        if found:
            return found if isinstance(getattr(base, name), str) else found[:1]
    raise AssertionError(f"no base in which {name} has an effect")


# Values that are refused alone, or that count only together.
TOGETHER = [
    {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},
    {"self_attention_type": "restricted_masked", "attention_neighbourhood": 3},
    {"attention_compatibility": "additive", "attention_key_channels": 2},
    {"branched_attention": "shared", "branch_residual": "inside"},
    {"branched_attention": "shared", "branch_residual": "per_branch"},
    {"pos": "emb", "max_length": 24},
]
IN_PAIRS = {"layer_preprocess_sequence", "self_attention_type"}


@pytest.mark.parametrize(
    "given",
    [
        *(pytest.param(small(**changes), id=str(changes)) for changes in TOGETHER),
        *(
            pytest.param(given, id=f"{name}={getattr(given, name)}")
            for name in read_by_the_model()
            if name not in IN_PAIRS
            for given in variations(name)
        ),
    ],
)
def test_a_built_model_has_the_counted_parameters(given):
    """A new hparam of the model, or a new choice of one, is counted here by itself."""
    count = built(given).count_params()
    assert parameter_count(given, VOCAB_SIZE, VOCAB_SIZE) == count


CHANNELS = 6 + 2


def flops(**changes) -> float:
    return training_flops(small(**changes), VOCAB_SIZE, TOKENS, LENGTH)


def test_rdrop_has_two_passes():
    assert flops(rdrop_weight=5.0) == 2 * flops()


def test_a_neighbourhood_narrows_self_attention_and_not_cross_attention():
    restricted = {"self_attention_type": "restricted"}
    fewer = 3 * 2 * TOKENS * (1 + 2) * (LENGTH - 3) * CHANNELS
    assert flops(attention_neighbourhood=3, **restricted) == flops() - fewer
    assert flops(attention_neighbourhood=31, **restricted) == flops()


def test_a_shared_network_is_applied_to_every_branch():
    network = 2 * 4 * 6
    more = 3 * 2 * TOKENS * 3 * (2 - 1) * network
    assert flops(branched_attention="shared") == flops() + more
    assert flops(branched_attention="split") == flops()


def test_wall_time_is_in_hours():
    assert wall_time_flops(2.0, 3, 5.0) == 2 * 3600 * 3 * 5
