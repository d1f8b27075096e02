"""Whole translations inside a grammar, by a model that has learned nothing."""

from __future__ import annotations

import pytest
import tensorflow as tf

from t2t_repro.constants import EOS_ID
from t2t_repro.data.problem import Output
from t2t_repro.decoding.source_pieces import cut, with_words
from t2t_repro.decoding.translator import Translator
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.bracket_grammar import tree_grammar
from t2t_repro.features.parsing.tree_symbols import from_symbols
from t2t_repro.features.parsing.trees import treebank_words
from t2t_repro.features.saved_model.served_translator import (
    ServedTranslator,
    cut_into_pieces,
    kinds_of_pieces,
    truncate,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SentencePieceTokenizer, SymbolTokenizer, train_sentencepiece
from t2t_repro.text.tokenizer import split_symbols
from tests.support.given_problem import problem_with
from tests.support.tiny_model import tiny_transformer

pytestmark = pytest.mark.usefixtures("shared_searches")
WORDS = SymbolTokenizer(("The", "cat", "saw", "7", "-LRB-"))
SYMBOLS = SymbolTokenizer(
    ("(NP", "(S", "t/DT", "c/NN", ")NP", "c/VB", "s/VB", "0/CD", "-/-", ")S", "(VP")
)
GRAMMAR = tree_grammar(SYMBOLS.pieces(range(SYMBOLS.vocab_size)), "initial")
SENTENCES = [
    "The cat saw 7",
    "",
    "cat",
    "saw saw The 7 7 -LRB- cat",
    "-LRB- cat",
    "The cat saw 7 -LRB- cat 7 The The saw cat saw 7 -LRB- The saw 7 cat cat saw",
]
LONGEST = 9  # tokens of a source with EOS; the last sentence has three pieces


@pytest.fixture(scope="module")
def model():
    return tiny_transformer(
        2,
        source_vocab_size=WORDS.vocab_size,
        target_vocab_size=SYMBOLS.vocab_size,
        tie_embeddings=False,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )


def postprocess(source, written):
    repaired = from_symbols(
        split_symbols(written), treebank_words(source), leaves="initial"
    )
    return Output(written, repaired.repairs)


TREES = problem_with(postprocess=postprocess, target_grammar=lambda tokenizer: GRAMMAR)


BEAM = {"beam_size": 3, "extra_length": 12, "word_cost": 1.5}


def translator(model, **hparams) -> Translator:
    settings = DecodeHParams(constrain="tree").replace(**hparams)
    return Translator(model, WORDS, SYMBOLS, settings, LONGEST, TREES)


@pytest.mark.parametrize(("beam_size", "extra_length"), [(4, 0), (3, 12)])
def test_no_hypothesis_needs_repair(model, beam_size, extra_length):
    settings = {"beam_size": beam_size, "extra_length": extra_length}
    system = translator(model, return_beams=True, **BEAM | settings)
    found = system.translate(SENTENCES)
    for sentence, hypotheses in zip(SENTENCES, found, strict=True):
        assert hypotheses
        assert all(h.repairs == () for h in hypotheses)
        assert {h.ids[-1:] for h in hypotheses} <= {(EOS_ID,), ()}
        words = len(sentence.split())
        if words < LONGEST:
            lengths = {len(h.ids) for h in hypotheses if h.ids}
            assert lengths <= set(range(words + 1, words + 2 + extra_length))
    if extra_length == 0:
        # Only leaves fit, and "c" has two of them.
        assert {h.text for h in found[2]} == {"c/NN", "c/VB"}


def test_random_translations_are_trees_too(model):
    system = translator(model, beam_size=1, sampling_method="random", sampling_seed=3)
    assert all(h.repairs == () for (h,) in system.translate(SENTENCES))


def test_a_tree_does_not_depend_on_the_batch(model):
    system = translator(model, return_beams=True, **BEAM)
    together = system.translate(SENTENCES)
    for sentence, expected in zip(SENTENCES, together, strict=True):
        (alone,) = system.translate([sentence])
        assert [h.ids for h in alone] == [h.ids for h in expected]


def test_a_tree_can_have_a_prefix(model):
    system = translator(model, **BEAM)
    ((found,),) = system.translate(SENTENCES[:1], prefixes=["(S (S"])
    assert found.text.startswith("(S (S")
    assert found.repairs == ()


def test_without_a_grammar_no_search_can_follow_it(model):
    hparams = DecodeHParams(constrain="tree")
    given = (model, WORDS, SYMBOLS, hparams, LONGEST)
    message = "received constrain=tree without a grammar"
    with pytest.raises(UserError, match=message):
        Translator(*given)
    with pytest.raises(UserError, match=message):
        ServedTranslator(*given, max_source_tokens=16)


def test_a_served_model_writes_the_same_trees(model):
    hparams = DecodeHParams(constrain="tree", **BEAM)
    served = ServedTranslator(
        model, WORDS, SYMBOLS, hparams, LONGEST, max_source_tokens=16, problem=TREES
    )
    found = served.translate(tf.constant(SENTENCES))
    texts = [text.decode() for text in found["outputs"].numpy()]
    system = translator(model, return_beams=True, **BEAM)
    expected = system.translate([*SENTENCES[:-1], " ".join(SENTENCES[-1].split()[:16])])
    assert texts == [hypotheses[0].text for hypotheses in expected]
    assert found["truncated"].numpy().tolist() == [False] * 5 + [True]


@pytest.mark.parametrize("longest", [3, 8, 100])
def test_a_graph_gives_each_piece_the_words_that_python_gives_it(longest):
    lines = [
        "the cat saw seven (small) cats",
        "a\u00e9\u00e9 (b -- 9x",
        "",
        "x\u00a0y z",
    ]
    tokenizer = SentencePieceTokenizer(
        train_sentencepiece(lines * 5, vocab_size=290, model_type="bpe")
    )
    expected = []
    for number, line in enumerate(lines):
        ids = tokenizer.encode(line)
        starts = [start for start, _ in tokenizer.word_spans(ids)]
        pieces = cut(ids, longest, number, [])
        kinds = GRAMMAR.word_kinds(" ".join(treebank_words(line)))
        expected += with_words(pieces, kinds, starts)
    in_graph = tokenizer.in_graph()
    ids, truncated = truncate(in_graph.encode(tf.constant(lines)), 1_000)
    pieces = cut_into_pieces(ids, longest)
    kinds = GRAMMAR.word_kinds_in_graph(tf.constant(lines))
    found = kinds_of_pieces(kinds, pieces, in_graph, truncated)
    assert found.to_list() == [piece.word_kinds for piece in expected]
    assert sum(map(len, found.to_list())) == sum(
        len(treebank_words(line)) for line in lines
    )
