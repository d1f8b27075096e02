"""Every decoding hparam reaches the search; all values of a case differ."""

from __future__ import annotations

import pytest

from t2t_repro.decoding import translate
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.decoding.next_tokens import Constraints, Sampling
from t2t_repro.decoding.translate import search_translations
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.parsing.bracket_grammar import BracketGrammar
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.tiny_model import padded, tiny_transformer

INPUTS = padded([[3, 4, 5, 1], [6, 1]])


@pytest.fixture
def searched(monkeypatch):
    """Record the arguments of the beam search, which is not run."""
    calls = []
    monkeypatch.setattr(translate, "beam_search", lambda *args: calls.append(args))
    return calls


@pytest.mark.parametrize(
    ("changes", "num_hypotheses"),
    [
        ({"beam_size": 3, "alpha": 0.9, "extra_length": 7}, 1),
        ({"beam_size": 5, "alpha": 0.2, "extra_length": 2, "return_beams": True}, 5),
        ({"beam_size": 6, "alpha": 0.4, "prefer_unrepaired": True}, 6),
    ],
)
def test_hparams_become_the_settings_of_the_search(searched, changes, num_hypotheses):
    hparams = DecodeHParams().replace(**changes)
    search_translations(tiny_transformer(), INPUTS, hparams)
    ((*_, max_lengths, max_length, options, per_row),) = searched
    assert per_row == {}
    assert options == BeamSearchOptions(
        beam_size=changes["beam_size"],
        alpha=changes["alpha"],
        num_hypotheses=num_hypotheses,
        static_shapes=False,
    )
    extra = changes.get("extra_length", 50)
    assert max_lengths.numpy().tolist() == [4 + extra, 2 + extra]
    assert int(max_length) == 4 + extra


def test_optional_features_become_settings_of_the_search(searched):
    hparams = DecodeHParams(
        beam_size=3, min_length=2, no_repeat_ngram_size=4, coverage_penalty=0.7
    )
    search_translations(tiny_transformer(), INPUTS, hparams)
    ((_, cache, *_, options, per_row),) = searched
    assert options.constraints == Constraints(min_length=2, no_repeat_ngram_size=4)
    assert options.coverage_penalty == 0.7
    assert options.sampling is None
    # Padding counts as covered.
    first, second = per_row["coverage"].numpy()
    assert first.tolist() == [[0, 0, 0, 0]] * 3
    assert second.tolist() == [[0, 0, 1, 1]] * 3
    assert cache["attention"].shape == (2, 3, 4)


def test_a_grammar_becomes_a_constraint_of_the_search(searched):
    grammar = BracketGrammar(((3, 4),), ((5,),), (0,) * 256)
    rows = {"word_kinds": "kinds of the words"}
    hparams = DecodeHParams(beam_size=3, constrain="tree", word_cost=1.3)
    search_translations(tiny_transformer(), INPUTS, hparams, rows, grammar)
    ((*_, options, per_row),) = searched
    assert options.constraints == Constraints(grammar=grammar)
    assert options.word_cost == 1.3
    assert per_row == rows


@pytest.mark.parametrize(("constrain", "beams"), [("none", 6), ("tree", 1)])
def test_inside_a_grammar_one_hypothesis_is_enough(constrain, beams):
    hparams = DecodeHParams(beam_size=6, prefer_unrepaired=True, constrain=constrain)
    assert hparams.num_hypotheses == beams


@pytest.mark.parametrize("constrain", ["none", "tree"])
def test_minimum_bayes_risk_needs_the_whole_beam(constrain):
    hparams = DecodeHParams(beam_size=6, mbr_scale=0.5, constrain=constrain)
    assert hparams.num_hypotheses == 6


def test_a_model_is_not_exported_with_a_choice_that_needs_text():
    with pytest.raises(UsageError, match="`t2t export` does not read it"):
        DecodeHParams().parse_for("export", "mbr_scale=1")


def test_sampling_hparams_become_settings_of_the_search(searched):
    hparams = DecodeHParams(
        beam_size=1,
        sampling_method="random",
        sampling_temp=0.6,
        sampling_keep_top_k=7,
        sampling_keep_top_p=0.9,
        sampling_seed=5,
    )
    rows = {"uniform": "random numbers", "prefixes": "prefixes"}
    search_translations(tiny_transformer(), INPUTS, hparams, rows)
    ((*_, options, per_row),) = searched
    assert options.sampling == Sampling(temperature=0.6, top_k=7, top_p=0.9)
    assert options.constraints is None
    assert per_row == rows


def test_only_one_sampled_translation_is_possible():
    with pytest.raises(UserError, match="beam_size=4, expected beam_size=1"):
        DecodeHParams(sampling_method="random")


def test_a_limit_of_zero_tokens_is_refused():
    with pytest.raises(UserError, match="sampling_keep_top_k: received 0"):
        DecodeHParams(sampling_keep_top_k=0)


def test_a_word_does_not_have_a_negative_cost():
    with pytest.raises(UserError, match="word_cost: received -"):
        DecodeHParams(constrain="tree", word_cost=-0.5)


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


def test_a_model_is_not_exported_with_random_translations():
    given = "beam_size=1,sampling_method=random"
    with pytest.raises(UsageError, match="`t2t export` does not read it"):
        DecodeHParams().parse_for("export", given)
