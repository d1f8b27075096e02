"""Every decoding hparam reaches the search; all values of a case differ."""

from __future__ import annotations

import pytest

from t2t_repro.decoding import translate
from t2t_repro.decoding.beam_search import BeamSearchOptions
from t2t_repro.decoding.translate import search_translations
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
    ((*_, max_lengths, max_length, options),) = searched
    assert options == BeamSearchOptions(
        beam_size=changes["beam_size"],
        alpha=changes["alpha"],
        num_hypotheses=num_hypotheses,
        static_shapes=False,
    )
    extra = changes.get("extra_length", 50)
    assert max_lengths.numpy().tolist() == [4 + extra, 2 + extra]
    assert int(max_length) == 4 + extra
