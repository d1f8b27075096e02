"""The engine asks CTranslate2 for our search, and ranks its hypotheses as we do."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ctranslate2 import ctranslate2_translator
from t2t_repro.features.ctranslate2.ctranslate2_translator import (
    CTranslate2Translator,
    load_engine,
)
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer

DIGITS, LETTERS = SymbolTokenizer(list("1234")), SymbolTokenizer(list("abcd"))
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, batch_size=77)
LONGEST, POSITIONS = 20, 25


class Engine:
    """CTranslate2's interface; it copies the source, or returns given hypotheses."""

    def __init__(self, *args, **options):
        self.args, self.options = args, options
        self.calls = []
        self.found = None

    def translate_batch(self, sources, **options):
        self.calls.append((sources, options))
        return [SimpleNamespace(result=lambda s=s: self._result(s)) for s in sources]

    def _result(self, source):
        copied = [chr(ord("a") + int(t) - 1) for t in source[:-1]] + ["</s>"]
        hypotheses, scores = zip(*(self.found or [(copied, -2.0)]), strict=True)
        return SimpleNamespace(hypotheses=hypotheses, scores=scores)


@pytest.fixture
def package(monkeypatch):
    """Put a stand-in in place of the package; it has the last engine made."""
    made = SimpleNamespace(
        get_supported_compute_types=lambda device: {"int8_float32", "float32", "int16"}
    )

    def translator(*args, **options):
        made.engine = Engine(*args, **options)
        return made.engine

    made.Translator = translator
    monkeypatch.setitem(sys.modules, "ctranslate2", made)
    return made


def translator(hparams=HPARAMS, **options):
    engine = load_engine("folder", **options)
    return CTranslate2Translator(
        engine, DIGITS, LETTERS, hparams, LONGEST, positions=POSITIONS
    )


def shapes_of(engine):
    return [
        ([*map(len, sources)], options["max_decoding_length"])
        for sources, options in engine.calls
    ]


def test_a_batch_has_at_most_its_tokens_and_the_limit_of_its_longest_source(package):
    translator(HPARAMS.replace(batch_size=1)).translate(["1 2 3"])
    assert len(package.engine.calls) == 1
    hparams = HPARAMS.replace(batch_size=13, extra_length=2)
    translator(hparams).translate(["1 2", "3", "4 1 2", "2 2", "1 1", "3 3"])
    assert shapes_of(package.engine) == [([4, 3, 3], 6), ([3, 3, 2], 5)]


def test_a_source_that_reaches_its_own_limit_is_searched_again_with_it(package):
    hparams = HPARAMS.replace(batch_size=16, extra_length=1)
    made = translator(hparams)
    package.engine.found = [(["a", "a", "a"], -1.0), (["a", "</s>"], -2.0)]
    done = []
    found = made.translate(["1 2 3", "1", "2 2", "2"], done.append)
    # Three tokens are the limit of "1" and "2".
    assert shapes_of(package.engine) == [([4, 3, 2, 2], 5), ([2, 2], 3)]
    assert [best.text for (best,) in found] == ["a"] * 4
    assert sum(done) == 4


def test_equal_sources_are_translated_once(package):
    """And the results are in the order of the sentences."""
    sentences = ["1 2", "3", "1 2", "", "4 4", "3", "1 2"]
    texts = ["a b", "c", "a b", "", "d d", "c", "a b"]
    done = []
    found = [*translator().stream(sentences, done.append)]
    assert [best.text for (best,) in found] == texts
    sources = [source for call, _ in package.engine.calls for source in call]
    assert sources == [["1", "2", "</s>"], ["4", "4", "</s>"], ["3", "</s>"]]
    assert sum(done) == len(sentences)


def test_equal_pieces_of_a_long_line_are_translated_once(package):
    # 19 tokens per piece.
    ((found,),) = translator().translate([" ".join("1" * 19 * 40 + "2")])
    assert found.text == " ".join("a" * 19 * 40 + "b")
    sources = [source for call, _ in package.engine.calls for source in call]
    assert sources == [[*"1" * 19, "</s>"], ["2", "</s>"]]


def test_hypotheses_are_ranked_by_our_length_penalty(package):
    hparams = HPARAMS.replace(alpha=0.5, return_beams=True)
    made = translator(hparams)
    # n^alpha prefers the second, ((5 + n) / 6)^alpha the first.
    package.engine.found = [
        (["a", "</s>"], -3.0 / 2**0.5),
        (["a", "b", "c", "d", "a", "</s>"], -4.5 / 6**0.5),
        (["b", "</s>"], -9.0 / 2**0.5),
    ]
    (found,) = made.translate(["1"])
    assert [hypothesis.text for hypothesis in found] == ["a", "a b c d a", "b"]
    expected = [-3.0 / (7 / 6) ** 0.5, -4.5 / (11 / 6) ** 0.5, -9.0 / (7 / 6) ** 0.5]
    assert [hypothesis.score for hypothesis in found] == pytest.approx(expected)
    assert found[0].ids == (3, 1)


def test_hypotheses_without_an_end_count_only_if_there_are_no_others(package):
    made = translator(HPARAMS.replace(return_beams=True))
    package.engine.found = [(["a", "a"], -0.1), (["b", "</s>"], -5.0)]
    ((only,),) = made.translate(["1"])
    assert only.text == "b"
    package.engine.found = [(["a", "a"], -0.1), (["b", "c"], -5.0)]
    (found,) = made.translate(["1"])
    assert [hypothesis.text for hypothesis in found] == ["a a", "b c"]
    assert found[0].ids == (3, 3)


@pytest.mark.parametrize(
    ("quantization", "compute_type"),
    [
        ("float32", "float32"),
        ("bfloat16", "float32"),
        ("float16", "float32"),
        ("int8_float32", "int8_float32"),
        ("int8_bfloat16", "int8_float32"),
    ],
)
def test_a_type_that_the_processor_lacks_is_replaced(
    package, quantization, compute_type
):
    translator(quantization=quantization)
    assert package.engine.options["compute_type"] == compute_type


def test_a_search_beyond_the_positions_of_the_model_is_refused(package):
    translator(HPARAMS.replace(extra_length=5))
    with pytest.raises(UserError, match="extra_length=6, expected at most 5: "):
        translator(HPARAMS.replace(extra_length=6))


def test_a_setting_that_the_engine_does_not_follow_is_refused(package, monkeypatch):
    followed = ctranslate2_translator._FOLLOWED - {"alpha"}
    monkeypatch.setattr(ctranslate2_translator, "_FOLLOWED", followed)
    with pytest.raises(UsageError, match="decode_hparams: alpha not supported"):
        translator()
    translator(HPARAMS.replace(alpha=DecodeHParams().alpha))


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match="`pip install ctranslate2`"):
        translator()


def test_a_folder_that_cannot_be_read_is_one_line(package):
    def fail(*args, **options):
        raise RuntimeError("Unable to open file\nmore")

    package.Translator = fail
    with pytest.raises(UserError) as caught:
        translator()
    assert str(caught.value) == "CTranslate2 cannot read folder: Unable to open file"
