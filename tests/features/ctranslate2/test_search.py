"""CTranslate2 translates as the trained model does, with the same limits."""

from __future__ import annotations

import pytest

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.translator import Translator
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.tiny_model import tiny_transformer

pytest.importorskip("ctranslate2", reason="needs the package ctranslate2")

from t2t_repro.features.ctranslate2.ctranslate2_spec import model_spec, write_model
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    CTranslate2Translator,
    load_engine,
)

pytestmark = pytest.mark.usefixtures("shared_searches")
DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])
MAX_INPUT_LENGTH, EXTRA_LENGTH, POSITIONS = 9, 4, 20
SENTENCES = [
    "1 2 3",
    "",
    "7",
    "0 1 2 3 4 5 6 7",
    "5 5 unheard 5",
    " \t ",
    "0 1 2 3 4 5 6 7 0",
    "3 1 4 1 5 2 6 5 3 5 0 7 7 3 2 3 4 6 2 6 4",
]


def options(**settings):
    hparams = DecodeHParams(extra_length=EXTRA_LENGTH, batch_size=64, **settings)
    return DIGITS, DIGITS, hparams, MAX_INPUT_LENGTH


BEAM = {"beam_size": 3, "return_beams": True}


def translated_by_ctranslate2(model, folder, **settings):
    folder.mkdir()
    write_model(model_spec(model, DIGITS, DIGITS, POSITIONS), str(folder), "float32")
    engine = load_engine(folder)
    made = CTranslate2Translator(engine, *options(**settings), positions=POSITIONS)
    return made.translate(SENTENCES)


def both(model, folder, **settings):
    ours = Translator(model, *options(**settings)).translate(SENTENCES)
    return ours, translated_by_ctranslate2(model, folder, **settings)


@pytest.fixture(scope="module")
def lively():
    # Its translations differ; most random models write nothing, or one text.
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return tiny_transformer(seed=12, norm="pre", tie_embeddings=False, **layers)


@pytest.fixture
def changing(lively):
    weights = lively.get_weights()
    yield lively
    lively.set_weights(weights)


def prefer(model, token, strength):
    """Make a model's logit of a token large, or small if the strength is negative."""
    # With a small gain, every output of the last normalization is near its bias.
    normalization = model.decoder.final_normalization
    normalization.gamma.assign(0.1 * normalization.gamma)
    direction = normalization.beta.numpy()
    table = model.softmax.table.numpy()
    table[token] = strength * direction
    model.softmax.table.assign(table)


def test_a_translation_that_reaches_its_limit_is_cut_there(changing, tmp_path):
    prefer(changing, EOS_ID, -50)
    ours, theirs = both(changing, tmp_path / "model", beam_size=1)
    lengths = [len(best.ids) for (best,) in theirs]
    assert lengths == [len(best.ids) for (best,) in ours]
    assert lengths[0] == 3 + 1 + EXTRA_LENGTH


def test_the_empty_translation_is_allowed(changing, tmp_path):
    prefer(changing, EOS_ID, 50)
    for settings in ({"beam_size": 1}, BEAM):
        folder = tmp_path / str(settings["beam_size"])
        ours, theirs = both(changing, folder, **settings)
        assert ours[0][0].ids == theirs[0][0].ids == (EOS_ID,)
        assert theirs[0][0].text == ""


@pytest.mark.parametrize("settings", [{"beam_size": 1}, BEAM], ids=str)
def test_pad_is_never_written_even_if_it_is_the_most_probable(
    changing, tmp_path, settings
):
    prefer(changing, PAD_ID, 50)
    ours, theirs = both(changing, tmp_path / "model", **settings)
    assert all(PAD_ID not in h.ids for found in theirs for h in found)
    if settings != BEAM:
        assert [best.ids for (best,) in ours] == [best.ids for (best,) in theirs]


def test_scores_are_log_probabilities_over_our_length_penalty(tmp_path):
    # The scores of our search count the probability of PAD.
    # With two layers, some of its translations end before their limit.
    model = tiny_transformer(seed=12, norm="pre", tie_embeddings=False)
    prefer(model, PAD_ID, -50)
    ours, theirs = both(model, tmp_path / "model", beam_size=3, alpha=1.3)
    compared = [
        (a.score, b.score)
        for (a,), (b,) in zip(ours, theirs, strict=True)
        if a.ids == b.ids and a.ids
    ]
    assert len(compared) >= 3
    for a, b in compared:
        assert a == pytest.approx(b, abs=1e-4)


def test_a_beam_larger_than_the_vocabulary_has_an_answer(lively, tmp_path):
    theirs = translated_by_ctranslate2(lively, tmp_path / "model", beam_size=21)
    assert [bool(best.ids) for (best,) in theirs] == [
        bool(sentence.strip()) for sentence in SENTENCES
    ]


def test_the_best_of_a_beam_is_mostly_that_of_our_search(lively, tmp_path):
    ours, theirs = both(lively, tmp_path / "model", beam_size=4, return_beams=True)
    equal = [a[0].ids == b[0].ids for a, b in zip(ours, theirs, strict=True)]
    assert sum(equal) >= len(SENTENCES) - 2
    for found in theirs:
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
