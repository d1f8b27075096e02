from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.scores import corpus_scores as module
from t2t_repro.features.scores.corpus_scores import (
    MosesTokenizer,
    corpus_scores,
    split_compounds,
    tokenized_bleu,
)

REFERENCES = [
    "Der rot-grüne Bus fährt heute nach Köln.",
    "„Ist das Ihr Ernst?“, fragte sie \N{EN DASH} 3,5 Mal.",
    "Ein Mann spielt Gitarre auf der Straße.",
]
HYPOTHESES = [
    "der rot-grüne Bus fährt nach Köln.",
    "„Ist das ihr Ernst?“ fragte sie, 3,5 mal.",
    "Ein Mann spielt Gitarre an der Straße.",
]
COMMAND_LINES = {
    ("bleu_13a", "chrf", "ter"): ["-m", "bleu", "chrf", "ter"],
    ("bleu_13a_lc",): ["-m", "bleu", "-lc"],
    ("bleu_intl",): ["-m", "bleu", "-tok", "intl"],
    ("bleu_intl_lc", "chrf_plus_plus"): [
        *("-m", "bleu", "chrf", "-tok", "intl", "-lc", "--chrf-word-order", "2")
    ],
}
NAMES = [name for names in COMMAND_LINES for name in names]


@pytest.fixture(scope="module")
def scores():
    return {s.name: s for s in corpus_scores(HYPOTHESES, REFERENCES, "de")}


@pytest.mark.parametrize("names", COMMAND_LINES)
def test_score_and_signature_are_those_of_sacrebleus_command_line(
    scores, names, tmp_path
):
    for file, lines in (("hypotheses", HYPOTHESES), ("references", REFERENCES)):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "sacrebleu", "references", "-i", "hypotheses"),
            *("-w", "8", "-f", "json", *COMMAND_LINES[names]),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ended.stdout)
    for name, expected in zip(names, found if len(names) > 1 else [found], strict=True):
        assert scores[name].value == pytest.approx(expected["score"], abs=1e-7)
        assert scores[name].signature == expected["signature"]


@pytest.mark.parametrize(
    ("installed", "language", "reason"),
    [
        (False, "de", "pip install sacremoses"),
        (True, None, "give card_language"),
        (True, "xx", "language xx"),
    ],
)
def test_only_the_papers_kinds_need_sacremoses_and_a_language_that_it_knows(
    installed, language, reason, monkeypatch, scores
):
    if installed:
        pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    else:
        monkeypatch.setattr(module, "is_available", lambda: False)
    found = {s.name: s for s in corpus_scores(HYPOTHESES, REFERENCES, language)}
    assert found.keys() == scores.keys()
    for name in ("bleu_tokenized", "bleu_paper"):
        assert found[name].value is found[name].signature is None
        assert reason in found[name].missing
    for name in NAMES:
        assert found[name] == scores[name]


def test_quoted_numbers_of_table_2_are_those_of_the_reproduced_table(scores):
    rows = {row.name: row.published for row in find_table("table2").rows}
    base, big = rows["transformer_base_model"], rows["transformer_big"]
    for name, column in (("bleu_paper", "en-de"), ("bleu_tokenized", "en-fr")):
        assert f"base {base[column]}, big {big[column]}" in scores[name].meaning


@pytest.mark.parametrize(
    ("hypotheses", "references", "chrf", "ter"),
    [
        (["", ""], ["a b", "c"], 0, 100),
        (["a"], [""], 0, 100),
        ([""], [""], 0, 0),
        (["a"], ["a"], 100, 0),
    ],
)
def test_text_without_four_words_divides_by_no_zero(hypotheses, references, chrf, ter):
    found = {x.name: x.value for x in corpus_scores(hypotheses, references, "de")}
    assert {value for name, value in found.items() if "bleu" in name} == {0}
    assert (found["chrf"], found["chrf_plus_plus"]) == pytest.approx((chrf, chrf))
    assert found["ter"] == ter


# The expression of tensor2tensor's get_ende_bleu.sh.
SCRIPT = r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"
COMPOUNDS = [
    "Der rot-grüne Bus fährt, z.B. nach Bad-Ems.",
    "Die U-Bahn-Station ist „neu“ & groß \N{EN DASH} sehr groß!",
    "Das ist ein kleines Haus in Nord-Süd-Richtung.",
]
WITH_COMPOUNDS = [
    "Der rot-grüne Bus fährt z.B. nach Bad-Ems.",
    "Die U-Bahn-Station ist „neu“ und groß, sehr groß!",
    "Das ist ein kleines haus in der Nord-Süd-Richtung.",
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

    expected = multi_bleu([*map(tokens, WITH_COMPOUNDS)], [*map(tokens, COMPOUNDS)])
    found = tokenized_bleu(
        WITH_COMPOUNDS, COMPOUNDS, german, compounds_split=compounds_split
    )
    assert 30 < expected < 90
    assert found.value == pytest.approx(expected)


def test_a_missing_ngram_length_gives_zero_because_multi_bleu_does_not_smooth(german):
    found = tokenized_bleu(["a b x d"], ["a b c d"], german, compounds_split=True)
    assert found.value == 0


def test_signatures_name_tokens_language_split_and_versions(german):
    import sacremoses

    signatures = [
        tokenized_bleu(["a"], ["a"], german, compounds_split=split).signature
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
    # Typographic quotes are replaced before.
    assert german.tokenize("”so”") == "&quot; so &quot;"


def test_any_text_can_be_tokenized(german):
    for text in ("", " ", "\x00", "\u202e漢字 🙂", "-" * 5000, "\ud800"):
        split_compounds(german.tokenize(text))


def test_an_unknown_language_is_refused_with_the_known_ones(german):
    with pytest.raises(UserError, match=r"received language 'xx', .*\bde\b.*\bfr\b"):
        MosesTokenizer("xx")
