from __future__ import annotations

import importlib.util
import logging
import re

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU

from t2t_repro.constants import BLEU_TOKENIZERS
from t2t_repro.errors import UserError
from t2t_repro.features.scores.significance import compare_translations
from t2t_repro.translation_scores import (
    announced_tokenizer,
    bleu,
    bleu_metric,
    chosen_tokenizer,
    pairwise_bleu,
    score_translations,
    sentence_bleu,
)

CHINESE = ["狗猫看见树。", "猫看见一棵大树。", "我昨天去了北京。买了3本书。"]
JAPANESE = ["昨日は東京へ行きました。", "猫が木を見ています。"]
THAI = ["แมวเห็นต้นไม้ใหญ่ในสวน", "ฉันไปตลาดเมื่อวานนี้"]
BURMESE = ["ကျွန်တော်မနေ့ကဈေးသို့သွားခဲ့သည်"]
TIBETAN = ["ང་ཚོ་ཁ་སང་ཁྲོམ་ལ་ཕྱིན་པ་ཡིན་ནོ།"] * 10
GERMAN = ["Die Donaudampfschifffahrtsgesellschaft fährt.", "Ja."]
KOREAN = ["고양이가 큰 나무를 보았습니다."]
ARABIC = ["ذهبت إلى السوق أمس."]


@pytest.fixture
def installed(monkeypatch):
    def only(*names):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: name if name in names else None
        )

    only()
    return only


def test_the_choices_are_auto_and_all_tokenizers_of_sacrebleu():
    assert {*BLEU_TOKENIZERS} == {"auto", *BLEU.TOKENIZERS}


@pytest.mark.parametrize(
    ("texts", "tokenizer"),
    [
        (CHINESE, "zh"),
        (JAPANESE, "char"),
        (THAI, "char"),
        (BURMESE, "char"),
        (TIBETAN, "char"),
        (["狗 猫 看见 树 。", "猫 看见 一 棵 大 树 。"], "13a"),
        (["昨日 は 東京 へ 行き まし た 。"], "13a"),
        (["แมว เห็น ต้นไม้ ใหญ่ ใน สวน"], "13a"),
        (GERMAN, "13a"),
        (["Donaudampfschifffahrtsgesellschaft"], "13a"),
        (KOREAN, "13a"),
        (ARABIC, "13a"),
        (["", " "], "13a"),
        ([], "13a"),
        ([*GERMAN, *["Das ist ein langer deutscher Satz."] * 5, CHINESE[0]], "13a"),
    ],
)
def test_the_script_and_the_spaces_of_a_text_choose(installed, texts, tokenizer):
    assert chosen_tokenizer("auto", texts) == tokenizer


@pytest.mark.parametrize(
    ("language", "packages", "tokenizer"),
    [
        ("zh", [], "zh"),
        ("zh-TW", [], "zh"),
        ("zho_Hans", [], "zh"),
        ("ja", ["MeCab"], "ja-mecab"),
        ("ja", [], "char"),
        ("ko", ["mecab_ko"], "ko-mecab"),
        ("ko", ["MeCab"], "13a"),
        ("th", [], "char"),
        ("lo", [], "char"),
        ("km", [], "char"),
        ("my", [], "char"),
        ("de", ["MeCab", "mecab_ko"], "13a"),
        (None, ["MeCab", "mecab_ko"], "13a"),
    ],
)
def test_a_known_language_chooses_whatever_the_text(
    installed, language, packages, tokenizer
):
    installed(*packages)
    assert chosen_tokenizer("auto", GERMAN, language) == tokenizer


def test_japanese_text_is_segmented_by_mecab_if_it_is_installed(installed):
    installed("MeCab")
    assert chosen_tokenizer("auto", JAPANESE) == "ja-mecab"


def test_a_given_tokenizer_is_kept():
    assert chosen_tokenizer("13a", CHINESE, "zh") == "13a"


def test_a_choice_other_than_the_default_is_said(caplog):
    caplog.set_level(logging.INFO)
    assert announced_tokenizer("auto", GERMAN) == "13a"
    assert announced_tokenizer("zh", CHINESE) == "zh"
    assert caplog.messages == []
    assert announced_tokenizer("auto", CHINESE) == "zh"
    assert "tokenizer zh" in caplog.text
    assert "bleu_tokenizer" in caplog.text


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_missing_package_is_named(monkeypatch, language):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{language}_mecab.MeCab", None)
    advice = re.escape(f'pip install "sacrebleu[{language}]"')
    with pytest.raises(UserError, match=f"{language}-mecab.*{advice}"):
        bleu_metric(f"{language}-mecab")


