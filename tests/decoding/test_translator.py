from __future__ import annotations

import string
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.problem import Problem
from t2t_repro.decoding import translator
from t2t_repro.decoding.hypothesis import Hypothesis, rank
from t2t_repro.decoding.translator import Translator
from t2t_repro.models.transformer import Transformer
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from t2t_repro.text.tokenizer import Tokenizer
from tests.support.tiny_model import tiny_transformer

pytestmark = pytest.mark.usefixtures("shared_searches")
SYMBOLS = SymbolTokenizer(tuple(string.ascii_lowercase[:8]))
EXTRA_LENGTH = 4
LONGEST_PIECE = 11  # symbols that are translated at once, without EOS
SENTENCES = [
    "a b c",
    "",
    "h g f e d c b a",
    "a",
    "c b a",
    "  ",
    "b b b b b",
    "a b c",
]


@pytest.fixture(scope="module")
def model():
    # Its translations differ; most random models write nothing, or one text.
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return tiny_transformer(seed=12, norm="pre", **layers)


def make_translator(
    model,
    tokenizer: Tokenizer = SYMBOLS,
    problem: Problem | None = None,
    **options,
) -> Translator:
    hparams = DecodeHParams().replace(extra_length=EXTRA_LENGTH, **options)
    return Translator(model, tokenizer, tokenizer, hparams, LONGEST_PIECE + 1, problem)


@pytest.fixture(scope="module")
def beam_of_four(model) -> Translator:
    return make_translator(model)


@pytest.fixture(scope="module")
def all_of_four(model) -> Translator:
    return make_translator(model, return_beams=True)


def best_texts(hypotheses) -> list[str]:
    return [sentence[0].text for sentence in hypotheses]


def test_empty_lines_stay_empty(beam_of_four):
    blank = ["\u00a0", "\u3000", "\u200b \ufeff", "\u2060", "\xad\u200e"]
    lines = ["", "a", "   ", "b", *blank]
    assert beam_of_four.translate([]) == []
    found = beam_of_four.translate(lines)
    texts = best_texts(found)
    assert [bool(text) for text in texts] == [False, True, False, True, *[False] * 5]
    assert found[4:] == [[Hypothesis("", 0.0)]] * 5


def test_a_blank_prefix_forces_nothing(beam_of_four):
    found = beam_of_four.translate(["a"], prefixes=["\u200b"])
    assert found == beam_of_four.translate(["a"])


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_sentence_alone_equals_the_sentence_in_a_batch(model, beam_size):
    system = make_translator(model, beam_size=beam_size)
    together = system.translate(SENTENCES)
    assert len(set(best_texts(together))) > 4
    for sentence, expected in zip(SENTENCES, together, strict=True):
        ((hypothesis,),) = system.translate([sentence])
        assert hypothesis.text == expected[0].text
        assert hypothesis.score == pytest.approx(expected[0].score, abs=1e-5)


def test_batches_in_parallel_give_the_translations_of_one_after_the_other(
    model, monkeypatch
):
    lines = [line for line in SENTENCES for _ in range(5)]
    small = make_translator(model, batch_size=12, beam_size=2)
    one_by_one = small.translate(lines)
    counts = []
    monkeypatch.setattr(translator, "num_parallel_batches", lambda: 3)

    parallel = small.translate(lines, counts.append)

    assert parallel == one_by_one
    assert sum(counts) == len(lines)


def test_a_translation_ends_at_the_limit_of_its_own_sentence():
    size = SYMBOLS.vocab_size
    options = {"source_vocab_size": size, "target_vocab_size": size}
    unending = tiny_transformer(seed=0, tie_embeddings=False, **options)
    unending.softmax.table.assign(3.0 * unending.softmax.table.numpy())
    found = make_translator(unending, beam_size=1).translate(
        ["a b c", "h g f e d", "a"]
    )
    # the source and its EOS, and EXTRA_LENGTH more
    assert [len(text.split()) for text in best_texts(found)] == [8, 10, 6]


def test_progress_counts_sentences_and_not_their_pieces(model):
    """The long sentence is cut into three pieces, and two have no tokens."""
    lines = ["a b", "a b c d e f g h " * 3, "", "c d", "  "]
    counts = []
    # Batches of one piece.
    make_translator(model, batch_size=1).translate(lines, counts.append)
    assert counts == [0, 0, 1, 1, 1, 2]


