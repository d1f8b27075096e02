from __future__ import annotations

import math
import random
import shutil
import subprocess
from collections import Counter

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.scores import corpus_scores
from t2t_repro.features.scores.corpus_scores import (
    MosesTokenizer,
    split_compounds,
    tokenized_bleu,
)

# The expression of tensor2tensor's get_ende_bleu.sh.
SCRIPT = r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"
REFERENCES = [
    "Der rot-grüne Bus fährt, z.B. nach Bad-Ems.",
    "Die U-Bahn-Station ist „neu“ & groß \N{EN DASH} sehr groß!",
    "Das ist ein kleines Haus in Nord-Süd-Richtung.",
]
HYPOTHESES = [
    "Der rot-grüne Bus fährt z.B. nach Bad-Ems.",
    "Die U-Bahn-Station ist „neu“ und groß, sehr groß!",
    "Das ist ein kleines Haus in der Nord-Süd-Richtung.",
]


@pytest.fixture
def german():
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    return MosesTokenizer("de")


def multi_bleu(hypotheses, references):
    """Compute BLEU as Moses's multi-bleu.perl does, from counts of n-grams."""

    def ngrams(words, n):
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    correct, total = [0] * 4, [0] * 4
    written = true = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        h, r = hypothesis.split(), reference.split()
        written, true = written + len(h), true + len(r)
        for n in range(4):
            own, other = ngrams(h, n + 1), ngrams(r, n + 1)
            total[n] += sum(own.values())
            correct[n] += sum(min(own[g], other[g]) for g in own)
    if 0 in correct:
        return 0.0
    brevity = 1.0 if written >= true else math.exp(1 - true / written)
    logs = [math.log(c / t) for c, t in zip(correct, total, strict=True)]
    return 100 * brevity * math.exp(sum(logs) / 4)


@pytest.mark.parametrize(
    ("tokens", "split"),
    [
        ("rot-grün", "rot ##AT##-##AT## grün"),
        ("ein - zwei -3 4- --", "ein - zwei -3 4- --"),
        # The match of a-b takes b, so -c has no character before it.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        ("", ""),
    ],
)
def test_compounds_are_split_at_hyphens_between_two_characters(tokens, split):
    assert split_compounds(tokens) == split


def test_compounds_are_split_as_by_the_perl_script():
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl is not installed")
    generator = random.Random(7)
    lines = [
        "".join(generator.choices("ab-é漢🙂 -\u00a0", k=generator.randrange(30)))
        for _ in range(500)
    ]
    ended = subprocess.run(
        [perl, "-ple", SCRIPT],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        check=True,
        env={},
    )
    assert [*map(split_compounds, lines)] == ended.stdout.decode().split("\n")[:-1]


@pytest.mark.parametrize("compounds_split", [False, True])
def test_bleu_is_that_of_multi_bleu_on_tokens_of_sacremoses(german, compounds_split):
    from sacremoses import MosesPunctNormalizer
    from sacremoses import MosesTokenizer as Independent

    def tokens(text):
        text = MosesPunctNormalizer("de").replace_unicode_punct(text)
        text = " ".join(Independent("de").tokenize(text))
        return split_compounds(text) if compounds_split else text

    expected = multi_bleu([*map(tokens, HYPOTHESES)], [*map(tokens, REFERENCES)])
    found = tokenized_bleu(
        HYPOTHESES, REFERENCES, german, compounds_split=compounds_split
    )
    assert 30 < expected < 90
    assert found.value == pytest.approx(expected)


def test_the_split_of_compounds_changes_the_score(german):
    kinds = [
        tokenized_bleu(HYPOTHESES, REFERENCES, german, compounds_split=split).value
        for split in (False, True)
    ]
    assert abs(kinds[0] - kinds[1]) > 1


def test_case_counts(german):
    lower = [text.lower() for text in REFERENCES]
    assert tokenized_bleu(lower, REFERENCES, german, compounds_split=True).value < 90


def test_a_missing_ngram_length_gives_zero_because_multi_bleu_does_not_smooth(german):
    found = tokenized_bleu(["a b x d"], ["a b c d"], german, compounds_split=True)
    assert found.value == 0


def test_signatures_name_tokens_language_split_and_versions(german):
    import sacremoses

    signatures = [
        tokenized_bleu(HYPOTHESES, REFERENCES, german, compounds_split=split).signature
        for split in (False, True)
    ]
    assert "tok:moses-de|" in signatures[0]
    assert "tok:moses-de-atat|" in signatures[1]
    for signature in signatures:
        assert "smooth:none" in signature
        assert signature.endswith(f"|sacremoses:{sacremoses.__version__}")


def test_the_language_decides_how_apostrophes_are_split(german):
    assert german.tokenize("don't") == "don &apos; t"
    assert MosesTokenizer("en").tokenize("don't") == "don &apos;t"


def test_typographic_quotes_are_replaced_before_tokenisation(german):
    assert german.tokenize("”so”") == "&quot; so &quot;"


def test_any_text_can_be_tokenised(german):
    for text in ("", " ", "\x00", "\u202e漢字 🙂", "-" * 5000, "\ud800"):
        split_compounds(german.tokenize(text))


def test_an_unknown_language_is_refused_with_the_known_ones(german):
    with pytest.raises(UserError, match=r"received language 'xx', .*\bde\b.*\bfr\b"):
        MosesTokenizer("xx")


def test_without_sacremoses_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(corpus_scores, "is_available", lambda: False)
    with pytest.raises(UserError, match="pip install sacremoses"):
        MosesTokenizer("de")
