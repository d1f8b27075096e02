"""Every decoding hparam reaches the search; all values of a case differ."""

from __future__ import annotations

import pytest

from t2t_repro.decoding import translator
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.decoding.next_tokens import Constraints, Sampling
from t2t_repro.decoding.translator import search_translations
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.parsing.bracket_grammar import BracketGrammar
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.tiny_model import padded, tiny_transformer

INPUTS = padded([[3, 4, 5, 1], [6, 1]])


@pytest.fixture
def searched(monkeypatch):
    calls = []
    monkeypatch.setattr(translator, "beam_search", lambda *args: calls.append(args))
    return calls


GRAMMAR = BracketGrammar(((3, 4),), ((5,),), (0,) * 256)
SAMPLED = {
    "beam_size": 1,
    "sampling_method": "random",
    "sampling_temp": 0.6,
    "sampling_keep_top_k": 7,
    "sampling_keep_top_p": 0.9,
    "sampling_seed": 5,
}


@pytest.mark.parametrize(
    ("settings", "grammar", "expected"),
    [
        ({"beam_size": 3, "alpha": 0.9, "extra_length": 7}, None, {}),
        (
            {"beam_size": 5, "alpha": 0.2, "extra_length": 2, "return_beams": True},
            None,
            {"num_hypotheses": 5},
        ),
        ({"beam_size": 6, "prefer_unrepaired": True}, None, {"num_hypotheses": 6}),
        ({"beam_size": 6, "mbr_scale": 0.5}, None, {"num_hypotheses": 6}),
        (
            {"beam_size": 3, "min_length": 2, "no_repeat_ngram_size": 4},
            None,
            {"constraints": Constraints(min_length=2, no_repeat_ngram_size=4)},
        ),
        (
            # Inside a grammar, hardly anything needs repair: one is enough.
            {
                "beam_size": 3,
                "constrain": "tree",
                "word_cost": 1.3,
                "prefer_unrepaired": True,
            },
            GRAMMAR,
            {"constraints": Constraints(grammar=GRAMMAR), "word_cost": 1.3},
        ),
        (
            {"beam_size": 6, "mbr_scale": 0.5, "constrain": "tree"},
            GRAMMAR,
            {"constraints": Constraints(grammar=GRAMMAR), "num_hypotheses": 6},
        ),
        (SAMPLED, None, {"sampling": Sampling(temperature=0.6, top_k=7, top_p=0.9)}),
    ],
)
def test_hparams_become_the_settings_of_the_search(
    searched, settings, grammar, expected
):
    rows = {"prefixes": "the prefixes"}
    hparams = DecodeHParams(**settings)
    search_translations(tiny_transformer(), INPUTS, hparams, rows, grammar)
    ((*_, max_lengths, max_length, options, per_row),) = searched
    assert per_row == rows
    defaults = {"num_hypotheses": 1, "static_shapes": False}
    assert options == BeamSearchOptions(
        beam_size=hparams.beam_size, alpha=hparams.alpha, **(defaults | expected)
    )
    extra = settings.get("extra_length", 50)
    assert max_lengths.numpy().tolist() == [4 + extra, 2 + extra]
    assert int(max_length) == 4 + extra


def test_a_coverage_penalty_needs_attention_and_counts_padding_as_covered(searched):
    hparams = DecodeHParams(beam_size=3, coverage_penalty=0.7)
    search_translations(tiny_transformer(), INPUTS, hparams)
    ((_, cache, *_, options, per_row),) = searched
    assert options.coverage_penalty == 0.7
    first, second = per_row["coverage"].numpy()
    assert first.tolist() == [[0, 0, 0, 0]] * 3
    assert second.tolist() == [[0, 0, 1, 1]] * 3
    assert cache["attention"].shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling_method": "random"}, "beam_size=4, expected beam_size=1"),
        ({"sampling_keep_top_k": 0}, "sampling_keep_top_k: received 0"),
        ({"constrain": "tree", "word_cost": -0.5}, "word_cost: received -"),
    ],
)
def test_settings_that_no_search_can_follow_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        DecodeHParams(**settings)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("sampling_temp=0.5", "sampling_temp"),
        ("sampling_keep_top_k=5", "sampling_keep_top_k"),
        ("sampling_keep_top_p=0.5", "sampling_keep_top_p"),
        ("sampling_seed=5", "sampling_seed"),
        ("constrain=tree,prefer_unrepaired=true", "prefer_unrepaired"),
        (
            "beam_size=1,constrain=tree,sampling_method=random,word_cost=2.5",
            "word_cost",
        ),
        ("beam_size=1,coverage_penalty=0.2", "coverage_penalty"),
    ],
)
def test_settings_without_effect_are_refused(given, name):
    with pytest.raises(UsageError, match=f"{name} would have no effect"):
        DecodeHParams().parse(given)