def test_a_model_that_cannot_be_downloaded_is_reported(monkeypatch):
    def refuse(self):
        raise OSError("no network")

    monkeypatch.setattr(
        "sacrebleu.tokenizers.tokenizer_spm.Flores200Tokenizer.__init__", refuse
    )
    with pytest.raises(UserError, match=r"flores200.*no network"):
        bleu_metric("flores200")


def test_a_perfect_copy_of_text_without_spaces_scores_100():
    scores = score_translations(CHINESE, CHINESE)
    assert scores.bleu.value == pytest.approx(100)
    assert "tok:zh" in scores.bleu.signature
    assert "tok:zh" in scores.bleu_lowercase.signature
    assert bleu(THAI, THAI) == pytest.approx(100)


def test_the_length_ratio_counts_the_tokens_of_the_tokenizer():
    scores = score_translations(["狗猫看见"], ["狗猫看见大树木山"])
    assert scores.length_ratio == 0.5


def test_scores_with_a_tokenizer_are_those_of_sacrebleu():
    hypotheses = ["狗猫看见山。", "猫看见一棵树。", "我昨天去了北京。买了两本书。"]
    expected = sacrebleu.corpus_bleu(hypotheses, [CHINESE], tokenize="zh").score
    assert score_translations(hypotheses, CHINESE).bleu.value == expected
    expected = sacrebleu.corpus_bleu(hypotheses, [CHINESE], tokenize="char").score
    assert score_translations(hypotheses, CHINESE, "char").bleu.value == expected
    found = compare_translations(
        {"first": hypotheses, "copy": CHINESE}, CHINESE, samples=5, tokenizer="char"
    )
    assert found[0].score == expected
    assert "tok:char" in found[0].signature


def test_comparisons_of_text_without_spaces_choose_its_tokenizer():
    found = compare_translations({"a": CHINESE, "b": CHINESE[::-1]}, CHINESE, samples=5)
    assert found[0].score == pytest.approx(100)
    assert "tok:zh" in found[0].signature


REFERENCES = ["the cat sat on the mat .", "It is Raining today in Oslo !", "a b c d e"]
HYPOTHESES = ["the cat sat on a mat .", "it is raining today in Oslo !", "a b c d"]


def test_scores_are_those_of_sacrebleu_with_its_signatures():
    scores = score_translations(HYPOTHESES, REFERENCES)
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert bleu(HYPOTHESES, REFERENCES) == scores.bleu.value
    assert scores.bleu.value == pytest.approx(expected)
    expected = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf.value == pytest.approx(expected)
    assert "case:mixed" in scores.bleu.signature
    assert "tok:13a" in scores.bleu.signature
    assert "case:lc" in scores.bleu_lowercase.signature
    assert "nc:6" in scores.chrf.signature
    assert f"version:{sacrebleu.__version__}" in scores.chrf.signature
    assert scores.sentences == 3


@pytest.mark.parametrize(
    ("hypothesis", "reference", "ratio"), [("a b c", "a b c d e f", 0.5), ("a", "", 1)]
)
def test_the_length_ratio_divides_by_reference_words(hypothesis, reference, ratio):
    assert score_translations([hypothesis], [reference]).length_ratio == ratio


def test_case_counts_for_bleu_but_not_for_lower_cased_bleu():
    lower = [text.lower() for text in REFERENCES]
    scores = score_translations(lower, REFERENCES)
    assert scores.bleu.value < 99
    assert scores.bleu_lowercase.value == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypotheses", "references", "received"),
    [(["a"], ["a", "b"], "1 translation and 2 references"), ([], [], "0 translations")],
)
def test_unequal_or_zero_numbers_of_sentences_are_refused(
    hypotheses, references, received
):
    with pytest.raises(UserError, match=f"received {received}"):
        score_translations(hypotheses, references)


def test_bleu_of_a_short_sentence_leaves_out_long_ngrams():
    assert sentence_bleu("a house", "a house") == pytest.approx(100)
    # Precisions of n-grams: 2 of 3, and 1/4 each for the smoothed 0 of 2 and 0 of 1.
    found = sentence_bleu("two | three", "two or three")
    assert found == pytest.approx(100 * (2 / 3 / 4 / 4) ** (1 / 3))
    assert sentence_bleu("", "end") == 0.0


def test_pairwise_bleu_is_that_of_each_pair_of_sentences():
    given = ["a man rides a red bike", "the man rides a bike .", "", "a house"]
    found = pairwise_bleu([*given, given[0]])
    for row, translation in zip(found, [*given, given[0]], strict=True):
        for score, reference in zip(row, [*given, given[0]], strict=True):
            if translation or reference:
                assert score == sentence_bleu(translation, reference)
    assert found[2][2] == 100  # two empty translations are equal
    # The brevity penalty depends on which of the two is the truth.
    assert found[0][3] != found[3][0]