def test_an_over_long_line_is_translated_in_pieces(beam_of_four):
    pieces = ["a b c d e f g h a b c", "h g f e d c b a h g f", "c d"]
    found = beam_of_four.translate(["a b", " ".join(pieces)])
    expected = [sentence[0] for sentence in beam_of_four.translate(pieces)]
    assert found[1][0].text == " ".join(hypothesis.text for hypothesis in expected)
    assert found[1][0].score == pytest.approx(sum(h.score for h in expected), abs=1e-4)
    assert [best.pieces for (best,) in found] == [1, 3]
    # The score of a sum of pieces is divided by no one length penalty.
    first, second = (rank(best, beam_of_four.hparams)[0] for best in found)
    assert first.log_prob is not None
    assert second.log_prob is None


def test_cut_lines_are_counted_or_reported_as_asked(beam_of_four, caplog):
    lines = [" ".join("a" * 24), "a b", "", " ".join("b" * 12)]
    assert beam_of_four.count_cut(lines) == 2
    beam_of_four.translate(lines, reports_cuts=False)
    assert not caplog.records


def test_return_beams_gives_the_n_best(all_of_four, beam_of_four):
    n_best = all_of_four.translate(SENTENCES)
    for hypotheses, best in zip(n_best, beam_of_four.translate(SENTENCES), strict=True):
        assert hypotheses[0].ids == best[0].ids
        # A search for the best one gathers rows earlier, which rounds differently.
        assert hypotheses[0].score == pytest.approx(best[0].score, abs=1e-5)
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
    assert [len(hypotheses) for hypotheses in n_best] == [4, 1, 4, 4, 4, 1, 4, 4]


def test_new_weights_are_used_at_once(model, beam_of_four):
    changing = Transformer.from_config(model.get_config())
    system = make_translator(changing)
    before = best_texts(system.translate(SENTENCES))
    changing.set_weights([variable.numpy() for variable in model.weights])
    after = best_texts(system.translate(SENTENCES))
    assert after == best_texts(beam_of_four.translate(SENTENCES))
    assert after != before


def test_any_iterable_of_sentences_is_translated(beam_of_four):
    sentences = ["a b", "c d e", ""]
    expected = best_texts(beam_of_four.translate(sentences))
    for given in (iter(sentences), tuple(sentences), np.array(sentences)):
        assert best_texts(beam_of_four.translate(given)) == expected
    assert best_texts(beam_of_four.stream(iter(sentences))) == expected


def test_lines_before_a_very_long_one_do_not_wait_for_it(beam_of_four, model):
    small = make_translator(model, batch_size=12)
    long = " ".join("abc" * 16)  # 48 tokens are more than four batches
    lines = ["a b", "c", long, "d", "", long, "a c"]
    counts = []
    stream = small.stream(lines, counts.append)
    first = [next(stream), next(stream)]
    assert sum(counts) == 2
    after = [next(stream), next(stream), next(stream)]
    assert sum(counts) == 5
    together = beam_of_four.translate(lines)
    assert best_texts([*first, *after, *stream]) == best_texts(together)
    assert sum(counts) == len(lines)


@pytest.mark.parametrize("callers", [1, 2])
def test_the_first_run_of_a_search_is_alone_whoever_calls_it(monkeypatch, callers):
    running, counts, done = [], [], []

    def search(inputs, per_row):
        assert done or not running
        running.append(None)
        counts.append(len(running))
        time.sleep(0.02)
        running.pop()
        done.append(None)
        return tf.ones((len(inputs), 1, 1), tf.int32), tf.zeros((len(inputs), 1))

    monkeypatch.setattr(translator, "_traced_search", lambda *_: search)
    monkeypatch.setattr(translator, "num_parallel_batches", lambda: 2)
    small = make_translator("model", batch_size=4)
    with ThreadPoolExecutor(callers) as threads:
        [*threads.map(small.translate, [["a b"] * 6] * callers)]
    assert len(counts) == 6 * callers
    assert max(counts) > 1


def test_settings_outside_the_graph_share_a_search_and_few_searches_are_kept(
    monkeypatch,
):
    def search(inputs, per_row):
        return tf.ones((len(inputs), 1, 1), tf.int32), tf.zeros((len(inputs), 1))

    made = []
    trace = lambda _, hparams, *__: made.append(hparams.alpha) or search  # noqa: E731
    monkeypatch.setattr(translator, "_traced_search", trace)
    monkeypatch.setattr(translator, "MAX_SEARCHES", 2)
    searches = translator.TracedSearches("model")

    def translate(**settings):
        hparams = DecodeHParams(beam_size=1, sampling_method="random", **settings)
        Translator(
            "model", SYMBOLS, SYMBOLS, hparams, LONGEST_PIECE, searches=searches
        ).translate(["a"])

    for seed in range(3):
        translate(alpha=0.1, sampling_seed=seed, batch_size=100 + seed)
    assert made == [0.1]
    for alpha in (0.2, 0.1, 0.3, 0.1, 0.2):
        translate(alpha=alpha)
    assert made == [0.1, 0.2, 0.3, 0.2]
